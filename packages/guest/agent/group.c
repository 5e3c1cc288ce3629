#define _GNU_SOURCE
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system.h"

#define GROUP "/sys/fs/cgroup/app"

static void put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) system_note(path, errno);
  if (fd >= 0) close(fd);
}

void group_make(void) {
  if (mkdir(GROUP, 0755) < 0 && errno != EEXIST) system_note(GROUP, errno);
}

void group_join(void) { put(GROUP "/cgroup.procs", "0"); }

void group_freeze(int deadline_ms) {
  char text[256];
  put(GROUP "/cgroup.freeze", "1");
  for (int waited = 0; waited < deadline_ms; waited++) {
    if (strstr(system_read_file(GROUP "/cgroup.events", text, sizeof text), "frozen 1") != NULL) return;
    usleep(1000);
  }
  system_note("some processes could not be frozen", 0);
}

void group_thaw(void) { put(GROUP "/cgroup.freeze", "0"); }
