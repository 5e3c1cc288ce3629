#include "outbox.h"

#include <string.h>
#include <unistd.h>

#include "frame.h"

#define OUTBOX_SIZE (5u * FRAME_MAX)
#define LOG_SHARE (2u * FRAME_MAX)    /* output of the app may fill so much ... */
#define STREAM_SHARE (2u * FRAME_MAX) /* ... streams, which never drop anything, so much, so that neither keeps out the other ... */
#define CONTROL_ROOM 4096u            /* ... and this is left alone by all of these, and by answers that anyone can ask for */

static uint8_t queue[OUTBOX_SIZE];
static size_t queued;
static size_t logged, streamed;  /* of the bytes in line: the app's output, bytes of streams */
static size_t front_left;        /* bytes of the first frame in line, once its beginning is written; 0 before that */
static size_t *front_share;      /* what they count as */
static uint64_t dropped;

static size_t *share_of(uint8_t type) {
  if (type == F_LOG) return &logged;
  return type == F_DATA || type == F_DATA_ERR ? &streamed : NULL;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Bytes that a frame of this type may have, with its header. */
static size_t room_for(uint8_t type) {
  bool control = share_of(type) == NULL && type != F_PONG && type != F_ERROR;
  size_t limit = control ? OUTBOX_SIZE : OUTBOX_SIZE - CONTROL_ROOM;
  size_t room = queued < limit ? limit - queued : 0;
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

/* Gives back the shares of bytes that are written: whole frames and parts of them. */
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
