/* Files and directories of the machine, one operation per task. Each runs in a child process of the agent, as root, and
 * what it creates belongs to a user: to C_USER, or else to the app's. A path that does not begin with "/" is below that
 * user's home. Operations that print write entry records to standard output, see entries.h. They return the exit code,
 * one of paths.h, and when that isn't 0, standard error has a sentence that says why.
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

#include "user.h"

int fs_run(const char *name, char *const *args, const struct user *owner);

#endif
