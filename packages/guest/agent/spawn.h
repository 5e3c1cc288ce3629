/* Starting a program in the machine: as a user, in its own session, with given files. */
#ifndef HIBERNAUT_SPAWN_H
#define HIBERNAUT_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct spawn {
  char *const *args;    /* program first, NULL last */
  char *const *env;     /* NAME=value, NULL last */
  const char *user;     /* user[:group], NULL or "" is root */
  const char *workdir;  /* NULL or "" is / */
  int files[3];         /* become 0, 1 and 2; -1 is /dev/null */
  bool terminal;        /* file 0 is a terminal that becomes the session's */
  const char *hooks;    /* instead of args: a folder whose programs run one after another, see hooks.h */
};

/* NULL, or a sentence that says why it was not started; *error is the errno behind it (0 when there is none). The
 * process leads a session and a process group of its own. The caller closes `files`. */
const char *spawn_start(const struct spawn *what, pid_t *pid, int *error);

#endif
