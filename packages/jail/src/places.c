#define _GNU_SOURCE
#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"

/* Directories and empty files to mount on: far less than a megabyte. The size bounds what is made before it is read-only. */
#define ROOT_OPTIONS "size=1m,nr_inodes=4096,mode=0755"
#define LONGEST_PATH 4096

/* Where a user of its own finds devices that are its own: some hosts let only root open theirs. */
#define DEVICES "dev/"
#define DEVICES_OPTIONS "size=64k,nr_inodes=64,mode=0755"

static void take(struct place *place) {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
  place->tree = open_tree(AT_FDCWD, place->path, flags);
  if (place->tree < 0) fail("taking hold of", place->path);
  /* Private, because what the host mounts below it later must not appear here. */
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE};
  if (place->kind != PLACE_DEVICE) attributes.attr_set |= MOUNT_ATTR_NODEV;
  else attributes.attr_set |= MOUNT_ATTR_NOEXEC;
  if (place->kind == PLACE_READ) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  if (place->kind == PLACE_WRITE) attributes.attr_set |= MOUNT_ATTR_NOEXEC;
  if (mount_setattr(place->tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) < 0)
    fail("restricting", place->path);
}

void places_take(struct options *options) {
  for (size_t at = 0; at < options->place_count; at++)
    if (options->places[at].kind != PLACE_LINK) take(&options->places[at]);
}

/* Makes the directories above a path, which is relative to the working directory. */
static void make_parents(char *path) {
  for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0755) < 0 && errno != EEXIST) fail("making the directory", path);
    *slash = '/';
  }
}

static void make_devices(void) {
  if (mkdir(DEVICES, 0755) < 0) fail("making the directory", DEVICES);
  if (mount("jail", DEVICES, "tmpfs", MS_NOSUID | MS_NOEXEC, DEVICES_OPTIONS) < 0) fail("mounting", DEVICES);
}

/* False where devices cannot be made, as in most containers: the host's own is shown then. */
static bool make_device(const char *path, dev_t device, uid_t uid) {
  if (strncmp(path, DEVICES, sizeof DEVICES - 1) != 0 || mknod(path, S_IFCHR | 0600, device) < 0) return false;
  if (chown(path, uid, uid) < 0) fail("giving away", path);
  return true;
}

static void put(const struct options *options, const struct place *place) {
  char path[LONGEST_PATH];
  if ((size_t)snprintf(path, sizeof path, "%s", place->path + 1) >= sizeof path) fail_usage("too long:", place->path);
  make_parents(path);
  if (place->kind == PLACE_LINK) {
    if (symlink(place->target, path) < 0) fail("making the link", place->path);
    return;
  }
  struct stat there;
  if (fstat(place->tree, &there) < 0) fail("looking at", place->path);
  if (place->kind == PLACE_DEVICE && !options->user_namespace && make_device(path, there.st_rdev, options->uid)) {
    close(place->tree);
    return;
  }
  if (S_ISDIR(there.st_mode)) {
    if (mkdir(path, 0755) < 0 && errno != EEXIST) fail("making the directory", place->path);
  } else {
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
    /* It is there already where a directory above it is shown as well. */
    if (file < 0 && errno != EEXIST) fail("making room for", place->path);
    if (file >= 0) close(file);
  }
  if (move_mount(place->tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0) fail("mounting", place->path);
  close(place->tree);
}

void places_enter(const struct options *options) {
  if (mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail("separating the mounts", NULL);
  if (mount("jail", options->root, "tmpfs", MS_NOSUID | MS_NODEV, ROOT_OPTIONS) < 0) fail("mounting the root at", options->root);
  if (chdir(options->root) < 0) fail("entering", options->root);
  if (!options->user_namespace) make_devices();
  for (size_t at = 0; at < options->place_count; at++) put(options, &options->places[at]);
  if (!options->user_namespace && mount("", DEVICES, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0)
    fail("making read-only:", DEVICES);
  if (mount("", ".", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
    fail("making the root read-only", NULL);
  /* The new root goes on top of the old one, which is then unmounted from below it. */
  if (syscall(SYS_pivot_root, ".", ".") < 0) fail("changing the root", NULL);
  if (umount2(".", MNT_DETACH) < 0) fail("leaving the old root", NULL);
  if (chdir("/") < 0) fail("entering the new root", NULL);
}

void places_check(const struct options *options) {
  for (size_t at = 0; at < options->place_count; at++) {
    const struct place *place = &options->places[at];
    if (place->kind == PLACE_DEVICE && access(place->path, R_OK | W_OK) < 0) fail("opening", place->path);
  }
}
