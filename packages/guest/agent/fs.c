#define _GNU_SOURCE
#include "fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entries.h"
#include "paths.h"
#include "replace.h"
#include "watch.h"

#define UNKNOWN_TASK 125

/* Removes ".", ".." and doubled slashes from an absolute path. */
static void clean(char *path) {
  char *end = path; /* of what is clean */
  for (const char *at = path; *at != '\0';) {
    at += strspn(at, "/");
    size_t length = strcspn(at, "/");
    if (length == 2 && at[0] == '.' && at[1] == '.') {
      while (end > path && *--end != '/') {}
    } else if (length > 0 && !(length == 1 && at[0] == '.')) {
      *end++ = '/';
      memmove(end, at, length);
      end += length;
    }
    at += length;
  }
  if (end == path) *end++ = '/';
  *end = '\0';
}

/* Makes a path absolute and clean. */
static int resolve(const struct user *owner, const char *word, char out[PATH_MAX]) {
  char below[PATH_MAX];
  const char *path = user_path(owner, word, below, sizeof below);
  if (path[0] != '/' || strlen(path) >= PATH_MAX) return paths_fault(FS_REFUSED, word, "is too long");
  strcpy(out, path);
  clean(out);
  return FS_DONE;
}

static int make_directory(const char *path, const struct user *owner) {
  struct stat found;
  int result = paths_make_parents(path, owner);
  if (result != FS_DONE) return result;
  if (mkdir(path, 0755) == 0) return lchown(path, owner->uid, owner->gid) < 0 ? paths_errno(path) : entries_show(path);
  if (errno == EEXIST && (stat(path, &found) < 0 || !S_ISDIR(found.st_mode))) errno = ENOTDIR;
  return paths_errno(path);
}

static int move(const char *from, const char *to, const struct user *owner) {
  struct stat found;
  if (lstat(from, &found) < 0) return paths_missing(from);
  int result = paths_make_parents(to, owner);
  if (result != FS_DONE) return result;
  if (rename(from, to) == 0) return entries_show(to);
  if (errno == EINVAL) return paths_fault(FS_REFUSED, from, "cannot be moved into itself");
  return errno == EXDEV ? paths_fault(FS_FAILED, from, "cannot be moved: %s", strerror(errno)) : paths_errno(to);
}

/* `path` is what to name in a reason. */
static int remove_tree(int parent, const char *name, const char *path) {
  const bool below = parent != AT_FDCWD; /* there, someone else may be faster */
  if (unlinkat(parent, name, 0) == 0 || (below && errno == ENOENT)) return FS_DONE;
  if (errno != EISDIR) return paths_missing(path);
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result = FS_DONE;
  DIR *names = fd < 0 ? NULL : fdopendir(fd);
  if (names == NULL && below && errno == ENOENT) return FS_DONE;
  if (names == NULL) return paths_errno(path);
  for (const struct dirent *found; result == FS_DONE && (found = readdir(names)) != NULL;) {
    if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) continue;
    result = remove_tree(dirfd(names), found->d_name, path);
  }
  closedir(names);
  if (result != FS_DONE || unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return result;
  return paths_fault(FS_FAILED, path, "cannot be removed: %s", strerror(errno));
}

static int read_file(const char *path) {
  struct stat found;
  int fd = stat(path, &found) < 0 ? -1 : 0;
  if (fd < 0) return paths_missing(path);
  if (S_ISDIR(found.st_mode)) return paths_fault(FS_IS_DIRECTORY, path, "is a directory");
  if (!S_ISREG(found.st_mode)) return paths_fault(FS_REFUSED, path, "is not a regular file");
  fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return paths_missing(path);
  return paths_pour(fd, 1) ? FS_DONE : paths_errno(path);
}

static int list(const char *path, const char *depth) {
  char real[PATH_MAX], *end;
  struct stat found;
  unsigned long levels = strtoul(depth, &end, 10);
  if (depth[0] < '1' || depth[0] > '9' || *end != '\0') return paths_fault(FS_REFUSED, path, "cannot be listed: the depth is not 1 or more");
  if (stat(path, &found) < 0 || realpath(path, real) == NULL) return paths_missing(path);
  if (!S_ISDIR(found.st_mode)) return paths_fault(FS_NOT_DIRECTORY, path, "is not a directory");
  return entries_list(real, levels);
}

static int compose(const char *to, char *const *words, const struct user *owner) {
  size_t count = 0;
  int result = FS_DONE;
  while (words[count] != NULL) count++;
  if (count == 0) return paths_fault(FS_REFUSED, to, "cannot be composed of nothing");
  char (*paths)[PATH_MAX] = calloc(count, sizeof *paths);
  if (paths == NULL) return paths_errno(to);
  for (size_t i = 0; i < count && result == FS_DONE; i++) result = resolve(owner, words[i], paths[i]);
  if (result == FS_DONE) result = replace_compose(to, paths, count, owner);
  free(paths);
  return result;
}

int fs_run(const char *name, char *const *args, const struct user *owner) {
  char path[PATH_MAX], to[PATH_MAX] = "";
  const bool moves = strcmp(name, "fs-move") == 0;
  if (owner->unknown) {
    dprintf(2, "user '%s' does not exist\n", owner->name);
    return FS_UNKNOWN_USER;
  }
  if (args[0] == NULL) return paths_fault(FS_REFUSED, "", "was not given");
  umask(0);
  entries_learn_names();
  int result = resolve(owner, args[0], path);
  const char *second = args[1] != NULL ? args[1] : "", *third = args[1] != NULL && args[2] != NULL ? args[2] : "";
  if (result == FS_DONE && moves && args[1] == NULL) result = paths_fault(FS_REFUSED, path, "has nowhere to go");
  if (result == FS_DONE && moves) result = resolve(owner, second, to);
  if (result != FS_DONE) return result;
  if (strcmp(name, "fs-stat") == 0) return entries_show(path);
  if (strcmp(name, "fs-list") == 0) return list(path, second);
  if (strcmp(name, "fs-mkdir") == 0) return make_directory(path, owner);
  if (moves) return move(path, to, owner);
  if (strcmp(name, "fs-remove") == 0 && strcmp(path, "/") == 0) return paths_fault(FS_REFUSED, path, "cannot be removed");
  if (strcmp(name, "fs-remove") == 0) return remove_tree(AT_FDCWD, path, path);
  if (strcmp(name, "fs-read") == 0) return read_file(path);
  if (strcmp(name, "fs-write") == 0) return replace_write(path, args + 1, owner);
  if (strcmp(name, "fs-compose") == 0) return compose(path, args + 1, owner);
  if (strcmp(name, "fs-watch") == 0) return watch_run(path, strcmp(second, "1") == 0, strcmp(third, "1") == 0);
  dprintf(2, "the agent has no task of this name\n");
  return UNKNOWN_TASK;
}
