#define _GNU_SOURCE
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "running.h"
#include "spawn.h"
#include "system.h"

const char *app_start(struct app *app, const struct config *config, int *error) {
  int out[2], err[2];
  *error = 0;
  if (config->arg_count == 0) return "the image does not name a command: set init.exec or init.cmd";
  if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
    *error = errno;
    return "the app's pipes could not be created";
  }
  pid_t pid;
  uint64_t kills = system_oom_kills();
  const struct spawn what = {
      .args = config->args,
      .env = config->env,
      .user = config->user,
      .workdir = config->workdir,
      .files = {-1, out[1], err[1]},
  };
  const char *fault = spawn_start(&what, &pid, error);
  close(out[1]), close(err[1]);
  if (fault != NULL) {
    close(out[0]), close(err[0]);
    return fault;
  }
  fcntl(out[0], F_SETFL, O_NONBLOCK), fcntl(err[0], F_SETFL, O_NONBLOCK);
  running_is(pid);
  *app = (struct app){.pid = pid, .out = out[0], .err = err[0], .oom_kills_before = kills};
  return NULL;
}

bool app_reaped(struct app *app, pid_t pid, int status) {
  if (app->pid == 0 || pid != app->pid) return false;
  app->pid = 0;
  running_is(0);
  app->exited = true;
  app->code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
  app->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
  app->oom = app->signal == SIGKILL && system_oom_kills() > app->oom_kills_before;
  return true;
}

void app_signal(const struct app *app, int signal) {
  if (app->pid > 0 && kill(app->pid, signal) < 0 && errno != ESRCH) system_note("kill", errno);
}
