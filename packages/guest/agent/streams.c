#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "outbox.h"
#include "spawn.h"
#include "system.h"

#define CHUNK 16384u                    /* most bytes of one stream before the next one's turn */
#define GRANT (STREAM_WINDOW / 4)       /* credit is given back in pieces of at least this, or when nothing waits */
#define CONTROL_ROOM 512u               /* what the largest control frame of a stream needs */
#define BACKLOG 128
#define END_OF_TRANSMISSION 4           /* Ctrl-D: a terminal has no other end of input */

enum { ENDED = 0, TIMED_OUT = 1, NOT_STARTED = 2 };

struct stream {
  uint32_t id;        /* 0: free */
  bool command, terminal;
  int in, out, err;   /* in == out for connections and terminals; -1 when done */
  uint8_t *waiting;   /* STREAM_WINDOW bytes of room for what goes to `in` */
  uint32_t used;      /* bytes in it */
  bool finish;        /* the platform's F_END came: `in` ends after what waits */
  uint32_t passed_on; /* bytes written to `in`, not yet given back as credit */
  uint32_t credit;    /* bytes that may be sent */
  bool out_ended, end_sent;
  const char *broken; /* F_RESET is to be sent, with this text */
  pid_t pid;
  bool exited;
  int out_left, err_left; /* once it exited: bytes that it had written and that are still to be read */
  uint32_t code, signal;
  uint8_t how;        /* ENDED, TIMED_OUT, NOT_STARTED */
  uint64_t kill_at;   /* 0: never */
  char why[200];
};

static struct stream streams[STREAMS_MAX];
static const struct config *app;
static int listener = -1;
static uint32_t next_connection = 17;
static size_t first; /* whose turn it is to be looked at first */

static void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static struct stream *find(uint32_t id) {
  for (size_t i = 0; id != 0 && i < STREAMS_MAX; i++) if (streams[i].id == id) return &streams[i];
  return NULL;
}

static struct stream *open_stream(uint32_t id) {
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    struct stream *stream = &streams[i];
    if (stream->id != 0) continue;
    uint8_t *waiting = malloc(STREAM_WINDOW);
    if (waiting == NULL) return NULL;
    *stream = (struct stream){.id = id, .in = -1, .out = -1, .err = -1, .waiting = waiting, .credit = STREAM_WINDOW};
    return stream;
  }
  return NULL;
}

static void close_in(struct stream *stream) {
  if (stream->in >= 0 && stream->in != stream->out) close(stream->in);
  stream->in = -1;
  stream->passed_on += stream->used; /* nobody will read it: the credit goes back */
  stream->used = 0;
}

static void close_stream(struct stream *stream) {
  close_in(stream);
  if (stream->out >= 0) close(stream->out);
  if (stream->err >= 0) close(stream->err);
  free(stream->waiting);
  *stream = (struct stream){.in = -1, .out = -1, .err = -1};
}

static void kill_group(const struct stream *stream) {
  if (stream->pid > 0) kill(-stream->pid, SIGKILL);
}

/* ---- from the platform ---- */

static const char *open_terminal(const struct config *config, int *master, int *slave) {
  int unlock = 0;
  struct winsize size = {.ws_row = config->rows, .ws_col = config->columns};
  *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*master < 0 || ioctl(*master, TIOCSPTLCK, &unlock) < 0) return "a terminal could not be made";
  *slave = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*slave < 0 || ioctl(*master, TIOCSWINSZ, &size) < 0) return "a terminal could not be made";
  return NULL;
}

static const char *open_pipes(const struct config *config, int ours[3], int theirs[3]) {
  int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  for (int i = config->input ? 0 : 1; i < 3; i++) {
    if (pipe2(pipes[i], O_CLOEXEC) < 0) return "a pipe could not be made";
    ours[i] = pipes[i][i == 0 ? 1 : 0];
    theirs[i] = pipes[i][i == 0 ? 0 : 1];
  }
  return NULL;
}

/* The app's environment with the command's over it. Pointers into both. */
static char **merge_env(const struct config *command) {
  static char *merged[2 * CONFIG_MAX_WORDS + 1];
  size_t count = 0;
  for (size_t i = 0; i < app->env_count; i++) {
    size_t name = strcspn(app->env[i], "=");
    bool replaced = false;
    for (size_t j = 0; j < command->env_count && !replaced; j++)
      replaced = strncmp(command->env[j], app->env[i], name + 1) == 0;
    if (!replaced) merged[count++] = app->env[i];
  }
  for (size_t j = 0; j < command->env_count; j++) merged[count++] = command->env[j];
  merged[count] = NULL;
  return merged;
}

static const char *start_command(struct stream *stream, const struct config *config, int *error) {
  int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1};
  const char *fault;
  if (config->arg_count == 0 && config->hooks == NULL) return "no command was given";
  if (config->terminal) {
    fault = open_terminal(config, &ours[0], &theirs[0]);
    ours[1] = ours[0], theirs[1] = theirs[2] = theirs[0];
  } else {
    fault = open_pipes(config, ours, theirs);
  }
  *error = errno;
  const struct spawn what = {
      .args = config->args,
      .env = merge_env(config),
      .user = config->hooks != NULL ? NULL : config->user != NULL ? config->user : app->user,
      .workdir = config->workdir != NULL ? config->workdir : config->hooks != NULL ? "/" : app->workdir,
      .files = {theirs[0], theirs[1], theirs[2]},
      .terminal = config->terminal,
      .hooks = config->hooks,
  };
  if (fault == NULL) fault = spawn_start(&what, &stream->pid, error);
  if (config->terminal) close(theirs[0]);
  else for (int i = 0; i < 3; i++) if (theirs[i] >= 0) close(theirs[i]);
  stream->in = ours[0], stream->out = ours[1], stream->err = ours[2];
  for (int i = 0; i < 3; i++) if (ours[i] >= 0) set_nonblocking(ours[i]);
  return fault;
}

static void run_command(const struct frame *frame) {
  static struct config config;
  int error = 0;
  struct stream *stream = find(frame->stream) == NULL && frame->stream != 0 ? open_stream(frame->stream) : NULL;
  if (stream == NULL) {
    outbox_send(F_RESET, frame->stream, "too many streams", 16);
    return;
  }
  stream->command = true;
  const char *fault = config_set(&config, frame->payload, frame->length);
  stream->terminal = config.terminal;
  if (fault == NULL) fault = start_command(stream, &config, &error);
  if (config.timeout_ms > 0) stream->kill_at = system_monotonic_ms() + config.timeout_ms;
  config_free(&config);
  if (fault == NULL) return;
  snprintf(stream->why, sizeof stream->why, "%s%s%s", fault, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  stream->exited = true;
  stream->how = NOT_STARTED;
  stream->code = error == ENOENT ? 127 : 126; /* as a shell says it */
}

static void take_data(struct stream *stream, const struct frame *frame) {
  if (stream->in < 0 || stream->finish) {
    stream->passed_on += frame->length;
    return;
  }
  if (frame->length > STREAM_WINDOW - stream->used) {
    stream->broken = "more was sent than the credit allowed";
    return;
  }
  memcpy(stream->waiting + stream->used, frame->payload, frame->length);
  stream->used += frame->length;
}

static void take_reset(struct stream *stream) {
  kill_group(stream);
  close_stream(stream);
}

bool streams_handle(const struct frame *frame) {
  struct stream *stream = find(frame->stream);
  switch (frame->type) {
    case F_EXEC: run_command(frame); return true;
    case F_DATA: case F_END: case F_CREDIT: case F_RESET: case F_RESIZE: case F_SIGNAL: break;
    default: return false;
  }
  if (stream == NULL) return true; /* it ended while this was on its way */
  if (frame->type == F_DATA) take_data(stream, frame);
  if (frame->type == F_END) stream->finish = true;
  if (frame->type == F_RESET) take_reset(stream);
  if (frame->type == F_CREDIT && frame->length == 4) {
    uint32_t more = get_u32(frame->payload);
    stream->credit = more > UINT32_MAX - stream->credit ? UINT32_MAX : stream->credit + more;
  }
  if (frame->type == F_RESIZE && frame->length == 4 && stream->terminal && stream->out >= 0) {
    struct winsize size = {.ws_row = get_u16(frame->payload), .ws_col = get_u16(frame->payload + 2)};
    ioctl(stream->out, TIOCSWINSZ, &size);
  }
  if (frame->type == F_SIGNAL && frame->length == 4 && stream->pid > 0) kill(-stream->pid, (int)get_u32(frame->payload));
  return true;
}

/* ---- to the platform ---- */

static bool may_send(const struct stream *stream, uint8_t type) { return stream->credit > 0 && outbox_room(type) >= CHUNK; }

/* Reads once and sends it. False when there is nothing more, now or ever; then *fd is -1 if it is ever. */
static bool forward(struct stream *stream, int *fd, uint8_t type) {
  static uint8_t chunk[CHUNK];
  if (*fd < 0 || !may_send(stream, type)) return false;
  int *left = stream->exited && !stream->terminal ? (fd == &stream->out ? &stream->out_left : &stream->err_left) : NULL;
  size_t most = stream->credit < CHUNK ? stream->credit : CHUNK;
  if (left != NULL && (size_t)*left < most) most = (size_t)*left;
  ssize_t got = most > 0 ? read(*fd, chunk, most) : 0;
  if (got > 0) {
    if (left != NULL) *left -= (int)got;
    stream->credit -= (uint32_t)got;
    outbox_send(type, stream->id, chunk, (uint32_t)got);
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (!stream->command && got < 0) stream->broken = "the connection broke";
  else if (fd == &stream->out) stream->out_ended = true;
  if (stream->command) {
    if (*fd == stream->in) close_in(stream);
    close(*fd);
    *fd = -1;
  }
  return false;
}

static void feed(struct stream *stream) {
  while (stream->in >= 0 && stream->used > 0) {
    ssize_t put = write(stream->in, stream->waiting, stream->used);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put < 0 && !stream->command) stream->broken = "the connection broke";
    if (put < 0) {
      close_in(stream);
      return;
    }
    stream->used -= (uint32_t)put;
    stream->passed_on += (uint32_t)put;
    memmove(stream->waiting, stream->waiting + put, stream->used);
  }
  if (!stream->finish || stream->in < 0) return;
  if (!stream->command) {
    shutdown(stream->in, SHUT_WR);
    stream->in = -1;
  } else if (stream->terminal) {
    const uint8_t end = END_OF_TRANSMISSION;
    if (write(stream->in, &end, 1) == 1 || errno != EAGAIN) stream->in = -1;
  } else {
    close_in(stream);
  }
}

static void grant(struct stream *stream) {
  uint8_t bytes[4];
  if (stream->passed_on == 0 || (stream->passed_on < GRANT && stream->used > 0)) return;
  put_u32(bytes, stream->passed_on);
  outbox_send(F_CREDIT, stream->id, bytes, sizeof bytes);
  stream->passed_on = 0;
}

/* All that the command wrote before it ended goes first, and no more than that: what it left running may go on
 * writing for ever. */
static void finish_command(struct stream *stream) {
  uint8_t payload[9 + sizeof stream->why];
  if (!stream->exited) return;
  while (forward(stream, &stream->out, F_DATA)) {}
  while (forward(stream, &stream->err, F_DATA_ERR)) {}
  if ((stream->out >= 0 || stream->err >= 0) && !may_send(stream, F_DATA)) return; /* there may be more */
  put_u32(payload, stream->code);
  put_u32(payload + 4, stream->signal);
  payload[8] = stream->how;
  size_t length = strlen(stream->why);
  memcpy(payload + 9, stream->why, length);
  outbox_send(F_EXEC_EXIT, stream->id, payload, 9 + (uint32_t)length);
  close_stream(stream);
}

static void finish_connection(struct stream *stream) {
  if (stream->out_ended && !stream->end_sent) {
    outbox_send(F_END, stream->id, NULL, 0);
    stream->end_sent = true;
  }
  if (stream->end_sent && stream->in < 0) close_stream(stream);
}

static void tend(struct stream *stream) {
  feed(stream);
  if (outbox_room(F_CREDIT) < CONTROL_ROOM) return;
  grant(stream);
  if (stream->broken != NULL) {
    outbox_send(F_RESET, stream->id, stream->broken, (uint32_t)strlen(stream->broken));
    take_reset(stream);
  } else if (stream->command) {
    finish_command(stream);
  } else {
    finish_connection(stream);
  }
}

/* ---- the local API's socket ---- */

void streams_init(const struct config *config) { app = config; }

void streams_listen(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  unlink(path); /* of an earlier start: the writable layer may have been kept */
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0666) < 0 ||
      listen(listener, BACKLOG) < 0)
    system_note(path, errno);
}

static bool room_for_one(void) {
  for (size_t i = 0; i < STREAMS_MAX; i++) if (streams[i].id == 0) return true;
  return false;
}

static void accept_one(void) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  struct stream *stream = open_stream(next_connection);
  if (stream == NULL) {
    close(fd);
    return;
  }
  next_connection += 2;
  stream->in = stream->out = fd;
  outbox_send(F_ACCEPT, stream->id, NULL, 0);
}

/* ---- the loop ---- */

size_t streams_poll(struct pollfd *fds) {
  size_t count = 0;
  bool accepts = listener >= 0 && room_for_one() && outbox_room(F_ACCEPT) >= CONTROL_ROOM;
  fds[count++] = (struct pollfd){.fd = accepts ? listener : -1, .events = POLLIN};
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    const struct stream *stream = &streams[i];
    if (stream->id == 0) continue;
    /* What cannot be worked on is not polled for: its end would wake the loop again and again. */
    if (stream->in >= 0 && stream->used > 0) fds[count++] = (struct pollfd){.fd = stream->in, .events = POLLOUT};
    if (stream->out >= 0 && !stream->out_ended && may_send(stream, F_DATA))
      fds[count++] = (struct pollfd){.fd = stream->out, .events = POLLIN};
    if (stream->err >= 0 && may_send(stream, F_DATA_ERR)) fds[count++] = (struct pollfd){.fd = stream->err, .events = POLLIN};
  }
  return count;
}

void streams_work(const struct pollfd *fds, size_t count) {
  if (count > 0 && fds[0].revents != 0) accept_one();
  uint64_t now = 0;
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    struct stream *stream = &streams[(first + i) % STREAMS_MAX];
    if (stream->id == 0) continue;
    if (stream->kill_at != 0 && stream->how == ENDED && !stream->exited) {
      if (now == 0) now = system_monotonic_ms();
      if (now >= stream->kill_at) stream->how = TIMED_OUT, kill_group(stream);
    }
    if (!stream->out_ended) forward(stream, &stream->out, F_DATA);
    forward(stream, &stream->err, F_DATA_ERR);
    tend(stream);
  }
  first = (first + 1) % STREAMS_MAX;
}

bool streams_reaped(pid_t pid, int status) {
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    struct stream *stream = &streams[i];
    if (stream->id == 0 || stream->pid != pid) continue;
    if (stream->out >= 0) ioctl(stream->out, FIONREAD, &stream->out_left);
    if (stream->err >= 0) ioctl(stream->err, FIONREAD, &stream->err_left);
    stream->exited = true;
    stream->pid = 0;
    stream->code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
    stream->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
    return true;
  }
  return false;
}

int streams_wait_ms(void) {
  uint64_t now = system_monotonic_ms(), least = UINT64_MAX;
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    const struct stream *stream = &streams[i];
    if (stream->id == 0 || stream->kill_at == 0 || stream->exited || stream->how != ENDED) continue;
    uint64_t left = stream->kill_at > now ? stream->kill_at - now : 0;
    if (left < least) least = left;
  }
  if (least == UINT64_MAX) return -1;
  return least < 60000 ? (int)least : 60000;
}

void streams_reset(void) {
  for (size_t i = 0; i < STREAMS_MAX; i++) if (streams[i].id != 0) take_reset(&streams[i]);
}
