/* A platform in small, for tests of the agent's streams: runs the agent's loop one turn at a time and keeps what the
 * streams send. No control group: group_join and its like do nothing here. */
#ifndef HIBERNAUT_STREAMS_BENCH_H
#define HIBERNAUT_STREAMS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCKET_ROOM 108
#define KEPT (1u << 20) /* most bytes kept of one output */

/* All that came of one stream. */
struct record {
  uint32_t id;
  char *out, *err;       /* texts */
  size_t out_size, err_size;
  uint64_t credit_given; /* that the platform may send more */
  bool accepted, end, reset, exited;
  uint32_t code, signal;
  uint8_t how;
  char text[256];        /* of a reset or an exit */
};

/* Opens the socket of the local API at bench_socket(), and the way to the platform. */
void bench_open(void);
const char *bench_socket(void);

/* One turn of the agent's loop, which waits at most so long for something to do, and then the platform reads all. */
void bench_turn(int wait_ms);

/* The same without the platform's reading: what is sent stays in line. */
void bench_turn_unread(int wait_ms);

/* How many files the agent polls for are ready right now: more than 0 where nothing can be done is a busy loop. */
int bench_ready(void);

/* What came of the stream, made at the first look. */
struct record *bench_record(uint32_t id);

/* The same, but NULL when nothing came of it yet. */
struct record *bench_find(uint32_t id);

/* Forgets the records of streams that ended, and says how many were connections. */
uint64_t bench_forget_ended(void);

/* The number of the connection that was accepted last. */
uint32_t bench_newest(void);

/* The newest connection that was accepted, after turns until there is one newer than `after`; 0 when there is none. */
uint32_t bench_accepted(uint32_t after);

/* Everything ends, as for another platform; records are forgotten. */
void bench_reset(void);

/* A frame from the platform. */
void bench_say(uint8_t type, uint32_t stream, const void *payload, uint32_t length);
void bench_say_u32(uint8_t type, uint32_t stream, uint32_t value);

/* A program connects; non-blocking. */
int bench_connect(void);

/* Open files of this process. */
int bench_files(void);

/* Turns until the condition holds; a fault if it does not within ten seconds. */
#define UNTIL(condition)                                                             \
  do {                                                                               \
    uint64_t until_ = system_monotonic_ms() + 10000;                                 \
    while (!(condition) && system_monotonic_ms() < until_) bench_turn(20);           \
    EXPECT(condition);                                                               \
  } while (0)

#endif
