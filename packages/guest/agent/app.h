/* The one app of a machine: started as the image's user, watched, ended. */
#ifndef HIBERNAUT_APP_H
#define HIBERNAUT_APP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"

struct app {
  pid_t pid;      /* 0 before the start and after the end */
  int out, err;   /* read ends of its output, -1 when closed */
  bool exited;
  uint32_t code, signal;
  bool oom;
  uint64_t oom_kills_before;
};

/* NULL, or a sentence; *error is the errno behind it (0 when there is none). */
const char *app_start(struct app *app, const struct config *config, int *error);

/* Takes the result of waitpid; true when it was the app's. */
bool app_reaped(struct app *app, pid_t pid, int status);

void app_signal(const struct app *app, int signal);

#endif
