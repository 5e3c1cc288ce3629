#define _GNU_SOURCE
#include "copy.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tar.h"
#include "whole.h"

#define CHUNK 65536u /* as much as a pipe holds */
#define TEMP_PREFIX ".hibernaut-"

static uint8_t chunk[CHUNK];

/* Writes why, about a name that is not trusted: a terminal must not see its control characters. */
static int complain(int code, const char *name, const char *format, ...) {
  char text[TAR_NAME_MAX + 512];
  size_t length = 0;
  for (; name[length] != '\0' && length < TAR_NAME_MAX; length++) {
    uint8_t letter = (uint8_t)name[length];
    text[length] = letter < 0x20 || letter == 0x7f ? '?' : name[length];
  }
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, sizeof text - length, format, arguments);
  va_end(arguments);
  dprintf(2, "%s\n", text);
  return code;
}

static int complain_errno(const char *name) {
  int error = errno;
  return complain(error == ENOENT || error == ENOTDIR ? COPY_NOT_FOUND : COPY_FAILED, name, ": %s", strerror(error));
}

/* ---- look ---- */

static const char *kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  return S_ISLNK(mode) ? "link" : "other";
}

int copy_stat(const char *path) {
  char real[PATH_MAX];
  struct stat own, behind;
  if (lstat(path, &own) < 0) return complain_errno(path);
  bool leads = stat(path, &behind) == 0;
  if (!leads || realpath(path, real) == NULL) snprintf(real, sizeof real, "%s", path);
  printf("%s\n%s\n%lld\n%o\n%s", kind_of(own.st_mode), leads ? kind_of(behind.st_mode) : "none",
         (long long)(leads ? behind : own).st_size, (leads ? behind : own).st_mode & 07777u, real);
  return fflush(stdout) == 0 ? COPY_DONE : COPY_FAILED;
}

/* ---- out ---- */

static int pack_file(int dir, const char *base, struct tar_entry *entry) {
  struct stat now;
  int fd = openat(dir, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? COPY_DONE : complain_errno(entry->name);
  if (fstat(fd, &now) < 0 || !S_ISREG(now.st_mode)) {
    close(fd);
    return complain(COPY_FAILED, entry->name, " changed while it was copied");
  }
  entry->size = (uint64_t)now.st_size;
  bool sent = tar_write_header(1, entry);
  uint64_t left = entry->size;
  while (sent && left > 0) {
    size_t got = tar_fill(fd, chunk, left < CHUNK ? (size_t)left : CHUNK);
    if (got == 0) break;
    sent = tar_put(1, chunk, got);
    left -= got;
  }
  close(fd);
  if (left > 0 && sent) return complain(COPY_FAILED, entry->name, " became smaller while it was copied");
  return sent && tar_write_padding(1, entry->size) ? COPY_DONE : COPY_FAILED;
}

static int pack(int dir, const char *base, struct tar_entry *entry);

static int pack_directory(int dir, const char *base, struct tar_entry *entry) {
  size_t length = strlen(entry->name);
  int fd = openat(dir, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result = COPY_DONE;
  if (fd < 0) return errno == ENOENT ? COPY_DONE : complain_errno(entry->name);
  if (length + 1 > TAR_NAME_MAX) {
    close(fd);
    return complain(COPY_REFUSED, entry->name, ": the path is longer than %u bytes", TAR_NAME_MAX);
  }
  strcpy(entry->name + length, "/");
  DIR *names = tar_write_header(1, entry) ? fdopendir(fd) : NULL;
  if (names == NULL) {
    close(fd);
    return complain_errno(entry->name);
  }
  while (result == COPY_DONE) {
    errno = 0;
    const struct dirent *found = readdir(names);
    if (found == NULL) {
      if (errno != 0) result = complain_errno(entry->name);
      break;
    }
    if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) continue;
    if (length + 1 + strlen(found->d_name) > TAR_NAME_MAX) {
      result = complain(COPY_REFUSED, entry->name, ": the path is longer than %u bytes", TAR_NAME_MAX);
      break;
    }
    strcpy(entry->name + length + 1, found->d_name);
    result = pack(fd, found->d_name, entry);
    entry->name[length + 1] = '\0';
  }
  closedir(names);
  return result;
}

/* Writes what is at `base`, and with it what is below. Entries that vanish meanwhile are left out. */
static int pack(int dir, const char *base, struct tar_entry *entry) {
  struct stat found;
  if (fstatat(dir, base, &found, AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT ? COPY_DONE : complain_errno(entry->name);
  entry->mode = found.st_mode & 07777;
  entry->uid = found.st_uid, entry->gid = found.st_gid;
  entry->mtime = found.st_mtime;
  entry->size = 0;
  entry->link[0] = '\0';
  if (S_ISREG(found.st_mode)) {
    entry->type = TAR_FILE;
    return pack_file(dir, base, entry);
  }
  if (S_ISDIR(found.st_mode)) {
    entry->type = TAR_DIRECTORY;
    return pack_directory(dir, base, entry);
  }
  if (!S_ISLNK(found.st_mode)) return COPY_DONE; /* devices, pipes and sockets mean nothing elsewhere */
  entry->type = TAR_SYMLINK;
  ssize_t length = readlinkat(dir, base, entry->link, TAR_NAME_MAX);
  if (length < 0) return errno == ENOENT ? COPY_DONE : complain_errno(entry->name);
  entry->link[length] = '\0';
  return tar_write_header(1, entry) ? COPY_DONE : COPY_FAILED;
}

int copy_out(const char *path) {
  static struct tar_entry entry;
  struct stat found;
  if (strlen(path) > TAR_NAME_MAX) return complain(COPY_REFUSED, "", "the path is longer than %u bytes", TAR_NAME_MAX);
  if (lstat(path, &found) < 0) return complain_errno(path);
  if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode) && !S_ISLNK(found.st_mode))
    return complain(COPY_REFUSED, path, " is neither a file nor a directory");
  size_t length = strlen(path);
  while (length > 0 && path[length - 1] == '/') length--;
  size_t begin = length;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  snprintf(entry.name, sizeof entry.name, "%.*s", (int)(length - begin), path + begin);
  if (entry.name[0] == '\0' || strcmp(entry.name, "..") == 0) strcpy(entry.name, ".");
  /* A path that ends in a slash leads through a link: open the directory behind it. */
  int dir = S_ISDIR(found.st_mode) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
  if (S_ISDIR(found.st_mode) && dir < 0) return complain_errno(path);
  int result = pack(dir, S_ISDIR(found.st_mode) ? "." : path, &entry);
  if (result == COPY_DONE && !tar_write_end(1)) result = COPY_FAILED;
  return result;
}

/* ---- in ---- */

struct place {
  int dir;       /* the directory that the entry goes into */
  const char *base; /* its name there, inside `path`; NULL: it is the target directory itself */
  char path[TAR_NAME_MAX + 1];
};

static uint32_t owner_of(const struct user *owner, uint32_t archived, bool group) {
  if (owner == NULL) return archived;
  return group ? owner->gid : owner->uid;
}

/* Opens a directory below `dir` without following a link, and creates it if it isn't there. */
static int enter(int dir, const char *name, const struct tar_entry *entry, const struct user *owner) {
  int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (next >= 0 || errno != ENOENT) return next;
  if (mkdirat(dir, name, 0755) < 0) return -1;
  next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (next >= 0 && fchown(next, owner_of(owner, entry->uid, false), owner_of(owner, entry->gid, true)) < 0) {
    close(next);
    return -1;
  }
  return next;
}

/* The directory of the last entry, which the next one is mostly in, too. As a file, it stays the same directory,
 * whatever happens to its path. */
static struct {
  int dir;
  size_t length; /* of its path with the slash; 0: none */
  char path[TAR_NAME_MAX + 1];
} last = {.dir = -1};

static void remember(const char *name, const struct place *place) {
  const char *base = strrchr(name, '/');
  if (base == NULL || base[1] == '\0' || (size_t)(base + 1 - name) == last.length) return;
  if (last.dir >= 0) close(last.dir);
  last.dir = dup(place->dir);
  last.length = last.dir >= 0 ? (size_t)(base + 1 - name) : 0;
  memcpy(last.path, name, last.length);
}

static bool recall(struct place *place, const char *name) {
  const char *base = name + last.length;
  if (last.length == 0 || strncmp(name, last.path, last.length) != 0) return false;
  if (*base == '\0' || strchr(base, '/') != NULL || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) return false;
  strcpy(place->path, base);
  place->base = place->path;
  place->dir = dup(last.dir);
  return place->dir >= 0;
}

/* Finds where a path of the archive is. The caller closes place->dir, which is -1 after a failure. */
static int find_place(struct place *place, int root, const char *name, const struct tar_entry *entry,
                      const struct user *owner) {
  if (recall(place, name)) return COPY_DONE;
  strcpy(place->path, name);
  place->base = NULL;
  place->dir = dup(root);
  char *rest = place->path;
  for (char *part; (part = strsep(&rest, "/")) != NULL;) {
    if (part[0] == '\0' || strcmp(part, ".") == 0) continue;
    if (place->base != NULL) {
      int next = enter(place->dir, place->base, entry, owner);
      int error = errno;
      close(place->dir);
      place->dir = next;
      if (next < 0 && (error == ELOOP || error == ENOTDIR))
        return complain(COPY_REFUSED, name, ": %s is not a directory, or is a symbolic link", place->base);
      if (next < 0) return complain(COPY_FAILED, name, ": %s", strerror(error));
    }
    if (strcmp(part, "..") == 0) {
      close(place->dir);
      place->dir = -1;
      return complain(COPY_REFUSED, name, " leads out of the directory");
    }
    place->base = part;
  }
  remember(name, place);
  return COPY_DONE;
}

static void temp_name(char out[64]) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = (uint64_t)getpid();
  snprintf(out, 64, TEMP_PREFIX "%016llx", (unsigned long long)random);
}

/* Moves what was made under a temporary name to its place. */
static int land(const struct place *place, const char *temp, const char *name) {
  if (renameat(place->dir, temp, place->dir, place->base) < 0) {
    int error = errno;
    unlinkat(place->dir, temp, 0);
    if (error == EISDIR) return complain(COPY_REFUSED, name, " is a directory, and the copy is not");
    return complain(COPY_FAILED, name, ": %s", strerror(error));
  }
  return COPY_DONE;
}

static int fill_file(int fd, struct tar_reader *reader, const struct tar_entry *entry, const struct user *owner) {
  for (size_t got; (got = tar_read(reader, chunk, CHUNK)) > 0;)
    if (!tar_put(fd, chunk, got)) return complain_errno(entry->name);
  if (reader->fault != NULL) return COPY_FAILED; /* reported by the caller */
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = entry->mtime}};
  if (fchown(fd, owner_of(owner, entry->uid, false), owner_of(owner, entry->gid, true)) < 0 ||
      fchmod(fd, entry->mode) < 0 || futimens(fd, times) < 0)
    return complain_errno(entry->name);
  return COPY_DONE;
}

static int unpack_file(const struct place *place, struct tar_reader *reader, const struct tar_entry *entry,
                       const struct user *owner) {
  char temp[64];
  temp_name(temp);
  int fd = openat(place->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return complain_errno(entry->name);
  int result = whole_when_closed(fd) < 0 ? complain_errno(entry->name) : fill_file(fd, reader, entry, owner);
  if (close(fd) < 0 && result == COPY_DONE) result = complain_errno(entry->name);
  if (result == COPY_DONE) return land(place, temp, entry->name);
  unlinkat(place->dir, temp, 0);
  return result;
}

static int unpack_directory(const struct place *place, const struct tar_entry *entry, const struct user *owner) {
  struct stat found;
  uint32_t uid = owner_of(owner, entry->uid, false), gid = owner_of(owner, entry->gid, true);
  if (mkdirat(place->dir, place->base, 0700) == 0) {
    int fd = openat(place->dir, place->base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool done = fd >= 0 && fchown(fd, uid, gid) == 0 && fchmod(fd, entry->mode) == 0;
    int result = done ? COPY_DONE : complain_errno(entry->name);
    if (fd >= 0) close(fd);
    return result;
  }
  if (errno != EEXIST) return complain_errno(entry->name);
  if (fstatat(place->dir, place->base, &found, AT_SYMLINK_NOFOLLOW) < 0) return complain_errno(entry->name);
  /* A directory that exists keeps its owner and permissions. */
  return S_ISDIR(found.st_mode) ? COPY_DONE : complain(COPY_REFUSED, entry->name, " exists and is not a directory");
}

static int unpack_symlink(const struct place *place, const struct tar_entry *entry, const struct user *owner) {
  char temp[64];
  temp_name(temp);
  if (symlinkat(entry->link, place->dir, temp) < 0) return complain_errno(entry->name);
  if (fchownat(place->dir, temp, owner_of(owner, entry->uid, false), owner_of(owner, entry->gid, true), AT_SYMLINK_NOFOLLOW) < 0) {
    int result = complain_errno(entry->name);
    unlinkat(place->dir, temp, 0);
    return result;
  }
  return land(place, temp, entry->name);
}

/* A hard link leads to a file that was unpacked before, so its target is looked up as an entry is. */
static int unpack_hard_link(const struct place *place, int root, const struct tar_entry *entry, const struct user *owner) {
  static struct place target;
  struct stat found;
  char temp[64];
  int result = find_place(&target, root, entry->link, entry, owner);
  if (result != COPY_DONE) return result;
  temp_name(temp);
  if (target.base == NULL || fstatat(target.dir, target.base, &found, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(found.st_mode))
    result = complain(COPY_REFUSED, entry->name, " is a hard link to something that is not a file of the archive");
  else if (linkat(target.dir, target.base, place->dir, temp, 0) < 0)
    result = complain_errno(entry->name);
  else
    result = land(place, temp, entry->name);
  if (result == COPY_DONE) unlinkat(place->dir, temp, 0); /* still there if both are links to one file */
  close(target.dir);
  return result;
}

static int unpack(int root, struct tar_reader *reader, const struct tar_entry *entry, const struct user *owner) {
  static struct place place;
  int result = find_place(&place, root, entry->name, entry, owner);
  if (result != COPY_DONE) return result;
  if (place.base == NULL && entry->type != TAR_DIRECTORY)
    result = complain(COPY_REFUSED, entry->name, "the archive has a file without a name");
  else if (place.base != NULL) {
    switch (entry->type) {
      case TAR_FILE: result = unpack_file(&place, reader, entry, owner); break;
      case TAR_DIRECTORY: result = unpack_directory(&place, entry, owner); break;
      case TAR_SYMLINK: result = unpack_symlink(&place, entry, owner); break;
      case TAR_HARD_LINK: result = unpack_hard_link(&place, root, entry, owner); break;
      default: result = complain(COPY_REFUSED, entry->name, " is a device or a pipe, which cannot be copied"); break;
    }
  }
  close(place.dir);
  return result;
}

int copy_in(const char *directory, const struct user *owner) {
  static struct tar_entry entry;
  struct tar_reader reader = {.fd = 0};
  unsigned long long entries = 0, bytes = 0;
  int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = COPY_DONE;
  umask(0);
  if (root < 0 && errno == ENOTDIR) return complain(COPY_REFUSED, directory, " is not a directory");
  if (root < 0) return complain_errno(directory);
  while (result == COPY_DONE && tar_next(&reader, &entry)) {
    result = unpack(root, &reader, &entry, owner);
    entries++;
    bytes += entry.size;
  }
  close(root);
  if (reader.fault != NULL) return complain(COPY_REFUSED, "", "The archive cannot be read: %s", reader.fault);
  if (result != COPY_DONE) return result;
  while (tar_fill(0, chunk, CHUNK) > 0) {} /* the rest is padding, and the sender must not wait for a reader */
  dprintf(1, "%llu %llu\n", entries, bytes);
  return COPY_DONE;
}
