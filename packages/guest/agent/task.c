#define _GNU_SOURCE
#include "task.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "connect.h"
#include "copy.h"
#include "fs.h"
#include "processes.h"
#include "running.h"

/* Inherited from the agent: among them are the other ends of this task's own pipes, which would never end. */
static void close_others(void) {
  if (close_range(3, ~0u, 0) == 0) return;
  struct rlimit limit;
  int most = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (int)limit.rlim_max : 1024;
  for (int fd = 3; fd < most; fd++) close(fd);
}

_Noreturn void task_run(const char *name, char *const *args, const struct user *owner) {
  struct rlimit files;
  close_others();
  /* A directory stays open while those below it are copied. */
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const char *first = args[0] != NULL ? args[0] : "";
  const char *second = args[0] != NULL && args[1] != NULL ? args[1] : "";
  if (strcmp(name, "stat") == 0) _exit(copy_stat(first));
  if (strcmp(name, "copy-out") == 0) _exit(copy_out(first));
  if (strcmp(name, "copy-in") == 0) _exit(copy_in(first, strcmp(second, "archive") == 0 ? NULL : owner));
  if (strcmp(name, "connect") == 0) _exit(connect_run(first));
  if (strcmp(name, "app-signal") == 0) _exit(running_signal(first));
  if (strcmp(name, "ps") == 0) _exit(processes_print());
  if (strncmp(name, TASK_FS, strlen(TASK_FS)) == 0) _exit(fs_run(name, args, owner));
  dprintf(2, "the agent has no task of this name\n");
  _exit(TASK_UNKNOWN);
}
