#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static unsigned long number(const char *text, unsigned long most) {
  char *end = NULL;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || text[0] < '0' || text[0] > '9' || value > most)
    fail_usage("not a number that fits:", text);
  return value;
}

static int descriptor(const char *text) {
  return (int)number(text, 1023);
}

static const char *absolute(const char *path) {
  if (path[0] != '/') fail_usage("not an absolute path:", path);
  /* Places are made from these paths; one with .. would be made elsewhere. */
  for (const char *part = path; part != NULL; part = strchr(part + 1, '/'))
    if (strncmp(part, "/..", 3) == 0 && (part[3] == '/' || part[3] == '\0')) fail_usage("a path with ..:", path);
  return path;
}

static struct place *add_place(struct options *options, enum place_kind kind, const char *path) {
  if (options->place_count == MOST_PLACES) fail_usage("too many places", NULL);
  struct place *place = &options->places[options->place_count++];
  *place = (struct place){.kind = kind, .path = absolute(path), .tree = -1};
  return place;
}

static void add_handle(struct handle *handles, size_t *count, const char *fd, const char *name) {
  if (*count == MOST_SOCKETS) fail_usage("too many sockets or taps", NULL);
  handles[(*count)++] = (struct handle){.fd = descriptor(fd), .name = name};
}

static void add_limit(struct options *options, const char *name, const char *value) {
  static const struct {
    const char *name;
    int resource;
  } known[] = {{"core", RLIMIT_CORE}, {"fsize", RLIMIT_FSIZE}, {"memlock", RLIMIT_MEMLOCK},
               {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}};
  for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
    if (strcmp(known[at].name, name) != 0) continue;
    if (options->limit_count == MOST_LIMITS) fail_usage("too many limits", NULL);
    rlim_t most = number(value, (unsigned long)-1);
    options->limits[options->limit_count++] = (struct limit){known[at].resource, {most, most}};
    return;
  }
  fail_usage("not a limit:", name);
}

void options_read(struct options *options, int count, char **arguments) {
  *options = (struct options){.user_namespace = true, .status = -1};
  int at = 1;
  while (at < count && strcmp(arguments[at], "--") != 0) {
    const char *name = arguments[at++];
    const char *values[2] = {NULL, NULL};
    bool two = strcmp(name, "--listen") == 0 || strcmp(name, "--tap") == 0 || strcmp(name, "--limit") == 0 ||
               strcmp(name, "--link") == 0;
    if (strcmp(name, "--own-network") == 0) {
      options->own_network = true;
      continue;
    }
    if (strcmp(name, "--end-with-parent") == 0) {
      options->end_with_parent = true;
      continue;
    }
    for (int value = 0; value < (two ? 2 : 1); value++) {
      if (at >= count) fail_usage("a value is missing after", name);
      values[value] = arguments[at++];
    }
    if (strcmp(name, "--status") == 0) report_to(options->status = descriptor(values[0]));
    else if (strcmp(name, "--uid") == 0) {
      options->uid = (uid_t)number(values[0], 4294967294UL);
      options->user_namespace = false;
      if (options->uid == 0) fail_usage("the program may not be root", NULL);
    } else if (strcmp(name, "--group") == 0) {
      if (options->group_count == sizeof options->groups / sizeof *options->groups) fail_usage("too many groups", NULL);
      options->groups[options->group_count++] = (gid_t)number(values[0], 4294967294UL);
    } else if (strcmp(name, "--root") == 0) options->root = absolute(values[0]);
    else if (strcmp(name, "--cgroup") == 0) options->cgroup = absolute(values[0]);
    else if (strcmp(name, "--preload") == 0)
      options->preload = add_place(options, PLACE_READ, values[0])->path;
    else if (strcmp(name, "--read") == 0) add_place(options, PLACE_READ, values[0]);
    else if (strcmp(name, "--write") == 0) add_place(options, PLACE_WRITE, values[0]);
    else if (strcmp(name, "--device") == 0) add_place(options, PLACE_DEVICE, values[0]);
    else if (strcmp(name, "--link") == 0) add_place(options, PLACE_LINK, values[0])->target = values[1];
    else if (strcmp(name, "--listen") == 0)
      add_handle(options->listeners, &options->listener_count, values[0], absolute(values[1]));
    else if (strcmp(name, "--tap") == 0) add_handle(options->taps, &options->tap_count, values[0], values[1]);
    else if (strcmp(name, "--nice") == 0) options->nice = (int)number(values[0], 19);
    else if (strcmp(name, "--limit") == 0) add_limit(options, values[0], values[1]);
    else fail_usage("not an option:", name);
  }
  if (options->root == NULL) fail_usage("--root is missing", NULL);
  if (at + 1 >= count) fail_usage("there is no program after --", NULL);
  options->program = &arguments[at + 1];
}
