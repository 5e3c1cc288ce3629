/* Programs of the image that run before a suspend and after a resume: the executable files of a directory, in the order
 * of their names. */
#ifndef HIBERNAUT_HOOKS_H
#define HIBERNAUT_HOOKS_H

#include <stdbool.h>

#define HOOKS_AFTER_RESUME "/etc/hibernaut/hooks/post-resume.d"
#define HOOKS_AFTER_FORK "/etc/hibernaut/hooks/post-fork.d"

/* Whether the directory contains anything. */
bool hooks_exist(const char *folder);

/* Runs the programs with the environment of the calling process, and ends that process: exit code 0, or the number of
 * programs that failed. */
_Noreturn void hooks_run(const char *folder);

#endif
