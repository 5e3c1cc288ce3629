#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system.h"
#include "user.h"

static int make_parents(const char *path) {
  char parent[PATH_MAX];
  size_t length = (size_t)(strrchr(path, '/') - path);
  if (length == 0) return 0;
  if (length >= sizeof parent) return -ENAMETOOLONG;
  memcpy(parent, path, length);
  parent[length] = '\0';
  return system_make_folders(parent);
}

static int write_all(int fd, const uint8_t *data, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, data, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? -errno : -EIO;
    data += written, length -= (size_t)written;
  }
  return 0;
}

/* A file appears whole, and a link in its place is replaced, not followed. */
static int write_one(const struct config_file *file, const struct user *user) {
  char draft[PATH_MAX];
  if (snprintf(draft, sizeof draft, "%s.hibernaut-new", file->path) >= (int)sizeof draft) return -ENAMETOOLONG;
  int error = make_parents(file->path);
  if (error < 0) return error;
  if (unlink(draft) < 0 && errno != ENOENT) return -errno;
  int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -errno;
  error = write_all(fd, file->data, file->length);
  if (error == 0 && fchown(fd, user->uid, user->gid) < 0) error = -errno;
  if (error == 0 && fchmod(fd, (mode_t)file->mode) < 0) error = -errno;
  if (close(fd) < 0 && error == 0) error = -errno;
  if (error == 0 && rename(draft, file->path) < 0) error = -errno;
  if (error < 0) unlink(draft);
  return error;
}

const char *files_write(struct config *config, int *error) {
  static char passwd[65536], group[65536], fault[PATH_MAX + 64];
  struct user user;
  *error = 0;
  if (config->file_count == 0) return NULL;
  system_read_file("/etc/passwd", passwd, sizeof passwd);
  system_read_file("/etc/group", group, sizeof group);
  const char *unknown = user_find(&user, config->user != NULL ? config->user : "", passwd, group);
  if (unknown != NULL) return unknown;
  for (size_t i = 0; i < config->file_count && *error == 0; i++) {
    *error = -write_one(&config->files[i], &user);
    if (*error != 0) snprintf(fault, sizeof fault, "the file %s could not be written", config->files[i].path);
  }
  config_forget_files(config);
  return *error != 0 ? fault : NULL;
}
