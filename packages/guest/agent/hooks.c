#define _GNU_SOURCE
#include "hooks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_FAILURES 100 /* exit codes above 125 have other meanings */

static int visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

bool hooks_exist(const char *folder) {
  DIR *open = opendir(folder);
  bool found = false;
  for (struct dirent *entry; !found && open != NULL && (entry = readdir(open)) != NULL;) found = visible(entry);
  if (open != NULL) closedir(open);
  return found;
}

static bool succeeds(const char *path) {
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    execl(path, path, (char *)NULL);
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    _exit(127);
  }
  if (pid < 0 || waitpid(pid, &status, 0) < 0) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return false;
  }
  if (status == 0) return true;
  if (WIFSIGNALED(status)) fprintf(stderr, "%s: killed by signal %d\n", path, WTERMSIG(status));
  else fprintf(stderr, "%s: exit code %d\n", path, WEXITSTATUS(status));
  return false;
}

_Noreturn void hooks_run(const char *folder) {
  struct dirent **entries;
  int failures = 0;
  int count = scandir(folder, &entries, visible, alphasort);
  for (int i = 0; i < count; i++) {
    char path[600];
    struct stat file;
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (stat(path, &file) < 0 || !S_ISREG(file.st_mode) || (file.st_mode & 0111) == 0) continue;
    if (!succeeds(path) && failures < MOST_FAILURES) failures++;
  }
  _exit(failures);
}
