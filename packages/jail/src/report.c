#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAILED 125 /* as `env`, `timeout` and other programs that run a program use it for a failure of their own */

static int status = STDERR_FILENO;

void report_to(int fd) {
  status = fd < 0 ? STDERR_FILENO : fd;
}

static void say(const char *line) {
  size_t length = strlen(line);
  ssize_t written = write(status, line, length); /* a pipe takes a line of this length whole, or nobody listens */
  (void)written;
}

static _Noreturn void end(const char *what, const char *about, const char *why) {
  char line[512];
  bool named = about != NULL;
  snprintf(line, sizeof line - 1, "error %s%s%s%s%s", what, named ? " " : "", named ? about : "", why != NULL ? ": " : "",
           why != NULL ? why : "");
  strcat(line, "\n");
  say(line);
  _exit(FAILED);
}

_Noreturn void fail(const char *what, const char *about) {
  end(what, about, strerror(errno));
}

_Noreturn void fail_usage(const char *what, const char *about) {
  end(what, about, NULL);
}

void report_pid(int pid) {
  if (status == STDERR_FILENO) return; /* a person is not asking */
  char line[32];
  snprintf(line, sizeof line, "pid %d\n", pid);
  say(line);
}
