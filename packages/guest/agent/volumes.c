#define _GNU_SOURCE
#include "volumes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system.h"
#include "user.h"

#define DISK_MS 5000 /* the driver announces disks within milliseconds; one that is absent never comes */
#define END_MS 2000  /* until killed processes are gone; it takes longer only if they wait for a disk */
#define GROW_EXT4 _IOW('f', 16, uint64_t) /* EXT4_IOC_RESIZE_FS, which no header defines */

static struct {
  char path[PATH_MAX]; /* as of the mount, with links resolved */
  int root;
} mounted[CONFIG_MAX_VOLUMES];
static size_t count;
static bool frozen;

/* Finds the disk with that serial number, for example "vdc". */
static bool find_disk(const char *serial, char *name, size_t size) {
  char path[300], text[64];
  DIR *disks = opendir("/sys/block");
  bool found = false;
  for (struct dirent *entry; !found && disks != NULL && (entry = readdir(disks)) != NULL;) {
    if (strncmp(entry->d_name, "vd", 2) != 0) continue;
    snprintf(path, sizeof path, "/sys/block/%s/serial", entry->d_name);
    system_read_file(path, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    found = strcmp(text, serial) == 0;
    if (found) snprintf(name, size, "%s", entry->d_name);
  }
  if (disks != NULL) closedir(disks);
  return found;
}

static bool await_disk(const char *serial, char *name, size_t size) {
  for (int waited = 0; waited < DISK_MS; waited += 5) {
    if (find_disk(serial, name, size)) return true;
    usleep(5000);
  }
  return false;
}

/* Extends the file system to a disk that has become larger. A failure is not a reason to refuse the start. */
static void grow(const char *device, int root) {
  struct statfs now;
  uint64_t bytes;
  int disk = open(device, O_RDONLY | O_CLOEXEC);
  if (disk < 0 || ioctl(disk, BLKGETSIZE64, &bytes) < 0 || fstatfs(root, &now) < 0) {
    system_note("the size of a volume", errno);
  } else {
    uint64_t blocks = bytes / (uint64_t)now.f_bsize;
    if (ioctl(root, GROW_EXT4, &blocks) < 0) system_note("a volume could not be extended", errno);
  }
  if (disk >= 0) close(disk);
}

static bool is_empty(int root) {
  DIR *folder = fdopendir(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  bool empty = folder != NULL;
  for (struct dirent *entry; empty && (entry = readdir(folder)) != NULL;)
    empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || strcmp(entry->d_name, "lost+found") == 0;
  if (folder != NULL) closedir(folder);
  return empty;
}

/* Gives a volume that was never used to the app's user, without lost+found: `initdb` wants an empty directory. */
static void hand_over(int root, const struct config *config) {
  static char passwd[65536], group[65536];
  struct user user;
  struct stat now;
  if (fstat(root, &now) < 0 || now.st_uid != 0 || now.st_gid != 0 || !is_empty(root)) return;
  if (unlinkat(root, "lost+found", AT_REMOVEDIR) < 0 && errno != ENOENT) system_note("lost+found", errno);
  system_read_file("/etc/passwd", passwd, sizeof passwd);
  system_read_file("/etc/group", group, sizeof group);
  /* The start of the app reports a user that does not exist. */
  if (user_find(&user, config->user != NULL ? config->user : "", passwd, group) != NULL) return;
  if (fchown(root, user.uid, user.gid) < 0) system_note("the owner of a volume", errno);
}

static const char *mount_one(const char *record, const struct config *config, int *error) {
  static char fault[PATH_MAX + 64];
  char serial[32], disk[256], device[sizeof disk + 5];
  const char *path = strchr(record, ' ') + 1;
  snprintf(serial, sizeof serial, "%.*s", (int)(path - 1 - record), record);
  *error = 0;
  if (!await_disk(serial, disk, sizeof disk)) {
    snprintf(fault, sizeof fault, "the machine does not have the disk %s for %s", serial, path);
    return fault;
  }
  snprintf(device, sizeof device, "/dev/%s", disk);
  *error = -system_make_folders(path);
  /* After an error of the disk, nothing more is written, so that the damage does not spread. */
  if (*error == 0 && mount(device, path, "ext4", MS_NOATIME, "errors=remount-ro") < 0) *error = errno;
  int root = *error == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (*error == 0 && (root < 0 || realpath(path, mounted[count].path) == NULL)) *error = errno;
  if (*error != 0) {
    snprintf(fault, sizeof fault, "volume %s could not be mounted at %s", serial, path);
    return fault;
  }
  mounted[count++].root = root;
  grow(device, root);
  hand_over(root, config);
  return NULL;
}

const char *volumes_mount(const struct config *config, int *error) {
  for (size_t i = 0; i < config->volume_count; i++) {
    const char *fault = mount_one(config->volumes[i], config, error);
    if (fault != NULL) return fault;
  }
  return NULL;
}

static void freeze(int root, const char *path) {
  if (ioctl(root, FIFREEZE, 0) < 0 && errno != EBUSY) system_note(path, errno);
}

void volumes_freeze(void) {
  for (size_t i = 0; i < count; i++) freeze(mounted[i].root, mounted[i].path);
  frozen = true;
}

void volumes_thaw(void) {
  for (size_t i = count; frozen && i-- > 0;)
    if (ioctl(mounted[i].root, FITHAW, 0) < 0 && errno != EINVAL) system_note(mounted[i].path, errno);
  frozen = false;
}

static void end_processes(void) {
  kill(-1, SIGKILL);
  for (int waited = 0; waited < END_MS; waited++) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {}
    if (pid < 0) return; /* no child process is left */
    usleep(1000);
  }
}

void volumes_close(void) {
  if (count == 0) return;
  volumes_thaw();
  end_processes();
  while (count-- > 0) {
    const char *path = mounted[count].path;
    close(mounted[count].root);
    if (umount2(path, 0) == 0) continue;
    /* Something uses it, for example a mount inside. A frozen file system is as consistent as an unmounted one. */
    system_note(path, errno);
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0) freeze(root, path);
  }
}
