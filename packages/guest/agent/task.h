/* Commands that the agent carries out itself, in a child process, so that an image needs no program for them. */
#ifndef HIBERNAUT_TASK_H
#define HIBERNAUT_TASK_H

#include "user.h"

/* How a task ends whose name the agent does not know, as older ones do not know newer tasks. The platform relies on it. */
#define TASK_UNKNOWN 125

#define TASK_FS "fs-" /* how tasks of fs.h begin */

/* Runs a task and exits. Closes every file but the standard ones first. `owner` gets the files that are copied in,
 * unless the arguments say otherwise.
 *
 *   stat <path>, copy-out <path>, copy-in <directory> image|archive: see copy.h
 *   connect <port>: see connect.h
 *   app-signal <number>: see running.h
 *   ps: see processes.h
 *   fs-*: see fs.h. They say themselves when the owner is unknown */
_Noreturn void task_run(const char *name, char *const *args, const struct user *owner);

#endif
