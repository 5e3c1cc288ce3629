/* Files and directories of the machine, one operation per task. Each runs in a child process of the agent, as root, and
 * what it creates belongs to a user: to C_USER, or else to the app's. A path that does not begin with "/" is below that
 * user's home. Operations that print write entry records to standard output, see entries.h. They return the exit code,
 * and when that isn't 0, standard error has a sentence that says why.
 *
 *   fs-stat PATH            the record of what is there; a link is not followed
 *   fs-list PATH DEPTH      the records of what is below, down to that depth: see entries.h
 *   fs-mkdir PATH           makes it and the directories that lead to it, and prints its record
 *   fs-move FROM TO         within a file system; makes the directories that lead to TO, and prints its record
 *   fs-remove PATH          with all that is below. Never follows a link
 *   fs-read PATH            writes the file to standard output; what prevents that is known before the first byte
 *   fs-write PATH [KEY VALUE]..., fs-compose TO FROM...: see replace.h
 *   fs-watch PATH RECURSIVE ENTRY: see watch.h */
#ifndef HIBERNAUT_FS_H
#define HIBERNAUT_FS_H

#include <stdbool.h>

#include "user.h"

enum fs_exit {
  FS_DONE = 0,
  FS_FAILED = 1,
  FS_NOT_FOUND = 2,
  FS_REFUSED = 3, /* the arguments, or what is at the path, are not acceptable */
  FS_EXISTS = 4,
  FS_NOT_DIRECTORY = 5,
  FS_IS_DIRECTORY = 6,
  FS_NO_SPACE = 7,
  FS_UNKNOWN_USER = 8,
};

int fs_run(const char *name, char *const *args, const struct user *owner);

/* For the operations. Both write a sentence that begins with the path and return an exit code: this one, or that of
 * errno. */
int fs_fault(int code, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));
int fs_errno(const char *path);

/* Makes the directories that lead to a path. */
int fs_make_parents(const char *path, const struct user *owner);

/* Writes what is left of a file to another one. Returns false with errno set when that fails. */
bool fs_pour(int from, int to);

/* Prints the record of what an operation made. */
int fs_print(const char *path);

#endif
