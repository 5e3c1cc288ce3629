/* Starts a program as a user, in a session of its own, with the given files. */
#ifndef HIBERNAUT_SPAWN_H
#define HIBERNAUT_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct spawn {
  char *const *args;    /* program first, NULL last */
  char *const *env;     /* NAME=value, NULL last */
  const char *user;     /* user[:group]; NULL or "": root */
  const char *workdir;  /* NULL or "": /, or with login the user's home */
  bool login;           /* HOME, USER and LOGNAME are the user's, as far as `env` has none, and the directory is below the
                         * user's home unless it begins with "/". It has to exist. Otherwise it is created */
  int files[3];         /* become 0, 1 and 2; -1: /dev/null */
  bool terminal;        /* file 0 is a terminal, which becomes the session's */
  const char *hooks;    /* instead of args: a directory of programs, see hooks.h */
  const char *task;     /* instead of a program: a task with these args, see task.h */
  const char *owner;    /* of what the task creates, user[:group] as above */
};

/* Returns NULL, or says why the program was not started; *error is the errno behind that, or 0. The process leads a
 * session and a process group of its own. The caller closes `files`. */
const char *spawn_start(const struct spawn *what, pid_t *pid, int *error);

#endif
