/* What the agent's tests share: expectations, a line per test, and random numbers. */
#ifndef HIBERNAUT_CHECK_H
#define HIBERNAUT_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool failed;
static int failures;

static inline void expect_at(bool holds, const char *what, int line) {
  if (holds) return;
  printf("  line %d: expected %s\n", line, what);
  failed = true;
}
#define EXPECT(condition) expect_at((condition), #condition, __LINE__)

static inline void expect_text_at(const char *got, const char *wanted, int line) {
  if (got != NULL && wanted != NULL ? strcmp(got, wanted) == 0 : got == wanted) return;
  printf("  line %d: expected \"%s\", got \"%s\"\n", line, wanted != NULL ? wanted : "(null)", got != NULL ? got : "(null)");
  failed = true;
}
#define EXPECT_TEXT(a, b) expect_text_at((a), (b), __LINE__)

/* A fixed seed, so that a failure can be repeated (xorshift64). */
#define SEED 0x4849424552ull
static uint64_t random_state = SEED;
static inline uint32_t random_below(uint32_t limit) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)((random_state >> 16) % limit);
}

static inline void run_test(const char *name, void (*test)(void)) {
  failed = false;
  test();
  printf("%s %s\n", failed ? "FAIL" : "ok  ", name);
  failures += failed;
}
#define RUN(test) run_test(#test, test)

/* Prints the last line and returns the exit code. */
static inline int end_tests(void) {
  printf("%s\n", failures == 0 ? "all passed" : "some failed");
  return failures == 0 ? 0 : 1;
}

#endif
