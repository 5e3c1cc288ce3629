#define _GNU_SOURCE
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "outbox.h"
#include "spawn.h"
#include "streams.h"
#include "system.h"

/* More than the kernel keeps of what was written to a terminal and not read yet (two buffers, 8 KiB and 4 KiB). */
#define TERMINAL_HOLDS 32768

/* ---- start ---- */

static const char *open_terminal(const struct config *config, int *master, int *slave) {
  int unlock = 0;
  struct winsize size = {.ws_row = config->rows, .ws_col = config->columns};
  *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*master < 0 || ioctl(*master, TIOCSPTLCK, &unlock) < 0) return "a terminal could not be created";
  *slave = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*slave < 0 || ioctl(*master, TIOCSWINSZ, &size) < 0) return "a terminal could not be created";
  return NULL;
}

static const char *open_pipes(const struct config *config, int ours[3], int theirs[3]) {
  int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  for (int i = config->input ? 0 : 1; i < 3; i++) {
    if (pipe2(pipes[i], O_CLOEXEC) < 0) return "a pipe could not be created";
    ours[i] = pipes[i][i == 0 ? 1 : 0];
    theirs[i] = pipes[i][i == 0 ? 0 : 1];
  }
  return NULL;
}

/* What belongs to a user who logs in, and not to the app. */
static bool is_of_login(const char *variable) {
  return strncmp(variable, "HOME=", 5) == 0 || strncmp(variable, "USER=", 5) == 0 || strncmp(variable, "LOGNAME=", 8) == 0;
}

/* Returns the app's environment with the command's on top, as pointers into both. */
static char **merge_env(const struct config *app, const struct config *command) {
  static char *merged[2 * CONFIG_MAX_WORDS + 1];
  size_t count = 0;
  for (size_t i = 0; i < app->env_count; i++) {
    size_t name = strcspn(app->env[i], "=");
    bool replaced = command->login && is_of_login(app->env[i]);
    for (size_t j = 0; j < command->env_count && !replaced; j++)
      replaced = strncmp(command->env[j], app->env[i], name + 1) == 0;
    if (!replaced) merged[count++] = app->env[i];
  }
  for (size_t j = 0; j < command->env_count; j++) merged[count++] = command->env[j];
  merged[count] = NULL;
  return merged;
}

static void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static const char *start(struct stream *stream, const struct config *config, const struct config *app, int *error) {
  int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1};
  const char *fault;
  if (config->label != NULL && (config->hooks != NULL || config->task != NULL)) return "only a program can be kept";
  if (config->arg_count == 0 && config->hooks == NULL && config->task == NULL) return "no command was given";
  if (config->terminal) {
    fault = open_terminal(config, &ours[0], &theirs[0]);
    ours[1] = ours[0], theirs[1] = theirs[2] = theirs[0];
  } else {
    fault = open_pipes(config, ours, theirs);
  }
  *error = errno;
  const bool as_root = config->hooks != NULL || config->task != NULL;
  const struct spawn what = {
      .args = config->args,
      .env = merge_env(app, config),
      .user = as_root ? NULL : config->user != NULL ? config->user : app->user,
      .workdir = config->workdir != NULL ? config->workdir : as_root ? "/" : config->login ? NULL : app->workdir,
      .login = config->login && !as_root,
      .files = {theirs[0], theirs[1], theirs[2]},
      .terminal = config->terminal,
      .hooks = config->hooks,
      .task = config->task,
      .owner = config->user != NULL ? config->user : app->user,
  };
  if (fault == NULL) fault = spawn_start(&what, &stream->pid, error);
  if (config->terminal) theirs[1] = theirs[2] = -1; /* they are one file: close it once */
  for (int i = 0; i < 3; i++) if (theirs[i] >= 0) close(theirs[i]);
  stream->in = ours[0], stream->out = ours[1], stream->err = ours[2];
  for (int i = 0; i < 3; i++) if (ours[i] >= 0) set_nonblocking(ours[i]);
  return fault;
}

void command_start(struct stream *stream, const struct frame *exec, const struct config *app) {
  static struct config config;
  int error = 0;
  stream->command = true;
  const char *fault = config_set(&config, exec->payload, exec->length);
  stream->terminal = config.terminal;
  stream->task = config.task != NULL;
  stream->ends_itself = stream->task && strcmp(config.task, "copy-in") == 0;
  stream->cleans_up = stream->task && (strcmp(config.task, "fs-write") == 0 || strcmp(config.task, "fs-compose") == 0);
  if (fault == NULL) fault = start(stream, &config, app, &error);
  if (config.timeout_ms > 0) stream->kill_at = system_monotonic_ms() + config.timeout_ms;
  stream->label = config.label, stream->label_length = config.label_length;
  config.label = NULL;
  config_free(&config);
  if (fault == NULL) {
    stream->untold_pid = stream->first_pid = stream->pid;
    if (outbox_room(F_EXEC_STARTED) >= FLOW_CONTROL_ROOM) command_tell_started(stream);
    return;
  }
  snprintf(stream->why, sizeof stream->why, "%s%s%s", fault, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  stream->exited = true;
  stream->how = NOT_STARTED;
  stream->code = error == ENOENT ? 127 : 126; /* as shells do */
}

void command_tell_started(struct stream *stream) {
  uint8_t pid[4];
  if (stream->untold_pid == 0) return;
  put_u32(pid, (uint32_t)stream->untold_pid);
  outbox_send(F_EXEC_STARTED, stream->id, pid, sizeof pid);
  stream->untold_pid = 0;
}

/* ---- another platform ---- */

bool command_keep(struct stream *stream) {
  if (stream->label == NULL || stream->broken != NULL || stream->how == NOT_STARTED) return false;
  stream->credit = STREAM_WINDOW;
  stream->passed_on = 0; /* the next platform begins without what waits, and needs no credit for what was passed on */
  stream->untold_pid = 0;
  stream->untold = true;
  return true;
}

void command_tell_kept(struct stream *stream, uint64_t session) {
  static uint8_t payload[KEPT_LABEL + CONFIG_MAX_LABEL];
  uint32_t length = KEPT_LABEL + (uint32_t)stream->label_length;
  if (!stream->untold || outbox_room(F_KEPT) < length) return;
  bool has_input = stream->in >= 0 && !stream->finish;
  put_u32(payload + KEPT_PID, (uint32_t)stream->first_pid);
  payload[KEPT_FLAGS] = (uint8_t)((stream->terminal ? KEPT_ON_TERMINAL : 0) | (has_input ? KEPT_HAS_INPUT : 0));
  put_u32(payload + KEPT_WAITING, stream->used);
  put_u64(payload + KEPT_SESSION, session);
  memcpy(payload + KEPT_LABEL, stream->label, stream->label_length);
  stream->untold = !outbox_send(F_KEPT, stream->id, payload, length);
}

/* ---- while the command is running ---- */

void command_resize(struct stream *stream, const struct frame *frame) {
  if (frame->length != 4 || !stream->terminal || stream->out < 0) return;
  struct winsize size = {.ws_row = get_u16(frame->payload), .ws_col = get_u16(frame->payload + 2)};
  ioctl(stream->out, TIOCSWINSZ, &size);
}

void command_signal(struct stream *stream, const struct frame *frame) {
  if (frame->length == 4 && stream->pid > 0) kill(-stream->pid, (int)get_u32(frame->payload));
}

uint64_t command_time_left(const struct stream *stream, uint64_t now) {
  if (stream->kill_at == 0 || stream->exited || stream->how != ENDED) return UINT64_MAX;
  return stream->kill_at > now ? stream->kill_at - now : 0;
}

void command_kill(const struct stream *stream) {
  /* The signal comes before the end of the input, which therefore is never taken for a complete one. */
  if (stream->pid > 0 && !stream->ends_itself) kill(-stream->pid, stream->cleans_up ? SIGTERM : SIGKILL);
}

void command_kill_when_due(struct stream *stream, uint64_t now) {
  if (command_time_left(stream, now) > 0) return;
  stream->how = TIMED_OUT;
  command_kill(stream);
}

/* ---- end ---- */

void command_exited(struct stream *stream, int status) {
  if (stream->terminal) stream->out_left = TERMINAL_HOLDS;
  else if (stream->out >= 0) ioctl(stream->out, FIONREAD, &stream->out_left);
  if (stream->err >= 0) ioctl(stream->err, FIONREAD, &stream->err_left);
  stream->exited = true;
  stream->pid = 0;
  stream->code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
  stream->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
}

/* First comes all that the command wrote before it ended, and no more: processes that it left running may continue to
 * write forever. */
void command_finish(struct stream *stream) {
  uint8_t payload[9 + sizeof stream->why];
  if (stream->task && stream->out_ended && !stream->end_sent) {
    outbox_send(F_END, stream->id, NULL, 0);
    stream->end_sent = true;
  }
  if (!stream->exited) return;
  while (flow_forward(stream, &stream->out, F_DATA)) {}
  while (flow_forward(stream, &stream->err, F_DATA_ERR)) {}
  if ((stream->out >= 0 || stream->err >= 0) && !flow_may_send(stream, F_DATA)) return; /* there may be more to send */
  put_u32(payload, stream->code);
  put_u32(payload + 4, stream->signal);
  payload[8] = (uint8_t)stream->how;
  size_t length = strlen(stream->why);
  memcpy(payload + 9, stream->why, length);
  outbox_send(F_EXEC_EXIT, stream->id, payload, 9 + (uint32_t)length);
  flow_close(stream);
}
