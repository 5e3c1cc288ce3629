/* Fuzzes the agent's streams and its outbox with random frames and random programs: nothing crashes, no file stays
 * open, neither side gets more than its credit, and the outbox keeps its rules. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "config.h"
#include "frame.h"
#include "outbox.h"
#include "streams.h"
#include "streams_bench.h"
#include "system.h"

#define ROUNDS 200000 /* by default; an argument replaces it */
#define MOST_MS 15000 /* a slow computer does fewer rounds, and prints how many */
#define ROUNDS_PER_CONNECTION 100 /* at most: otherwise the fuzz tests next to nothing */
#define PROGRAMS 40
#define COMMANDS_EVERY 2000 /* rounds, because each command is a real process */

static struct config app;
static uint32_t rounds = ROUNDS;
static uint8_t bytes[FRAME_MAX];
static int programs[PROGRAMS];
static uint64_t accepted;
static uint64_t sent_to[1u << 16]; /* by stream: bytes of F_DATA since it began */
static uint64_t credit_to[1u << 16];

/* ---- streams ---- */

static uint32_t some_stream(void) {
  uint32_t newest = bench_newest();
  switch (random_below(8)) {
    case 0: return random_below(40);
    case 1: return (uint32_t)random_below(UINT32_MAX);
    default: return newest > 2 * PROGRAMS ? newest - 2 * random_below(PROGRAMS) : 17 + 2 * random_below(PROGRAMS);
  }
}

static uint32_t some_length(void) {
  switch (random_below(6)) {
    case 0: return 0;
    case 1: return 4;
    case 2: return FRAME_MAX_PAYLOAD - random_below(10);
    default: return random_below(3000);
  }
}

static void say_something(uint32_t round) {
  static const uint8_t types[] = {F_DATA, F_DATA, F_DATA, F_CREDIT, F_CREDIT, F_CREDIT, F_END, F_RESET, F_RESIZE, F_SIGNAL, F_EXEC, F_EXEC_STARTED, F_KEPT, 0x77};
  uint8_t type = types[random_below(sizeof types)];
  uint32_t id = some_stream(), length = some_length();
  if (type == F_RESET && random_below(4) != 0) type = F_DATA;
  if (type == F_DATA) length = length < 4000 || random_below(20) == 0 ? length : 100;
  for (uint32_t i = 0; i < 16 && i < length; i++) bytes[i] = (uint8_t)random_below(i % 4 == 3 ? 2 : 256);
  if (type == F_EXEC && random_below(3) == 0) { /* records that are valid except for a byte or two */
    static const uint8_t good[] = {C_ENV, 3, 0, 0, 0, 'A', '=', 'b', C_TERMINAL, 4, 0, 0, 0, 1, 0, 1, 0, C_TIMEOUT, 4, 0, 0, 0, 9, 0, 0, 0,
                                   C_LOGIN, 0, 0, 0, 0, C_LABEL, 1, 0, 0, 0, 'x'};
    memcpy(bytes, good, length = sizeof good);
    bytes[random_below(length)] = (uint8_t)random_below(256);
  }
  if (round % COMMANDS_EVERY == 0) {
    static const uint8_t cat[] = {C_ARG, 8, 0, 0, 0, '/', 'b', 'i', 'n', '/', 'c', 'a', 't', C_INPUT, 0, 0, 0, 0};
    static const uint8_t label[] = {C_LABEL, 3, 0, 0, 0, 'a', 0, 'b'};
    memcpy(bytes, cat, length = sizeof cat);
    if (random_below(2) == 0) memcpy(bytes + length, label, sizeof label), length += sizeof label;
    type = F_EXEC, id = 100000 + round;
  }
  if (id < 1u << 16 && type == F_DATA) sent_to[id] += length;
  if (id < 1u << 16 && type == F_CREDIT && length == 4) {
    /* Counted as in the agent: never more than one window beyond what arrived. */
    credit_to[id] += get_u32(bytes);
  }
  bench_say(type, id, bytes, length);
}

static void do_something(void) {
  int *program = &programs[random_below(PROGRAMS)];
  if (*program < 0) {
    *program = bench_connect();
    return;
  }
  switch (random_below(12)) {
    case 0: close(*program), *program = -1; break;
    case 1: shutdown(*program, SHUT_WR); break;
    case 2: shutdown(*program, SHUT_RD); break;
    case 3: case 4: case 5: case 6: while (read(*program, bytes, sizeof bytes) == sizeof bytes) {} break;
    default: if (write(*program, bytes, random_below(20000)) < 0) {} break;
  }
}

static void check_credit(void) {
  for (uint32_t id = 17; id < 1u << 16 && id <= bench_newest(); id += 2) {
    const struct record *record = bench_find(id);
    if (record == NULL) continue;
    EXPECT(record->out_size <= STREAM_WINDOW + credit_to[id] || record->out_size == KEPT);
    EXPECT(record->credit_given <= sent_to[id]);
  }
}

static void streams_take_anything(void) {
  uint64_t until = system_monotonic_ms() + MOST_MS;
  uint32_t round = 0;
  for (int i = 0; i < PROGRAMS; i++) programs[i] = -1;
  for (; round < rounds && !failed && (round % 1000 != 0 || system_monotonic_ms() < until); round++) {
    say_something(round);
    if (random_below(3) == 0) do_something();
    if (random_below(4) == 0) bench_turn_unread(0);
    if (random_below(8) == 0) bench_turn(0);
    EXPECT(outbox_room(F_DATA) <= FRAME_MAX_PAYLOAD && outbox_room(F_RESET) <= FRAME_MAX_PAYLOAD);
    if (round % 1000 != 999) continue;
    check_credit();
    accepted += bench_forget_ended();
    if (random_below(20) == 0) streams_reset(round);
  }
  for (int i = 0; i < PROGRAMS; i++) if (programs[i] >= 0) close(programs[i]);
  printf("  seed %#llx: %u frames, %llu connections\n", (unsigned long long)SEED, round, (unsigned long long)accepted);
  EXPECT(accepted > round / ROUNDS_PER_CONNECTION);
}

/* ---- the outbox ---- */

static void outbox_keeps_its_shares(void) {
  uint32_t logs = 0, data = 0, answers = 0;
  while (outbox_send(F_LOG, 1, bytes, 10000)) logs++;
  while (outbox_room(F_DATA) >= 10000) data += outbox_send(F_DATA, 20, bytes, 10000);
  EXPECT(logs == data && logs == 2 * FRAME_MAX / 10020); /* neither keeps the other out */
  while (outbox_send(F_PONG, 0, bytes, 1000)) answers++;
  EXPECT(answers > 50 && outbox_room(F_DATA) < 16384);
  EXPECT(outbox_send(F_QUIESCED, 0, NULL, 0)); /* always */
  bench_turn(0);
  EXPECT(outbox_empty());
  EXPECT(outbox_room(F_LOG) == FRAME_MAX_PAYLOAD && outbox_room(F_DATA) == FRAME_MAX_PAYLOAD);
}

/* However the writes are cut, every byte that was queued comes out, and every share is returned. */
static void outbox_written_in_pieces(void) {
  static const uint8_t types[] = {F_LOG, F_DATA, F_DATA_ERR, F_PONG, F_CREDIT};
  static uint8_t sink[65536];
  int way[2];
  uint64_t in = 0, out = 0;
  EXPECT(pipe2(way, O_NONBLOCK) == 0);
  fcntl(way[1], F_SETPIPE_SZ, 4096);
  for (uint32_t round = 0; round < rounds / 4; round++) {
    uint8_t type = types[random_below(sizeof types)];
    uint32_t length = random_below(type == F_CREDIT ? 4 : 20000);
    uint32_t room = outbox_room(type);
    bool taken = outbox_send(type, 20, bytes, length);
    EXPECT(taken == (length <= room && (room > 0 || length > 0)) || length == room);
    if (taken) in += FRAME_HEADER + length;
    outbox_write(way[1]);
    ssize_t got = read(way[0], sink, random_below(2 * 10000) + 1);
    if (got > 0) out += (uint64_t)got;
  }
  while (!outbox_empty() || out < in) {
    outbox_write(way[1]);
    ssize_t got = read(way[0], sink, sizeof sink);
    if (got <= 0 && outbox_empty()) break;
    if (got > 0) out += (uint64_t)got;
  }
  EXPECT(in == out && outbox_room(F_LOG) == FRAME_MAX_PAYLOAD && outbox_room(F_DATA) == FRAME_MAX_PAYLOAD);
  close(way[0]), close(way[1]);
}

int main(int argc, char **argv) {
  if (argc > 1) rounds = (uint32_t)strtoul(argv[1], NULL, 10);
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGPIPE, SIG_IGN);
  system_open_standard_files();
  streams_init(&app);
  bench_open();
  RUN(outbox_keeps_its_shares);
  RUN(outbox_written_in_pieces);
  int files = bench_files();
  RUN(streams_take_anything);
  bench_turn(0);
  bench_reset();
  if (bench_files() != files) printf("FAIL %d files were left open\n", bench_files() - files), failures++;
  return end_tests();
}
