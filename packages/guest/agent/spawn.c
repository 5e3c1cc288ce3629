#define _GNU_SOURCE
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
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
#define NAMED_MOST 200 /* bytes of a name in a reason */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool has(char *const *env, const char *name) {
  size_t length = strlen(name);
  for (; *env != NULL; env++) if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') return true;
  return false;
}

/* What a child process reports when it could not execute the program. */
struct failure {
  int error;
  bool directory; /* the directory could not be entered */
};

static void set_unless_given(const struct spawn *what, const char *name, const char *value) {
  if (!has(what->env, name)) setenv(name, value, 1);
}

/* Runs in the child. Returns only when the program could not be executed, with errno set. *directory: whether it was
 * because of the directory. */
static void become(const struct spawn *what, const char *workdir, const struct user *user, const struct user *owner, int report,
                   bool *directory) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  setsid();
  group_join();
  system_set_oom_score("0");
  if (!what->login) mkdir(workdir, 0755); /* as container runtimes do; if this fails, chdir() says so */
  struct rlimit files = {.rlim_cur = 1024, .rlim_max = OPEN_FILES}; /* low: some programs close every one */
  setrlimit(RLIMIT_NOFILE, &files);
  if (what->terminal && ioctl(0, TIOCSCTTY, 0) < 0) return;
  /* Otherwise the program could not open /dev/stdout and /dev/stderr, which are pipes that belong to root. */
  if (fchown(1, user->uid, user->gid) < 0 || fchown(2, user->uid, user->gid) < 0) return;
  if (setgroups(user->group_count, user->groups) < 0 || setgid(user->gid) < 0 || setuid(user->uid) < 0) return;
  *directory = chdir(workdir) < 0;
  if (*directory) return;
  environ = (char **)what->env;
  set_unless_given(what, "HOME", user->home);
  set_unless_given(what, "PATH", DEFAULT_PATH);
  if (what->login) {
    set_unless_given(what, "USER", user->name);
    set_unless_given(what, "LOGNAME", user->name);
  }
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

/* Returns the directory to start in. */
static const char *directory_of(const struct spawn *what, const struct user *user) {
  static char below[PATH_MAX];
  const char *wanted = what->workdir != NULL ? what->workdir : "";
  if (wanted[0] == '/') return wanted;
  if (!what->login) return wanted[0] != '\0' ? wanted : "/";
  return user_path(user, wanted, below, sizeof below);
}

/* Says why a directory could not be entered. Clears *error if that says it all. */
static const char *directory_fault(const char *directory, int *error) {
  static char text[NAMED_MOST + 64];
  const char *why = *error == ENOENT ? "does not exist" : *error == ENOTDIR ? "is not a directory" : "cannot be entered";
  snprintf(text, sizeof text, "cwd '%.*s%s' %s", NAMED_MOST, directory, strlen(directory) > NAMED_MOST ? "..." : "", why);
  if (*error == ENOENT || *error == ENOTDIR) *error = 0;
  return text;
}

static const char *user_fault(const char *user) {
  static char text[NAMED_MOST + 64];
  snprintf(text, sizeof text, "user '%.*s' does not exist", NAMED_MOST, user);
  return text;
}

/* Finds the user to whom belongs what a task creates. */
static const char *find_owner(struct user *owner, const struct spawn *what, const char *passwd, const char *group) {
  const char *spec = what->owner != NULL ? what->owner : "";
  const char *fault = user_find(owner, spec, passwd, group);
  if (fault == NULL || strncmp(what->task, TASK_FS, strlen(TASK_FS)) != 0) return fault;
  owner->unknown = true;
  snprintf(owner->name, sizeof owner->name, "%s", spec);
  return NULL;
}

const char *spawn_start(const struct spawn *what, pid_t *pid, int *error) {
  static char passwd[65536], group[65536];
  struct user user, owner = {0};
  struct failure failure = {0};
  int report[2];
  *error = 0;
  system_read_file("/etc/passwd", passwd, sizeof passwd);
  system_read_file("/etc/group", group, sizeof group);
  const char *fault = user_find(&user, what->user != NULL ? what->user : "", passwd, group);
  if (fault != NULL && what->login) return user_fault(what->user != NULL ? what->user : "root");
  if (fault == NULL && what->task != NULL) fault = find_owner(&owner, what, passwd, group);
  if (fault != NULL) return fault;
  const char *workdir = directory_of(what, &user);
  if (pipe2(report, O_CLOEXEC) < 0) {
    *error = errno;
    return "a pipe could not be created";
  }
  pid_t child = fork();
  if (child == 0) {
    if (take_files(what->files)) become(what, workdir, &user, &owner, report[1], &failure.directory);
    failure.error = errno;
    _exit(write(report[1], &failure, sizeof failure) == sizeof failure ? 127 : 126);
  }
  *error = child < 0 ? errno : 0;
  close(report[1]);
  bool told = child > 0 && read(report[0], &failure, sizeof failure) == sizeof failure;
  close(report[0]);
  if (child > 0 && !told) {
    *pid = child;
    return NULL;
  }
  if (told) {
    waitpid(child, NULL, 0);
    *error = failure.error;
    if (what->login && failure.directory) return directory_fault(workdir, error);
  }
  return "the command could not be run";
}
