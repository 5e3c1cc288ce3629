/* One stream: what commands and connections have in common, and how its bytes flow under credit. */
#ifndef HIBERNAUT_FLOW_H
#define HIBERNAUT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "frame.h"

#define FLOW_CHUNK 16384u       /* most bytes of one stream before the next one's turn */
#define FLOW_CONTROL_ROOM 512u  /* what the control frames that a stream sends in one turn need, at most */

enum command_end { ENDED = 0, TIMED_OUT = 1, NOT_STARTED = 2 };

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
  int out_left, err_left; /* once it exited: bytes that it had written and that are still to be read, at most */
  uint32_t code, signal;
  enum command_end how;
  uint64_t kill_at;   /* 0: never */
  char why[200];
};

/* F_DATA and F_CREDIT of the platform. */
void flow_take(struct stream *stream, const struct frame *data);
void flow_add_credit(struct stream *stream, uint32_t bytes);

/* Writes what waits to `in`, and ends it when that is all. */
void flow_feed(struct stream *stream);

/* Whether flow_feed has something left to do. */
bool flow_wants_to_feed(const struct stream *stream);

/* Tells the platform what was passed on. */
void flow_grant(struct stream *stream);

/* Whether output of a stream may be sent: there is credit, and room for the whole of a chunk. */
bool flow_may_send(const struct stream *stream, uint8_t type);

/* Reads from `out` or `err` once and sends it. False when there is nothing more, now or ever; then *fd is -1, or
 * out_ended, if it is ever. */
bool flow_forward(struct stream *stream, int *fd, uint8_t type);

/* Closes the files and frees the entry. */
void flow_close(struct stream *stream);

#endif
