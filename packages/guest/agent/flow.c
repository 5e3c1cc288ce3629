#define _GNU_SOURCE
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "outbox.h"
#include "streams.h"

#define GRANT (STREAM_WINDOW / 4) /* credit is returned in pieces of at least this, or when nothing waits */
#define END_OF_TRANSMISSION 4     /* Ctrl-D: the only way to end the input of a terminal */

static void close_in(struct stream *stream) {
  if (stream->in >= 0 && stream->in != stream->out) close(stream->in);
  stream->in = -1;
  stream->passed_on += stream->used; /* no one will read it: return the credit */
  stream->used = 0;
}

void flow_take(struct stream *stream, const struct frame *data) {
  if (stream->in < 0 || stream->finish) {
    stream->passed_on += data->length;
    return;
  }
  if (data->length > STREAM_WINDOW - stream->used) {
    stream->broken = "more was sent than the credit allowed";
    return;
  }
  memcpy(stream->waiting + stream->used, data->payload, data->length);
  stream->used += data->length;
}

void flow_add_credit(struct stream *stream, uint32_t bytes) {
  uint32_t most = STREAM_WINDOW - stream->credit; /* no more can have been passed on than was sent */
  stream->credit += bytes < most ? bytes : most;
}

static void end_input(struct stream *stream) {
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

void flow_feed(struct stream *stream) {
  while (stream->in >= 0 && stream->used > 0) {
    ssize_t put = write(stream->in, stream->waiting, stream->used);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put < 0 && !stream->command) stream->broken = "the connection was lost";
    if (put < 0) {
      close_in(stream);
      return;
    }
    stream->used -= (uint32_t)put;
    stream->passed_on += (uint32_t)put;
    memmove(stream->waiting, stream->waiting + put, stream->used);
  }
  if (stream->finish && stream->in >= 0) end_input(stream);
}

bool flow_wants_to_feed(const struct stream *stream) { return stream->in >= 0 && (stream->used > 0 || stream->finish); }

void flow_grant(struct stream *stream) {
  uint8_t bytes[4];
  if (stream->passed_on == 0 || (stream->passed_on < GRANT && stream->used > 0)) return;
  put_u32(bytes, stream->passed_on);
  outbox_send(F_CREDIT, stream->id, bytes, sizeof bytes);
  stream->passed_on = 0;
}

bool flow_may_send(const struct stream *stream, uint8_t type) {
  return stream->credit > 0 && !stream->untold && outbox_room(type) >= FLOW_CHUNK;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

bool flow_forward(struct stream *stream, int *fd, uint8_t type) {
  static uint8_t chunk[FLOW_CHUNK];
  if (*fd < 0) return false;
  int *left = !stream->exited ? NULL : fd == &stream->out ? &stream->out_left : &stream->err_left;
  bool all_read = left != NULL && *left <= 0;
  if (!all_read && !flow_may_send(stream, type)) return false;
  size_t most = least(stream->credit, FLOW_CHUNK);
  if (left != NULL) most = least(most, (size_t)*left);
  ssize_t got = all_read ? 0 : read(*fd, chunk, most);
  if (got > 0) {
    if (left != NULL) *left -= (int)got;
    stream->credit -= (uint32_t)got;
    outbox_send(type, stream->id, chunk, (uint32_t)got);
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (!stream->command && got < 0) stream->broken = "the connection was lost";
  else if (fd == &stream->out) stream->out_ended = true;
  if (stream->command) {
    if (*fd == stream->in) close_in(stream);
    close(*fd);
    *fd = -1;
  }
  return false;
}

void flow_close(struct stream *stream) {
  close_in(stream);
  if (stream->out >= 0) close(stream->out);
  if (stream->err >= 0) close(stream->err);
  free(stream->waiting), free(stream->label);
  *stream = (struct stream){.in = -1, .out = -1, .err = -1};
}
