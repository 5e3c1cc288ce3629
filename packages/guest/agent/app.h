/* The app of a machine: starts it as the image's user, watches it, and ends it. */
#ifndef HIBERNAUT_APP_H
#define HIBERNAUT_APP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"

struct app {
  pid_t pid;      /* 0 before the start and after the end */
  int out, err;   /* read ends of its outputs, -1 when closed */
  bool exited;
  uint32_t code, signal;
  bool oom;
  uint64_t oom_kills_before;
};

/* Starts the app. Returns NULL, or says what went wrong; *error is the errno behind that, or 0. */
const char *app_start(struct app *app, const struct config *config, int *error);

/* Takes a result of waitpid(). Returns true when it was the app's. */
bool app_reaped(struct app *app, pid_t pid, int status);

/* Sends the app a signal, if it is running. */
void app_signal(const struct app *app, int signal);

#endif
