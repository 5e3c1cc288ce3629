/* Copies files into and out of the machine, as tar archives: `hibernaut machine cp`. Each function runs in a child
 * process of the agent, as root, and returns its exit code. When that isn't 0, standard error says why. */
#ifndef HIBERNAUT_COPY_H
#define HIBERNAUT_COPY_H

#include "user.h"

enum copy_exit {
  COPY_DONE = 0,
  COPY_FAILED = 1,
  COPY_NOT_FOUND = 2, /* the path does not exist */
  COPY_REFUSED = 3,   /* the archive or the path is not acceptable */
};

/* Writes to standard output what is at the path, a line each: kind, kind behind a link, size in bytes, permissions in
 * octal. The rest is the path without links. A kind is "file", "directory", "link", "other" or "none". */
int copy_stat(const char *path);

/* Writes the file or directory to standard output. Its entries begin with the last part of the path, or with "." */
int copy_out(const char *path);

/* Unpacks standard input in the directory, then writes how many entries and bytes those were. Everything belongs to
 * `owner`, or to whom the archive says if that is NULL. A file appears whole, under its name, or not at all. Nothing is
 * written outside the directory, and no link below it is followed. */
int copy_in(const char *directory, const struct user *owner);

#endif
