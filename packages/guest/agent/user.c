#include "user.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the colon-separated field `index` of a line to out. Returns false when it is absent or too long. */
static bool field(const char *line, int index, char *out, size_t size) {
  size_t end = strcspn(line, "\n");
  const char *stop = line + end;
  for (; index > 0; index--) {
    line = memchr(line, ':', (size_t)(stop - line));
    if (line == NULL) return false;
    line++;
  }
  const char *colon = memchr(line, ':', (size_t)(stop - line));
  size_t length = (size_t)((colon != NULL ? colon : stop) - line);
  if (length >= size) return false;
  memcpy(out, line, length);
  out[length] = '\0';
  return true;
}

static const char *next_line(const char *line) {
  line += strcspn(line, "\n");
  return *line == '\n' ? line + 1 : line;
}

static bool number(const char *text, unsigned *value) {
  if (*text < '0' || *text > '9') return false;
  char *end;
  unsigned long parsed = strtoul(text, &end, 10);
  if (*end != '\0' || parsed > 0xfffffffeul) return false;
  *value = (unsigned)parsed;
  return true;
}

/* Returns the line whose field `index` is `wanted`, or NULL. */
static const char *line_with(const char *table, int index, const char *wanted) {
  char text[256];
  for (const char *line = table; *line != '\0'; line = next_line(line))
    if (field(line, index, text, sizeof text) && strcmp(text, wanted) == 0) return line;
  return NULL;
}

static bool listed(const char *members, const char *name) {
  size_t length = strlen(name);
  while (*members != '\0') {
    size_t member = strcspn(members, ",");
    if (member == length && strncmp(members, name, length) == 0) return true;
    members += member + (members[member] == ',');
  }
  return false;
}

static void add_groups(struct user *user, const char *name, const char *group) {
  char members[4096], id[16];
  unsigned gid;
  for (const char *line = group; *line != '\0' && user->group_count < USER_MAX_GROUPS; line = next_line(line))
    if (field(line, 3, members, sizeof members) && listed(members, name) && field(line, 2, id, sizeof id) && number(id, &gid))
      user->groups[user->group_count++] = gid;
}

const char *user_find(struct user *user, const char *spec, const char *passwd, const char *group) {
  char name[256], text[256];
  unsigned id = 0;
  memset(user, 0, sizeof *user);
  if (!field(spec, 0, name, sizeof name)) return "the image's user name is too long";
  if (name[0] == '\0') strcpy(name, "0");
  const char *line = number(name, &id) ? line_with(passwd, 2, name) : line_with(passwd, 0, name);
  if (line == NULL && !number(name, &id)) return "the image's user is not in its /etc/passwd";
  user->uid = id;
  strcpy(user->home, "/");
  strcpy(user->name, name);
  if (line != NULL) {
    if (!field(line, 2, text, sizeof text) || !number(text, &id)) return "the image's /etc/passwd has no valid id for its user";
    user->uid = id;
    if (field(line, 3, text, sizeof text) && number(text, &id)) user->gid = id;
    if (field(line, 5, text, sizeof text) && text[0] == '/') strcpy(user->home, text);
    if (field(line, 0, text, sizeof text)) {
      strcpy(user->name, text);
      add_groups(user, text, group);
    }
  }
  if (!field(spec, 1, text, sizeof text) || text[0] == '\0') return NULL;
  if (!number(text, &id)) {
    line = line_with(group, 0, text);
    if (line == NULL || !field(line, 2, text, sizeof text) || !number(text, &id)) return "the image's group is not in its /etc/group";
  }
  user->gid = id;
  user->group_count = 0; /* as with `docker run --user a:b`: a group that is named is the only one */
  return NULL;
}

void user_name(const char *table, unsigned id, char name[USER_NAME_MAX]) {
  char text[16];
  snprintf(text, sizeof text, "%u", id);
  const char *line = line_with(table, 2, text);
  if (line == NULL || !field(line, 0, name, USER_NAME_MAX)) strcpy(name, text);
}

const char *user_path(const struct user *user, const char *path, char *out, size_t size) {
  if (path[0] == '/') return path;
  if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) path++;
  path += strspn(path, "/");
  const char *slash = path[0] == '\0' || strcmp(user->home, "/") == 0 ? "" : "/";
  return snprintf(out, size, "%s%s%s", user->home, slash, path) < (int)size ? out : path;
}
