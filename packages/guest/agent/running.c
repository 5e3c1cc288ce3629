#define _GNU_SOURCE
#include "running.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static pid_t running;

void running_is(pid_t pid) {
  running = pid;
}

int running_signal(const char *number) {
  char *end;
  long signal = strtol(number, &end, 10);
  if (number[0] == '\0' || *end != '\0' || signal < 1 || signal > SIGRTMAX) {
    dprintf(2, "%.20s is not a signal\n", number);
    return APP_TASK_FAILED;
  }
  if (running == 0 || (kill(running, (int)signal) < 0 && errno == ESRCH)) return APP_TASK_NOT_RUNNING;
  return APP_TASK_DONE;
}
