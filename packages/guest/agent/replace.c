#define _GNU_SOURCE
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "entries.h"
#include "paths.h"
#include "whole.h"

#define LINKS_MAX 40 /* as the kernel follows */

static struct {
  char target[PATH_MAX]; /* where the file goes, behind all links */
  char temporary[PATH_MAX];
  bool followed, exists;
  struct stat old;
  int fd;
} file;

static void give_up(int number) {
  (void)number;
  unlink(file.temporary);
  _exit(FS_FAILED);
}

/* Follows the links that a path is, also one that leads to nothing yet. */
static int find_target(const char *path) {
  char link[PATH_MAX];
  snprintf(file.target, sizeof file.target, "%s", path);
  for (int links = 0; links < LINKS_MAX; links++) {
    file.exists = lstat(file.target, &file.old) == 0;
    if (!file.exists) return errno == ENOENT || errno == ENOTDIR ? FS_DONE : paths_errno(path);
    if (S_ISDIR(file.old.st_mode)) return paths_fault(FS_IS_DIRECTORY, path, "is a directory");
    if (S_ISREG(file.old.st_mode)) return FS_DONE;
    if (!S_ISLNK(file.old.st_mode)) return paths_fault(FS_REFUSED, path, "is not a regular file");
    ssize_t length = readlink(file.target, link, sizeof link - 1);
    if (length < 0) return paths_errno(path);
    link[length] = '\0';
    char *end = link[0] == '/' ? file.target : strrchr(file.target, '/') + 1;
    size_t room = sizeof file.target - (size_t)(end - file.target);
    if ((size_t)snprintf(end, room, "%s", link) >= room) return paths_fault(FS_REFUSED, path, "is too long");
    file.followed = true;
  }
  errno = ELOOP;
  return paths_errno(path);
}

static bool describe(char *const *metadata, const struct user *owner) {
  if (fchown(file.fd, file.exists ? file.old.st_uid : owner->uid, file.exists ? file.old.st_gid : owner->gid) < 0) return false;
  if (fchmod(file.fd, file.exists ? file.old.st_mode & 07777 : 0644) < 0) return false;
  for (; metadata[0] != NULL; metadata += 2) {
    char name[XATTR_NAME_MAX + 1];
    if ((size_t)snprintf(name, sizeof name, ENTRIES_METADATA "%s", metadata[0]) >= sizeof name) {
      errno = ENAMETOOLONG;
      return false;
    }
    if (fsetxattr(file.fd, name, metadata[1], strlen(metadata[1]), 0) < 0) return false;
  }
  return true;
}

static int abandon(int result) {
  unlink(file.temporary);
  return result;
}

/* Opens the temporary file. */
static int begin(const char *path, char *const *metadata, const struct user *owner) {
  uint64_t random = 0;
  for (size_t i = 0; metadata[i] != NULL; i++)
    if (i % 2 == 0 && metadata[i + 1] == NULL) return paths_fault(FS_REFUSED, path, "has a key of metadata without a value");
  int result = find_target(path);
  if (result == FS_DONE) result = paths_make_parents(file.target, owner);
  if (result != FS_DONE) return result;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return paths_errno(path);
  int directory = (int)(strrchr(file.target, '/') - file.target);
  int length = snprintf(file.temporary, sizeof file.temporary, "%.*s/" ENTRIES_TEMPORARY "%0*llx", directory, file.target,
                        ENTRIES_TEMPORARY_DIGITS, (unsigned long long)random);
  if (length >= (int)sizeof file.temporary) return paths_fault(FS_REFUSED, path, "is too long");
  signal(SIGTERM, give_up);
  file.fd = open(file.temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file.fd < 0) return paths_errno(path);
  if (whole_when_closed(file.fd) < 0) return abandon(paths_errno(path));
  if (describe(metadata, owner)) return FS_DONE;
  if (errno == EOPNOTSUPP) return abandon(paths_fault(FS_FAILED, path, "is on a file system that has no room for metadata"));
  return abandon(paths_errno(path));
}

static int finish(const char *path) {
  char real[PATH_MAX];
  if (close(file.fd) < 0 || rename(file.temporary, file.target) < 0) return abandon(paths_errno(path));
  if (file.followed && realpath(file.target, real) != NULL) return entries_show(real);
  return entries_show(file.target);
}

int replace_write(const char *path, char *const *metadata, const struct user *owner) {
  int result = begin(path, metadata, owner);
  if (result != FS_DONE) return result;
  return paths_pour(0, file.fd) ? finish(path) : abandon(paths_errno(path));
}

static int check_source(const char *path) {
  struct stat found;
  if (stat(path, &found) < 0) return paths_errno(path);
  if (S_ISDIR(found.st_mode)) return paths_fault(FS_IS_DIRECTORY, path, "is a directory");
  return S_ISREG(found.st_mode) ? FS_DONE : paths_fault(FS_REFUSED, path, "is not a regular file");
}

int replace_compose(const char *path, char (*sources)[PATH_MAX], size_t count, const struct user *owner) {
  static char *const nothing[] = {NULL};
  char real[PATH_MAX], target[PATH_MAX];
  for (size_t i = 0; i < count; i++) {
    int result = check_source(sources[i]);
    if (result != FS_DONE) return result;
  }
  int result = begin(path, nothing, owner);
  if (result != FS_DONE) return result;
  for (size_t i = 0; i < count; i++) {
    int source = open(sources[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (source < 0) return abandon(paths_errno(sources[i]));
    if (!paths_pour(source, file.fd)) return abandon(paths_errno(path));
    close(source);
  }
  result = finish(path);
  if (result == FS_DONE && realpath(file.target, target) == NULL) return paths_errno(path);
  for (size_t i = 0; i < count && result == FS_DONE; i++) {
    if (realpath(sources[i], real) == NULL || strcmp(real, target) == 0) continue; /* named twice, or the new file itself */
    if (unlink(sources[i]) < 0) result = paths_errno(sources[i]);
  }
  return result;
}
