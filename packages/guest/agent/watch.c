#define _GNU_SOURCE
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entries.h"
#include "paths.h"

#define CHANGES (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_DELETE | IN_ATTRIB)
#define ITSELF (IN_DELETE_SELF | IN_MOVE_SELF) /* of the directory that was asked for; others are reported by their parents */

struct watch {
  int number;
  char *name; /* relative to the directory, "" for itself */
};

static struct {
  int fd;
  bool recursive, with_entries;
  const char *root;
  struct watch list[WATCHES_MAX]; /* by number, as the kernel counts upwards */
  size_t count;
  uint32_t finished; /* the cookie of a temporary file that gets its name next */
} watches;

/* The path of something in the directory. NULL when it is too long. */
static const char *path_of(const char *name) {
  static char path[PATH_MAX];
  const char *slash = strcmp(watches.root, "/") == 0 || name[0] == '\0' ? "" : "/";
  return snprintf(path, sizeof path, "%s%s%s", watches.root, slash, name) < (int)sizeof path ? path : NULL;
}

static void print_event(const char *type, const char *name) {
  const char *path = path_of(name);
  struct stat found;
  fwrite(type, 1, strlen(type) + 1, stdout);
  if (name[0] == '\0') name = ".";
  fwrite(name, 1, strlen(name) + 1, stdout);
  /* It may vanish between the two, and then it is as if it was never there. */
  bool there = watches.with_entries && path != NULL && lstat(path, &found) == 0;
  fwrite(there ? "1" : "0", 1, 2, stdout);
  if (there) entries_print(path);
}

/* ---- which directories are watched ---- */

static struct watch *find(int number) {
  size_t low = 0, high = watches.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (watches.list[middle].number < number) low = middle + 1;
    else high = middle;
  }
  return low < watches.count && watches.list[low].number == number ? &watches.list[low] : NULL;
}

static void forget(struct watch *watch) {
  size_t after = watches.count - (size_t)(watch - watches.list) - 1;
  free(watch->name);
  memmove(watch, watch + 1, after * sizeof *watch);
  watches.count--;
}

/* A directory has left this name. If it stays in sight, it comes back under another one. */
static void forget_below(const char *name) {
  size_t length = strlen(name);
  for (size_t i = watches.count; i-- > 0;) {
    const char *other = watches.list[i].name;
    if (strncmp(other, name, length) != 0 || (other[length] != '/' && other[length] != '\0')) continue;
    inotify_rm_watch(watches.fd, watches.list[i].number);
    forget(&watches.list[i]);
  }
}

static int too_many(void) {
  return paths_fault(FS_REFUSED, watches.root, "has too many directories to watch: at most %u", WATCHES_MAX);
}

static int follow(char *name, bool news);

/* Looks at what is in a directory. `name` has room for PATH_MAX bytes. */
static int look_into(char *name, bool news) {
  size_t length = strlen(name), base = length == 0 ? 0 : length + 1;
  const char *path = path_of(name);
  DIR *names = path == NULL ? NULL : opendir(path);
  int result = FS_DONE;
  if (names == NULL) return FS_DONE;
  for (const struct dirent *found; result == FS_DONE && (found = readdir(names)) != NULL;) {
    struct stat status;
    if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0 || entries_is_temporary(found->d_name)) continue;
    if (base + strlen(found->d_name) >= PATH_MAX) continue;
    if (base > 0) name[base - 1] = '/';
    strcpy(name + base, found->d_name);
    if (news) print_event("create", name);
    path = path_of(name);
    if (path != NULL && lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) result = follow(name, news);
    name[length] = '\0';
  }
  closedir(names);
  return result;
}

/* Watches a directory below, and all that is in it. `news`: that was not known before. */
static int follow(char *name, bool news) {
  const char *path = path_of(name);
  int number = path == NULL ? -1 : inotify_add_watch(watches.fd, path, CHANGES | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK);
  if (number < 0) return errno == ENOSPC ? too_many() : FS_DONE; /* otherwise it is gone again */
  if (find(number) != NULL) return FS_DONE;
  if (watches.count == WATCHES_MAX) return too_many();
  char *copy = strdup(name);
  if (copy == NULL) return paths_errno(watches.root);
  watches.list[watches.count++] = (struct watch){.number = number, .name = copy};
  return look_into(name, news);
}

static int begin(void) {
  static char name[PATH_MAX];
  struct stat found;
  if (stat(watches.root, &found) < 0) return paths_errno(watches.root);
  if (!S_ISDIR(found.st_mode)) return paths_fault(FS_NOT_DIRECTORY, watches.root, "is not a directory");
  watches.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  int number = watches.fd < 0 ? -1 : inotify_add_watch(watches.fd, watches.root, CHANGES | ITSELF | IN_ONLYDIR | IN_EXCL_UNLINK);
  if (number < 0) return paths_fault(FS_FAILED, watches.root, "cannot be watched: %s", strerror(errno));
  watches.list[watches.count++] = (struct watch){.number = number, .name = strdup("")};
  return watches.recursive ? look_into(name, false) : FS_DONE;
}

/* ---- events ---- */

static const char *type_of(uint32_t mask) {
  if (mask & (IN_CREATE | IN_MOVED_TO)) return "create";
  if (mask & IN_MODIFY) return "write";
  if (mask & (IN_DELETE | IN_DELETE_SELF)) return "remove";
  if (mask & (IN_MOVED_FROM | IN_MOVE_SELF)) return "rename";
  return mask & IN_ATTRIB ? "chmod" : NULL;
}

static int handle(const struct inotify_event *event) {
  static char name[PATH_MAX];
  if (event->mask & IN_Q_OVERFLOW) return paths_fault(FS_FAILED, watches.root, "changed too fast: some events are lost");
  struct watch *watch = find(event->wd);
  const char *type = type_of(event->mask);
  if (watch == NULL) return FS_DONE;
  if (event->mask & IN_IGNORED) forget(watch);
  if (type == NULL) return FS_DONE;
  const char *base = event->len > 0 ? event->name : "";
  if (base[0] == '\0' && watch->name[0] != '\0') return FS_DONE; /* its parent reports this, too */
  if (entries_is_temporary(base)) {
    if (event->mask & IN_MOVED_FROM) watches.finished = event->cookie;
    return FS_DONE;
  }
  const char *slash = watch->name[0] != '\0' ? "/" : "";
  if (snprintf(name, sizeof name, "%s%s%s", watch->name, slash, base) >= (int)sizeof name) return FS_DONE;
  print_event(type, name);
  if ((event->mask & IN_MOVED_TO) && event->cookie == watches.finished && event->cookie != 0) print_event("write", name);
  if (!watches.recursive || !(event->mask & IN_ISDIR) || base[0] == '\0') return FS_DONE;
  if (event->mask & IN_MOVED_FROM) forget_below(name);
  return event->mask & (IN_CREATE | IN_MOVED_TO) ? follow(name, true) : FS_DONE;
}

/* Handles what has happened. */
static int read_events(void) {
  static _Alignas(struct inotify_event) char buffer[65536];
  int result = FS_DONE;
  ssize_t got = read(watches.fd, buffer, sizeof buffer);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? FS_DONE : paths_errno(watches.root);
  if (watches.with_entries) entries_learn_names();
  for (ssize_t at = 0; at < got && result == FS_DONE;) {
    const void *event = buffer + at;
    result = handle(event);
    at += (ssize_t)(sizeof(struct inotify_event) + ((const struct inotify_event *)event)->len);
  }
  return fflush(stdout) == 0 ? result : FS_FAILED;
}

int watch_run(const char *path, bool recursive, bool with_entries) {
  char rest[256];
  watches.root = path, watches.recursive = recursive, watches.with_entries = with_entries;
  int result = begin();
  if (result == FS_DONE) fwrite("start", 1, 6, stdout);
  if (result == FS_DONE && fflush(stdout) != 0) result = FS_FAILED;
  while (result == FS_DONE) {
    struct pollfd fds[] = {{.fd = watches.fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}, {.fd = 1}};
    if (poll(fds, 3, -1) < 0 && errno != EINTR) return paths_errno(path);
    if (fds[2].revents != 0) return FS_DONE;
    if (fds[0].revents != 0) result = read_events();
    if (fds[1].revents != 0 && read(0, rest, sizeof rest) <= 0) return result;
  }
  return result;
}
