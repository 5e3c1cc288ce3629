#define _GNU_SOURCE
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system.h"
#include "user.h"

#define OPEN_FILES 524288 /* as container runtimes allow; the kernel's own 4096 is too few for a server */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Runs in the child. Returns only when exec failed, with errno set. */
static void become_app(const struct config *config, const struct user *user) {
  static char home[280];
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  system_set_oom_score("0");
  const char *workdir = config->workdir != NULL && config->workdir[0] != '\0' ? config->workdir : "/";
  mkdir(workdir, 0755); /* as container runtimes do; chdir tells when it is not there */
  struct rlimit files = {.rlim_cur = 1024, .rlim_max = OPEN_FILES}; /* few at first: some programs close every possible one */
  setrlimit(RLIMIT_NOFILE, &files);
  /* So that the app may open /dev/stdout and /dev/stderr, which are pipes of root's. */
  if (fchown(1, user->uid, user->gid) < 0 || fchown(2, user->uid, user->gid) < 0) return;
  if (setgroups(user->group_count, user->groups) < 0 || setgid(user->gid) < 0 || setuid(user->uid) < 0) return;
  if (chdir(workdir) < 0) return;
  environ = (char **)config->env;
  if (config_env(config, "HOME") == NULL) {
    snprintf(home, sizeof home, "HOME=%s", user->home);
    putenv(home);
  }
  if (config_env(config, "PATH") == NULL) putenv("PATH=" DEFAULT_PATH);
  execvpe(config->args[0], config->args, environ);
}

const char *app_start(struct app *app, const struct config *config, int *error) {
  static char passwd[65536], group[65536];
  struct user user;
  int out[2], err[2], report[2];
  *error = 0;
  if (config->arg_count == 0) return "the image names no command: set init.exec or init.cmd";
  system_read_file("/etc/passwd", passwd, sizeof passwd);
  system_read_file("/etc/group", group, sizeof group);
  const char *fault = user_find(&user, config->user != NULL ? config->user : "", passwd, group);
  if (fault != NULL) return fault;
  if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0) {
    *error = errno;
    return "the app's pipes could not be made";
  }
  app->oom_kills_before = system_oom_kills();
  pid_t pid = fork();
  if (pid == 0) {
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC); /* never 0 itself, see system_open_standard_files */
    dup2(null, 0), dup2(out[1], 1), dup2(err[1], 2);
    become_app(config, &user);
    int failed = errno;
    _exit(write(report[1], &failed, sizeof failed) == sizeof failed ? 127 : 126);
  }
  *error = pid < 0 ? errno : 0;
  close(out[1]), close(err[1]), close(report[1]);
  int failed = 0;
  bool told = pid > 0 && read(report[0], &failed, sizeof failed) == sizeof failed;
  close(report[0]);
  if (pid < 0 || told) {
    close(out[0]), close(err[0]);
    if (pid > 0) waitpid(pid, NULL, 0);
    if (told) *error = failed;
    return "the app's command could not be run";
  }
  fcntl(out[0], F_SETFL, O_NONBLOCK), fcntl(err[0], F_SETFL, O_NONBLOCK);
  *app = (struct app){.pid = pid, .out = out[0], .err = err[0], .oom_kills_before = app->oom_kills_before};
  return NULL;
}

bool app_reaped(struct app *app, pid_t pid, int status) {
  if (app->pid == 0 || pid != app->pid) return false;
  app->pid = 0;
  app->exited = true;
  app->code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
  app->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
  app->oom = app->signal == SIGKILL && system_oom_kills() > app->oom_kills_before;
  return true;
}

void app_signal(const struct app *app, int signal) {
  if (app->pid > 0 && kill(app->pid, signal) < 0 && errno != ESRCH) system_note("kill", errno);
}
