/* A small platform for tests of the agent's streams: runs the agent's loop one turn at a time and keeps what the
 * streams send. There is no control group: group_join() and the like do nothing. */
#ifndef HIBERNAUT_STREAMS_BENCH_H
#define HIBERNAUT_STREAMS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCKET_ROOM 108
#define KEPT (1u << 20) /* how many bytes of one output are kept, at most */

/* All that arrived from one stream. */
struct record {
  uint32_t id;
  char *out, *err;       /* texts */
  size_t out_size, err_size;
  uint64_t credit_given; /* how many more bytes the platform may send */
  bool accepted, end, reset, exited, kept;
  uint8_t flags;         /* from F_KEPT, as the next two */
  uint32_t waiting;
  uint32_t announced;    /* how many F_KEPT came */
  char label[100];
  uint32_t pid;          /* from F_EXEC_STARTED */
  uint32_t code, signal;
  uint8_t how;
  char text[256];        /* from a reset or an exit */
};

/* Opens the socket of the local API at bench_socket(), and the channel to the platform. */
void bench_open(void);
const char *bench_socket(void);

/* Runs one turn of the agent's loop, which waits at most this long for something to do. Then the platform reads
 * everything. */
void bench_turn(int wait_ms);

/* The same, but the platform reads nothing, so that what is sent stays queued. */
void bench_turn_unread(int wait_ms);

/* Returns how many of the files that the agent polls for are ready. If nothing can be done about them, that is a busy
 * loop. */
int bench_ready(void);

/* Returns what arrived from the stream. Creates the record if there is none. */
struct record *bench_record(uint32_t id);

/* The same, but returns NULL if there is none. */
struct record *bench_find(uint32_t id);

/* Forgets the records of streams that have ended, and returns how many were connections. */
uint64_t bench_forget_ended(void);

/* Returns the number of the connection that was accepted last. */
uint32_t bench_newest(void);

/* Runs turns until a connection newer than `after` is accepted, and returns the newest one, or 0. */
uint32_t bench_accepted(uint32_t after);

/* Forgets all records, and is another platform from now on. */
void bench_take_over(void);

/* The same, and ends what it is told of. */
void bench_reset(void);

/* Sends a frame from the platform. */
void bench_say(uint8_t type, uint32_t stream, const void *payload, uint32_t length);
void bench_say_u32(uint8_t type, uint32_t stream, uint32_t value);

/* Connects to the local API, as a program does. Returns a non-blocking socket. */
int bench_connect(void);

/* Returns how many files this process has open. */
int bench_files(void);

/* Runs turns until the condition holds. Fails if that takes more than ten seconds. */
#define UNTIL(condition)                                                             \
  do {                                                                               \
    uint64_t until_ = system_monotonic_ms() + 10000;                                 \
    while (!(condition) && system_monotonic_ms() < until_) bench_turn(20);           \
    EXPECT(condition);                                                               \
  } while (0)

#endif
