/* The agent's tasks as a program, for copy.test.ts, fs.test.ts and processes.test.ts: task_tool <task> <argument>... What is copied in
 * belongs to the caller, and what fs.h makes to the user with the number OWNER, whose home is HOME. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "copy.h"
#include "fs.h"
#include "processes.h"

int main(int count, char **words) {
  struct user owner = {.uid = geteuid(), .gid = getegid(), .home = "/"};
  if (count == 2 && strcmp(words[1], "ps") == 0) return processes_print();
  if (count < 3) return 125;
  if (strcmp(words[1], "stat") == 0) return copy_stat(words[2]);
  if (strcmp(words[1], "copy-out") == 0) return copy_out(words[2]);
  if (strcmp(words[1], "copy-in") == 0) return copy_in(words[2], &owner);
  if (strcmp(words[1], "connect") == 0) return connect_run(words[2]);
  const char *number = getenv("OWNER"), *home = getenv("HOME");
  if (number != NULL) owner.uid = owner.gid = (uid_t)atoi(number);
  if (home != NULL) snprintf(owner.home, sizeof owner.home, "%s", home);
  snprintf(owner.name, sizeof owner.name, "%s", number != NULL ? number : "");
  owner.unknown = strcmp(owner.name, "nobody-there") == 0;
  return fs_run(words[1], words + 2, &owner);
}
