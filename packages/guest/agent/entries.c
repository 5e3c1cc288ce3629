#define _GNU_SOURCE
#include "entries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "paths.h"
#include "system.h"

#define PAIRS_MAX 512
#define VALUES_MAX 262144u

static char passwd[65536], group[65536];

bool entries_is_temporary(const char *name) {
  const size_t prefix = sizeof ENTRIES_TEMPORARY - 1;
  if (strncmp(name, ENTRIES_TEMPORARY, prefix) != 0 || strlen(name) != prefix + ENTRIES_TEMPORARY_DIGITS) return false;
  return strspn(name + prefix, "0123456789abcdef") == ENTRIES_TEMPORARY_DIGITS;
}

void entries_learn_names(void) {
  system_read_file("/etc/passwd", passwd, sizeof passwd);
  system_read_file("/etc/group", group, sizeof group);
}

/* ---- one record ---- */

__attribute__((format(printf, 1, 2))) static void print_field(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\0');
}

static void print_name(const char *table, unsigned id) {
  char name[USER_NAME_MAX];
  user_name(table, id, name);
  print_field("%s", name);
}

static void print_metadata(const char *path) {
  static char names[65536], values[VALUES_MAX];
  static const char *pairs[PAIRS_MAX][2];
  const size_t prefix = sizeof ENTRIES_METADATA - 1;
  size_t count = 0, used = 0;
  ssize_t size = llistxattr(path, names, sizeof names);
  for (ssize_t at = 0; at < size && count < PAIRS_MAX && used + 1 < VALUES_MAX; at += (ssize_t)strlen(names + at) + 1) {
    if (strncmp(names + at, ENTRIES_METADATA, prefix) != 0) continue;
    ssize_t got = lgetxattr(path, names + at, values + used, VALUES_MAX - used - 1);
    if (got < 0) continue;
    values[used + (size_t)got] = '\0';
    pairs[count][0] = names + at + prefix;
    pairs[count++][1] = values + used;
    used += (size_t)got + 1;
  }
  print_field("%zu", count);
  for (size_t i = 0; i < count; i++) print_field("%s", pairs[i][0]), print_field("%s", pairs[i][1]);
}

static const char *kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  return S_ISLNK(mode) ? "link" : "other";
}

mode_t entries_print(const char *path) {
  char target[PATH_MAX] = "";
  struct stat found;
  if (lstat(path, &found) < 0) return 0;
  if (S_ISLNK(found.st_mode) && realpath(path, target) == NULL) {
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
  }
  print_field("%s", kind_of(found.st_mode));
  print_field("%lld", (long long)found.st_size);
  print_field("%o", found.st_mode & 07777u);
  print_name(passwd, found.st_uid);
  print_name(group, found.st_gid);
  print_field("%lld", (long long)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec);
  print_field("%s", path);
  print_field("%s", target);
  print_metadata(path);
  return found.st_mode;
}

/* ---- lists ---- */

struct names {
  char **list;
  size_t count, room;
};

static void free_names(struct names *names) {
  for (size_t i = 0; i < names->count; i++) free(names->list[i]);
  free(names->list);
}

/* Adds a name. Returns false when memory runs out. */
static bool add_name(struct names *names, const char *name) {
  if (names->count == names->room) {
    size_t room = names->room > 0 ? 2 * names->room : 64;
    char **list = realloc(names->list, room * sizeof *list);
    if (list == NULL) return false;
    names->list = list;
    names->room = room;
  }
  names->list[names->count] = strdup(name);
  return names->list[names->count] != NULL && ++names->count > 0;
}

/* Reads at most `most` names, and one more if there are more. A directory that vanished is empty. */
static bool read_names(const char *directory, struct names *names, size_t most) {
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *open_directory = fd < 0 ? NULL : fdopendir(fd);
  bool done = true;
  if (open_directory == NULL) return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
  for (const struct dirent *found; done && names->count <= most && (found = readdir(open_directory)) != NULL;) {
    if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0 || entries_is_temporary(found->d_name)) continue;
    done = add_name(names, found->d_name);
  }
  closedir(open_directory);
  return done;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static size_t printed;

static int too_many(const char *path) {
  return paths_fault(FS_REFUSED, path, "has too many entries: a list has at most %u", ENTRIES_MOST);
}

/* `path` has room for PATH_MAX bytes, of which `length` are the directory. */
static int list_below(char *path, size_t length, unsigned long depth) {
  struct names names = {0};
  int result = FS_DONE;
  if (!read_names(path, &names, ENTRIES_MOST - printed)) result = paths_errno(path);
  else if (printed + names.count > ENTRIES_MOST) result = too_many(path);
  if (names.count > 0) qsort(names.list, names.count, sizeof *names.list, by_bytes);
  for (size_t i = 0; i < names.count && result == FS_DONE; i++) {
    size_t base = length == 1 ? 1 : length + 1, longer = base + strlen(names.list[i]); /* the root ends with its slash */
    if (printed == ENTRIES_MOST) result = too_many(path);
    else if (longer >= PATH_MAX) result = paths_fault(FS_REFUSED, path, "has entries whose paths are too long");
    if (result != FS_DONE) break;
    path[base - 1] = '/';
    strcpy(path + base, names.list[i]);
    mode_t mode = entries_print(path);
    if (mode != 0) printed++;
    if (S_ISDIR(mode) && depth > 1) result = list_below(path, longer, depth - 1);
    path[length] = '\0';
  }
  free_names(&names);
  return result;
}

int entries_list(const char *directory, unsigned long depth) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", directory);
  int result = list_below(path, strlen(path), depth);
  return fflush(stdout) == 0 ? result : FS_FAILED;
}

int entries_show(const char *path) {
  if (entries_print(path) == 0) return paths_missing(path);
  return fflush(stdout) == 0 ? FS_DONE : FS_FAILED;
}
