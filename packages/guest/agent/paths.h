/* What operations on files and directories share: how they fail, and what they do to paths. See fs.h. */
#ifndef HIBERNAUT_PATHS_H
#define HIBERNAUT_PATHS_H

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

/* All of these return an exit code, and when it isn't FS_DONE, standard error has a sentence that begins with the path. The
 * code is the one given, or that of errno. */
int paths_fault(int code, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));
int paths_errno(const char *path);

/* The same for what has to be there: nothing is below a file. */
int paths_missing(const char *path);

/* Makes the directories that lead to a path. */
int paths_make_parents(const char *path, const struct user *owner);

/* Writes what is left of a file to another one. Returns false with errno set when that fails. */
bool paths_pour(int from, int to);

#endif
