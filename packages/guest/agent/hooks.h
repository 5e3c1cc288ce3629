/* Programs of the image that run around a suspend: the executable files of a folder, in the order of their names. */
#ifndef HIBERNAUT_HOOKS_H
#define HIBERNAUT_HOOKS_H

#include <stdbool.h>

#define HOOKS_AFTER_RESUME "/etc/hibernaut/hooks/post-resume.d"

/* Whether the folder holds anything. */
bool hooks_exist(const char *folder);

/* Runs them, in the calling process and its environment, and ends it: exit code 0, or the number of programs that failed. */
_Noreturn void hooks_run(const char *folder);

#endif
