#include "outbox.h"

#include <string.h>
#include <unistd.h>

#include "config.h"
#include "frame.h"
#include "streams.h"

#define OUTBOX_SIZE (5u * FRAME_MAX)
/* Output of the app and bytes of streams have a share each, so that neither keeps the other out. */
#define LOG_SHARE (2u * FRAME_MAX)
#define STREAM_SHARE (2u * FRAME_MAX)
/* For the announcements of all commands that are kept: in addition, so that not even a busy queue delays them. */
#define KEPT_SHARE (STREAMS_MAX * (FRAME_HEADER + KEPT_LABEL + CONFIG_MAX_LABEL))
#define CONTROL_ROOM 4096u /* reserved for control frames, except for answers that a peer can request without limit */

static uint8_t queue[OUTBOX_SIZE + KEPT_SHARE];
static size_t queued;
static size_t logged, streamed, kept; /* of the bytes in the queue: output of the app, bytes of streams, announcements */
static size_t front_left;        /* bytes left of the first frame, once its beginning is written; 0 before that */
static size_t *front_share;      /* the share that these bytes count towards */
static uint64_t dropped;

static size_t *share_of(uint8_t type) {
  if (type == F_LOG) return &logged;
  if (type == F_KEPT) return &kept;
  return type == F_DATA || type == F_DATA_ERR ? &streamed : NULL;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Returns how many bytes a frame of this type may have, including its header. */
static size_t room_for(uint8_t type) {
  bool control = share_of(type) == NULL && type != F_PONG && type != F_ERROR;
  size_t limit = control ? OUTBOX_SIZE : OUTBOX_SIZE - CONTROL_ROOM;
  size_t used = queued - kept, room = used < limit ? limit - used : 0;
  if (share_of(type) == &kept) return KEPT_SHARE - kept;
  if (share_of(type) == &logged) return least(room, LOG_SHARE - logged);
  if (share_of(type) == &streamed) return least(room, STREAM_SHARE - streamed);
  return room;
}

uint32_t outbox_room(uint8_t type) {
  size_t room = room_for(type);
  return room > FRAME_HEADER ? (uint32_t)least(room - FRAME_HEADER, FRAME_MAX_PAYLOAD) : 0;
}

bool outbox_send(uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  if (FRAME_HEADER + (size_t)length > room_for(type)) {
    dropped++;
    return false;
  }
  queued += frame_write(queue + queued, type, stream, payload, length);
  if (share_of(type) != NULL) *share_of(type) += FRAME_HEADER + (size_t)length;
  return true;
}

bool outbox_empty(void) { return queued == 0; }

/* Returns written bytes to their shares. They may end in the middle of a frame. */
static void give_back(size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    if (front_left == 0) {
      front_share = share_of(queue[at + 4]);
      front_left = FRAME_HEADER + get_u32(queue + at + 12);
    }
    size_t part = least(front_left, bytes - at);
    if (front_share != NULL) *front_share -= part;
    front_left -= part;
    at += part;
  }
}

void outbox_write(int port) {
  if (queued == 0) return;
  ssize_t put = write(port, queue, queued);
  if (put <= 0) return;
  give_back((size_t)put);
  queued -= (size_t)put;
  memmove(queue, queue + put, queued);
}

uint64_t outbox_dropped(void) { return dropped; }
