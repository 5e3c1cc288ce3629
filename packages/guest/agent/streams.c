#define _GNU_SOURCE
#include "streams.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"
#include "connection.h"
#include "flow.h"
#include "outbox.h"
#include "system.h"

#define LONGEST_WAIT_MS 60000

static struct stream streams[STREAMS_MAX];
static const struct config *app;
static uint64_t session; /* of the platform */
static int listener = -1;
static uint32_t next_connection = FIRST_COMMAND + 1;
static size_t first; /* the stream whose turn comes first */

void streams_init(const struct config *config) { app = config; }

void streams_listen(const char *path) { listener = connection_listen(path); }

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

static void end_stream(struct stream *stream) {
  command_kill(stream);
  flow_close(stream);
}

static void send_reset(uint32_t id, const char *why) { outbox_send(F_RESET, id, why, (uint32_t)strlen(why)); }

/* ---- from the platform ---- */

static void run_command(const struct frame *exec) {
  struct stream *taken = find(exec->stream);
  if (taken != NULL) end_stream(taken); /* the platform made a mistake, and it is unclear which of the two it means */
  if (taken != NULL || exec->stream < FIRST_COMMAND || exec->stream % 2 != 0) {
    send_reset(exec->stream, "this number is not valid for a new command");
    return;
  }
  struct stream *stream = open_stream(exec->stream);
  if (stream == NULL) send_reset(exec->stream, "too many streams");
  else command_start(stream, exec, app);
}

bool streams_handle(const struct frame *frame) {
  struct stream *stream = find(frame->stream);
  switch (frame->type) {
    case F_EXEC: run_command(frame); return true;
    case F_DATA: case F_END: case F_CREDIT: case F_RESET: case F_RESIZE: case F_SIGNAL: break;
    default: return false;
  }
  if (stream == NULL) return true; /* the stream ended while this was on its way */
  switch (frame->type) {
    case F_DATA: flow_take(stream, frame); break;
    case F_END: stream->finish = true; break;
    case F_CREDIT: if (frame->length == 4) flow_add_credit(stream, get_u32(frame->payload)); break;
    case F_RESIZE: command_resize(stream, frame); break;
    case F_SIGNAL: command_signal(stream, frame); break;
    case F_RESET: end_stream(stream); break;
    default: break;
  }
  return true;
}

void streams_reset(uint64_t next_session) {
  session = next_session;
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    struct stream *stream = &streams[i];
    if (stream->id == 0) continue;
    if (command_keep(stream)) command_tell_kept(stream, session);
    else end_stream(stream);
  }
}

/* ---- to the platform ---- */

static bool can_accept(void) {
  size_t connections = 0, free_entries = 0;
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    if (streams[i].id == 0) free_entries++;
    else if (!streams[i].command) connections++;
  }
  return listener >= 0 && connections < CONNECTIONS_MAX && free_entries > 0 && outbox_room(F_ACCEPT) >= FLOW_CONTROL_ROOM;
}

static void accept_one(void) {
  if (!can_accept()) return; /* frames that arrived since the poll may have used the room */
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

static void tend(struct stream *stream) {
  flow_feed(stream);
  command_tell_kept(stream, session);
  if (stream->untold) return;
  if (outbox_room(F_CREDIT) < FLOW_CONTROL_ROOM) return;
  command_tell_started(stream);
  flow_grant(stream);
  if (stream->broken != NULL) {
    send_reset(stream->id, stream->broken);
    end_stream(stream);
  } else if (stream->command) {
    command_finish(stream);
  } else {
    connection_finish(stream);
  }
}

size_t streams_poll(struct pollfd *fds) {
  size_t count = 0;
  fds[count++] = (struct pollfd){.fd = can_accept() ? listener : -1, .events = POLLIN};
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    const struct stream *stream = &streams[i];
    if (stream->id == 0) continue;
    /* Polling for what cannot be handled yet would wake the loop again and again. */
    if (flow_wants_to_feed(stream)) fds[count++] = (struct pollfd){.fd = stream->in, .events = POLLOUT};
    if (stream->out >= 0 && !stream->out_ended && flow_may_send(stream, F_DATA))
      fds[count++] = (struct pollfd){.fd = stream->out, .events = POLLIN};
    if (stream->err >= 0 && flow_may_send(stream, F_DATA_ERR))
      fds[count++] = (struct pollfd){.fd = stream->err, .events = POLLIN};
  }
  return count;
}

void streams_work(const struct pollfd *fds, size_t count) {
  if (count > 0 && fds[0].revents != 0) accept_one();
  uint64_t now = system_monotonic_ms();
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    struct stream *stream = &streams[(first + i) % STREAMS_MAX];
    if (stream->id == 0) continue;
    command_kill_when_due(stream, now);
    if (!stream->out_ended) flow_forward(stream, &stream->out, F_DATA);
    flow_forward(stream, &stream->err, F_DATA_ERR);
    tend(stream);
  }
  first = (first + 1) % STREAMS_MAX;
}

bool streams_reaped(pid_t pid, int status) {
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    if (streams[i].id == 0 || streams[i].pid != pid) continue;
    command_exited(&streams[i], status);
    return true;
  }
  return false;
}

int streams_wait_ms(void) {
  uint64_t now = system_monotonic_ms(), soonest = UINT64_MAX;
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    uint64_t left = streams[i].id != 0 ? command_time_left(&streams[i], now) : UINT64_MAX;
    if (left < soonest) soonest = left;
  }
  if (soonest == UINT64_MAX) return -1;
  return soonest < LONGEST_WAIT_MS ? (int)soonest : LONGEST_WAIT_MS;
}
