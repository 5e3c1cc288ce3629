/* Replaces files whole: what reads a file meanwhile sees the old content or the new one, and a file that is not finished
 * never appears. It is written under a temporary name in the same directory. The agent ends these tasks with SIGTERM, at
 * which they remove that. So their input, which has no end of its own, ends only when it is complete. */
#ifndef HIBERNAUT_REPLACE_H
#define HIBERNAUT_REPLACE_H

#include <limits.h>
#include <stddef.h>

#include "user.h"

/* Makes the file of standard input. The directories that lead to it are made, and belong to the owner as it does, with
 * mode 644. A file that exists keeps its mode and owner, and a link is followed. `metadata` are keys and values in turn,
 * NULL last; they replace those there were. Prints its record. */
int replace_write(const char *path, char *const *metadata, const struct user *owner);

/* Makes the file of other files, in the same way, and then removes those. */
int replace_compose(const char *path, char (*sources)[PATH_MAX], size_t count, const struct user *owner);

#endif
