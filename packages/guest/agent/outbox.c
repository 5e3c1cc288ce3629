#include "outbox.h"

#include <string.h>
#include <unistd.h>

#include "frame.h"

#define OUTBOX_SIZE (5u * FRAME_MAX)
#define LOG_LIMIT (2u * FRAME_MAX)    /* output of the app may fill so much ... */
#define STREAM_LIMIT (4u * FRAME_MAX) /* ... streams, which never drop anything, so much ... */
#define ANSWER_LIMIT (OUTBOX_SIZE - 4096u) /* ... and answers that anyone can ask for nearly all */

static uint8_t queue[OUTBOX_SIZE];
static size_t queued;
static uint64_t dropped;

static size_t limit_of(uint8_t type) {
  switch (type) {
    case F_LOG: return LOG_LIMIT;
    case F_DATA:
    case F_DATA_ERR: return STREAM_LIMIT;
    case F_PONG:
    case F_ERROR: return ANSWER_LIMIT;
    default: return OUTBOX_SIZE;
  }
}

uint32_t outbox_room(uint8_t type) {
  size_t limit = limit_of(type);
  if (queued + FRAME_HEADER >= limit) return 0;
  size_t room = limit - queued - FRAME_HEADER;
  return room < FRAME_MAX_PAYLOAD ? (uint32_t)room : FRAME_MAX_PAYLOAD;
}

void outbox_send(uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  if (queued + FRAME_HEADER + length > limit_of(type)) dropped++;
  else queued += frame_write(queue + queued, type, stream, payload, length);
}

bool outbox_empty(void) { return queued == 0; }

void outbox_write(int port) {
  if (queued == 0) return;
  ssize_t put = write(port, queue, queued);
  if (put <= 0) return;
  queued -= (size_t)put;
  memmove(queue, queue + put, queued);
}

uint64_t outbox_dropped(void) { return dropped; }
