#define _GNU_SOURCE
#include "paths.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 65536u /* as much as a pipe holds */

int paths_fault(int code, const char *path, const char *format, ...) {
  char name[PATH_MAX], why[256];
  va_list arguments;
  size_t length = 0;
  /* The name is not trusted: a terminal must not see its control characters. */
  for (; path[length] != '\0' && length < sizeof name - 1; length++) {
    uint8_t letter = (uint8_t)path[length];
    name[length] = letter < 0x20 || letter == 0x7f ? '?' : path[length];
  }
  name[length] = '\0';
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  dprintf(2, "path '%s' %s\n", name, why);
  return code;
}

int paths_errno(const char *path) {
  int error = errno;
  switch (error) {
    case ENOENT: return paths_fault(FS_NOT_FOUND, path, "does not exist");
    case EEXIST: case ENOTEMPTY: return paths_fault(FS_EXISTS, path, "already exists");
    case ENOTDIR: return paths_fault(FS_NOT_DIRECTORY, path, "is not a directory");
    case EISDIR: return paths_fault(FS_IS_DIRECTORY, path, "is a directory");
    case ENOSPC: case EDQUOT: return paths_fault(FS_NO_SPACE, path, "cannot be written: no space is left");
    case ENAMETOOLONG: case ELOOP: return paths_fault(FS_REFUSED, path, "is not valid: %s", strerror(error));
    default: return paths_fault(FS_FAILED, path, "cannot be used: %s", strerror(error));
  }
}

int paths_missing(const char *path) {
  if (errno == ENOTDIR) errno = ENOENT;
  return paths_errno(path);
}

int paths_make_parents(const char *path, const struct user *owner) {
  char parent[PATH_MAX];
  struct stat found;
  snprintf(parent, sizeof parent, "%s", path);
  for (char *slash = strchr(parent + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(parent, 0755) == 0) {
      if (lchown(parent, owner->uid, owner->gid) < 0) return paths_errno(parent);
    } else if (errno != EEXIST) {
      return paths_errno(parent);
    } else if (stat(parent, &found) < 0 || !S_ISDIR(found.st_mode)) {
      return paths_fault(FS_NOT_DIRECTORY, parent, "is not a directory");
    }
    *slash = '/';
  }
  return FS_DONE;
}

bool paths_pour(int from, int to) {
  static uint8_t chunk[CHUNK];
  for (;;) {
    ssize_t got = read(from, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    for (ssize_t done = 0; done < got;) {
      ssize_t put = write(to, chunk + done, (size_t)(got - done));
      if (put < 0 && errno != EINTR) return false;
      if (put > 0) done += put;
    }
  }
}
