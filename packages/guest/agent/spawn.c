#define _GNU_SOURCE
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "group.h"
#include "hooks.h"
#include "system.h"
#include "task.h"
#include "user.h"

#define OPEN_FILES 524288 /* as in container runtimes; the kernel's default of 4096 is too low for a server */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool has(char *const *env, const char *name) {
  size_t length = strlen(name);
  for (; *env != NULL; env++) if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') return true;
  return false;
}

/* Runs in the child. Returns only when the program could not be executed, with errno set. */
static void become(const struct spawn *what, const struct user *user, const struct user *owner, int report) {
  static char home[280];
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  setsid();
  group_join();
  system_set_oom_score("0");
  const char *workdir = what->workdir != NULL && what->workdir[0] != '\0' ? what->workdir : "/";
  mkdir(workdir, 0755); /* as container runtimes do; if this fails, chdir() says so */
  struct rlimit files = {.rlim_cur = 1024, .rlim_max = OPEN_FILES}; /* low: some programs close every one */
  setrlimit(RLIMIT_NOFILE, &files);
  if (what->terminal && ioctl(0, TIOCSCTTY, 0) < 0) return;
  /* Otherwise the program could not open /dev/stdout and /dev/stderr, which are pipes that belong to root. */
  if (fchown(1, user->uid, user->gid) < 0 || fchown(2, user->uid, user->gid) < 0) return;
  if (setgroups(user->group_count, user->groups) < 0 || setgid(user->gid) < 0 || setuid(user->uid) < 0) return;
  if (chdir(workdir) < 0) return;
  environ = (char **)what->env;
  bool no_home = !has(what->env, "HOME"), no_path = !has(what->env, "PATH");
  if (no_home) {
    snprintf(home, sizeof home, "HOME=%s", user->home);
    putenv(home);
  }
  if (no_path) putenv((char *)"PATH=" DEFAULT_PATH);
  if (what->hooks != NULL) {
    close(report); /* says that the start succeeded */
    hooks_run(what->hooks);
  }
  if (what->task != NULL) {
    close(report);
    task_run(what->task, what->args, owner);
  }
  execvpe(what->args[0], what->args, environ);
}

/* Makes the files 0, 1 and 2, whichever numbers they have now. */
static bool take_files(const int files[3]) {
  int kept[3];
  for (int i = 0; i < 3; i++) {
    int from = files[i] >= 0 ? files[i] : open("/dev/null", O_RDWR | O_CLOEXEC);
    kept[i] = fcntl(from, F_DUPFD_CLOEXEC, 3);
    if (kept[i] < 0) return false;
  }
  for (int i = 0; i < 3; i++) if (dup2(kept[i], i) < 0) return false;
  return true;
}

const char *spawn_start(const struct spawn *what, pid_t *pid, int *error) {
  static char passwd[65536], group[65536];
  struct user user, owner = {0};
  int report[2];
  *error = 0;
  system_read_file("/etc/passwd", passwd, sizeof passwd);
  system_read_file("/etc/group", group, sizeof group);
  const char *fault = user_find(&user, what->user != NULL ? what->user : "", passwd, group);
  if (fault == NULL && what->task != NULL) fault = user_find(&owner, what->owner != NULL ? what->owner : "", passwd, group);
  if (fault != NULL) return fault;
  if (pipe2(report, O_CLOEXEC) < 0) {
    *error = errno;
    return "a pipe could not be created";
  }
  pid_t child = fork();
  if (child == 0) {
    if (take_files(what->files)) become(what, &user, &owner, report[1]);
    int failed = errno;
    _exit(write(report[1], &failed, sizeof failed) == sizeof failed ? 127 : 126);
  }
  *error = child < 0 ? errno : 0;
  close(report[1]);
  int failed = 0;
  bool told = child > 0 && read(report[0], &failed, sizeof failed) == sizeof failed;
  close(report[0]);
  if (child > 0 && !told) {
    *pid = child;
    return NULL;
  }
  if (told) {
    waitpid(child, NULL, 0);
    *error = failed;
  }
  return "the command could not be run";
}
