/* The agent's tasks as a program, for copy.test.ts: task_tool <task> <argument>... What is copied in belongs to
 * the caller. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "copy.h"

int main(int count, char **words) {
  const struct user owner = {.uid = geteuid(), .gid = getegid()};
  if (count < 3) return 125;
  if (strcmp(words[1], "stat") == 0) return copy_stat(words[2]);
  if (strcmp(words[1], "copy-out") == 0) return copy_out(words[2]);
  if (strcmp(words[1], "copy-in") == 0) return copy_in(words[2], &owner);
  if (strcmp(words[1], "connect") == 0) return connect_run(words[2]);
  return 125;
}
