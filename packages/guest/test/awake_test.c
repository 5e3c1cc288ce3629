/* Tests what the agent does, and in which order, when frames arrive in a frozen machine. This includes all of
 * main.c. The linker's --wrap redirects the calls that would change this computer to functions that only note them. */
#define _GNU_SOURCE
#define main agent_main
#include "../agent/main.c"
#undef main

#include <linux/random.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static char done[1000];
static uint64_t clock_set_to;
static uint8_t pool[128];

static void note(const char *what) { strncat(done, what, sizeof done - strlen(done) - 1); }

int __wrap_clock_settime(clockid_t clock, const struct timespec *to);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_clock_settime(clockid_t clock, const struct timespec *to) {
  note("clock ");
  EXPECT(clock == CLOCK_REALTIME);
  clock_set_to = (uint64_t)to->tv_sec * 1000000000u + (uint64_t)to->tv_nsec;
  return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  (void)fd;
  if (request == RNDADDENTROPY) {
    va_start(rest, request);
    const struct rand_pool_info *info = va_arg(rest, const struct rand_pool_info *);
    va_end(rest);
    EXPECT(info->entropy_count == 64 * 8 && info->buf_size == 64);
    memcpy(pool, info->buf, 64);
    note("entropy ");
  } else {
    note(request == RNDRESEEDCRNG ? "reseed " : "ioctl ");
  }
  return 0;
}

void group_make(void) {}
void group_join(void) {}
void group_freeze(int deadline_ms) { (void)deadline_ms, note("freeze "); }
void group_thaw(void) { note("thaw "); }

/* The machine has the memory of another one until it becomes itself. */
static bool foreign;
static const char *refusal;

void identity_learn(void) {}
bool identity_foreign(void) { return foreign; }
const char *identity_become(struct config *config, struct config *next, int *error) {
  (void)config;
  note(next->hostname != NULL ? next->hostname : "nobody");
  *error = refusal != NULL ? ENOENT : 0;
  if (refusal == NULL) foreign = false;
  return refusal;
}

void connections_prepare(void) {}

int connections_end(const struct carried *only) {
  char text[60];
  snprintf(text, sizeof text, "end %08x/%08x ", (unsigned)only->base, (unsigned)only->mask);
  note(text);
  if (only->gateway != 0) snprintf(text, sizeof text, "and from %08x ", (unsigned)only->gateway), note(text);
  return 0;
}

static void take(uint8_t type, const void *payload, uint32_t length) {
  struct frame frame = {.type = type, .length = length, .payload = payload};
  done[0] = '\0';
  handle(&frame);
}

static void awake_sets_clock_and_randomness_before_the_app_continues(void) {
  uint8_t payload[AWAKE_STOOD];
  for (size_t i = 0; i < sizeof payload; i++) payload[i] = (uint8_t)i;
  put_u64(payload, 1700000000123456789u);
  take(F_QUIESCE, NULL, 0);
  EXPECT_TEXT(done, "freeze ");
  EXPECT(agent.quiet);
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "clock entropy reseed thaw ");
  EXPECT(clock_set_to == 1700000000123456789u && memcmp(pool, payload + AWAKE_ENTROPY, 64) == 0);
  EXPECT(!agent.quiet);
}

static uint64_t wall(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* This computer's clock plays that of a machine that slept for an hour. */
static void clock_moves_forward_by_the_sleep_however_late_the_message_is(void) {
  const uint64_t hour = 3600000000000u, late = 50000000u, second = 1000000000u;
  uint8_t payload[AWAKE_STOOD + 8] = {0};
  uint64_t before = wall();
  put_u64(payload, before + hour - late);
  put_u64(payload + AWAKE_STOOD, hour);
  take(F_AWAKE, payload, sizeof payload);
  EXPECT(clock_set_to >= before + hour && clock_set_to <= wall() + hour);
  EXPECT(memcmp(pool, payload + AWAKE_ENTROPY, 64) == 0);
  put_u64(payload + AWAKE_STOOD, hour + 2 * second); /* would be far ahead of the message */
  take(F_AWAKE, payload, sizeof payload);
  EXPECT(clock_set_to == before + hour - late);
  put_u64(payload + AWAKE_STOOD, hour - second); /* behind it */
  take(F_AWAKE, payload, sizeof payload);
  EXPECT(clock_set_to == before + hour - late);
  put_u64(payload + AWAKE_STOOD, UINT64_MAX);
  take(F_AWAKE, payload, sizeof payload);
  EXPECT(clock_set_to == before + hour - late);
}

/* 198.18.0.0/15 in the message, as the platform sends it. */
static void connections_that_something_else_carried_end_before_the_app_continues(void) {
  uint8_t hello[16] = {0}, payload[AWAKE_INWARD + 1] = {0};
  put_u64(hello + 8, 7);
  take(F_HELLO_REQUEST, hello, sizeof hello);
  put_u32(payload + AWAKE_APPS, 0xc6120000);
  put_u32(payload + AWAKE_APPS + 4, 0xfffe0000);
  put_u64(payload + AWAKE_CARRIER, 7);
  take(F_QUIESCE, NULL, 0);
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "clock entropy reseed thaw ");
  put_u64(payload + AWAKE_CARRIER, 8);
  take(F_QUIESCE, NULL, 0);
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "clock end c6120000/fffe0000 entropy reseed thaw ");
  take(F_QUIESCE, NULL, 0);
  take(F_AWAKE, payload, sizeof payload); /* it carries them now */
  EXPECT_TEXT(done, "clock entropy reseed thaw ");
  agent.config.gateway = "10.213.0.1";
  payload[AWAKE_INWARD] = 1;
  put_u64(payload + AWAKE_CARRIER, 9);
  take(F_QUIESCE, NULL, 0);
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "clock end c6120000/fffe0000 and from 0ad50001 entropy reseed thaw ");
  agent.config.gateway = NULL;
  put_u64(payload + AWAKE_CARRIER, 10);
  take(F_QUIESCE, NULL, 0);
  take(F_AWAKE, payload, AWAKE_CARRIER); /* a platform that carries nothing for it */
  EXPECT_TEXT(done, "clock entropy reseed thaw ");
}

/* A new platform says hello to a machine that the one before was about to wake. */
static void a_quiet_machine_is_told_by_the_wake_and_not_by_the_hello_before_it(void) {
  uint8_t hello[16] = {0};
  put_u64(hello + 8, 11);
  take(F_HELLO_REQUEST, hello, sizeof hello);
  put_u64(hello + 8, 12);
  take(F_QUIESCE, NULL, 0);
  take(F_HELLO_REQUEST, hello, sizeof hello);
  EXPECT(agent.carrier == 11);
  take(F_HELLO_REQUEST, hello, sizeof hello);
  EXPECT(agent.carrier == 12);
}

static void awake_that_is_cut_short_changes_nothing(void) {
  take(F_QUIESCE, NULL, 0);
  take(F_AWAKE, "short", 5);
  EXPECT_TEXT(done, "");
  take(F_HELLO_REQUEST, NULL, 0); /* is answered, and the app continues */
  EXPECT_TEXT(done, "thaw ");
}

static void no_program_is_started_in_a_frozen_group(void) {
  take(F_QUIESCE, NULL, 0);
  struct frame exec = {.type = F_EXEC, .stream = 16, .payload = (const uint8_t *)""};
  done[0] = '\0';
  handle(&exec);
  EXPECT_TEXT(done, "thaw ");
  take(F_QUIESCE, NULL, 0);
  agent.refused = "not in a test";
  take(F_RUN, NULL, 0);
  EXPECT_TEXT(done, "thaw ");
}

static void a_fork_stays_frozen_until_it_has_become_itself(void) {
  static const uint8_t name[] = {C_HOSTNAME, 4, 0, 0, 0, 'f', 'o', 'r', 'k'};
  uint8_t payload[AWAKE_STOOD] = {0};
  take(F_QUIESCE, NULL, 0);
  foreign = true;
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "");
  take(F_HELLO_REQUEST, NULL, 0);
  EXPECT_TEXT(done, "");
  struct frame exec = {.type = F_EXEC, .stream = 16, .payload = (const uint8_t *)""};
  handle(&exec);
  agent.quiet_until = 0; /* as after QUIET_MS */
  speak();
  EXPECT_TEXT(done, "");
  EXPECT(agent.quiet && agent.quiet_until > system_monotonic_ms());
  take(F_SET, name, sizeof name);
  refusal = "not now";
  take(F_BECOME, NULL, 0);
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "");
  refusal = NULL;
  take(F_SET, "\xffwrong", 6);
  take(F_BECOME, NULL, 0);
  EXPECT_TEXT(done, ""); /* a configuration is never used in part */
  take(F_SET, name, sizeof name);
  take(F_BECOME, NULL, 0);
  EXPECT_TEXT(done, "fork");
  take(F_BECOME, NULL, 0); /* the platform may ask again */
  EXPECT_TEXT(done, "");
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "clock entropy reseed thaw ");
}

static void a_machine_with_an_earlier_memory_of_its_own_becomes_itself_too(void) {
  static const uint8_t name[] = {C_HOSTNAME, 4, 0, 0, 0, 's', 'e', 'l', 'f'};
  uint8_t payload[AWAKE_STOOD] = {0};
  take(F_QUIESCE, NULL, 0);
  take(F_SET, name, sizeof name);
  take(F_BECOME, NULL, 0);
  EXPECT_TEXT(done, "self");
  take(F_AWAKE, payload, sizeof payload);
  EXPECT_TEXT(done, "clock entropy reseed thaw ");
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  streams_init(&agent.config);
  RUN(awake_sets_clock_and_randomness_before_the_app_continues);
  RUN(clock_moves_forward_by_the_sleep_however_late_the_message_is);
  RUN(connections_that_something_else_carried_end_before_the_app_continues);
  RUN(a_quiet_machine_is_told_by_the_wake_and_not_by_the_hello_before_it);
  RUN(awake_that_is_cut_short_changes_nothing);
  RUN(no_program_is_started_in_a_frozen_group);
  RUN(a_fork_stays_frozen_until_it_has_become_itself);
  RUN(a_machine_with_an_earlier_memory_of_its_own_becomes_itself_too);
  streams_reset(0);
  return end_tests();
}
