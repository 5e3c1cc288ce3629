/* One stream: what commands and connections have in common, and how credit controls the flow of its bytes. */
#ifndef HIBERNAUT_FLOW_H
#define HIBERNAUT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "frame.h"

#define FLOW_CHUNK 16384u       /* bytes of one stream at most before it is the next one's turn */
#define FLOW_CONTROL_ROOM 512u  /* bytes that the control frames of a stream need in one turn, at most */

enum command_end { ENDED = 0, TIMED_OUT = 1, NOT_STARTED = 2 };

struct stream {
  uint32_t id;        /* 0: unused */
  bool command, terminal;
  bool task;          /* a command that the agent carries out itself: sends F_END after its output */
  bool ends_itself;   /* a task that notices the end of its files and must not be killed, so that it can clean up */
  bool cleans_up;     /* a task that has to clean up, and does that at SIGTERM */
  int in, out, err;   /* in == out for connections and terminals; -1 when done */
  uint8_t *waiting;   /* STREAM_WINDOW bytes of room for what goes to `in` */
  uint32_t used;      /* bytes that wait */
  bool finish;        /* F_END has arrived: `in` ends after what waits */
  uint32_t passed_on; /* bytes written to `in` and not yet returned as credit */
  uint32_t credit;    /* bytes that may be sent */
  bool out_ended, end_sent;
  const char *broken; /* F_RESET has to be sent, with this text */
  pid_t pid;
  pid_t untold_pid;   /* F_EXEC_STARTED has to be sent with it; 0: it was */
  pid_t first_pid;    /* the same as pid, also once it has exited */
  uint8_t *label;     /* of a command that is kept for the next platform; NULL: it is not */
  size_t label_length;
  bool untold;        /* F_KEPT has to be sent before anything else */
  bool exited;
  int out_left, err_left; /* once the command has exited: how many bytes that it wrote may still have to be read */
  uint32_t code, signal;
  enum command_end how;
  uint64_t kill_at;   /* 0: never */
  char why[320];
};

/* Handle F_DATA and F_CREDIT. */
void flow_take(struct stream *stream, const struct frame *data);
void flow_add_credit(struct stream *stream, uint32_t bytes);

/* Writes what waits to `in`, and ends `in` if nothing follows. */
void flow_feed(struct stream *stream);

/* Whether flow_feed() has something left to do. */
bool flow_wants_to_feed(const struct stream *stream);

/* Returns credit for what was passed on. */
void flow_grant(struct stream *stream);

/* Whether output may be sent: there is credit, and room for an entire chunk. */
bool flow_may_send(const struct stream *stream, uint8_t type);

/* Reads from `out` or `err` once, and sends what was read. Returns false when there is nothing to send. If there never
 * will be, it sets *fd to -1, or out_ended. */
bool flow_forward(struct stream *stream, int *fd, uint8_t type);

/* Closes the files and frees the stream. */
void flow_close(struct stream *stream);

#endif
