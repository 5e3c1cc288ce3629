#define _GNU_SOURCE
#include "swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include "frame.h"
#include "system.h"

#define SWAP_FILE "swap"
#define PAGES_PER_MB (1024u * 1024u / SWAP_PAGE)

/* The layout of union swap_header in the kernel's include/linux/swap.h. */
enum header_offset {
  SWAP_VERSION = 1024,   /* u32: 1 */
  SWAP_LAST_PAGE = 1028, /* u32 */
  SWAP_BAD_PAGES = 1032, /* u32 */
  SWAP_MAGIC = SWAP_PAGE - 10,
};

void swap_header(uint8_t page[SWAP_PAGE], uint32_t pages) {
  memset(page, 0, SWAP_PAGE);
  put_u32(page + SWAP_VERSION, 1);
  put_u32(page + SWAP_LAST_PAGE, pages - 1);
  put_u32(page + SWAP_BAD_PAGES, 0);
  memcpy(page + SWAP_MAGIC, "SWAPSPACE2", 10);
}

int swap_make(int folder, const char *name, uint32_t megabytes) {
  uint8_t page[SWAP_PAGE];
  if (unlinkat(folder, name, 0) < 0 && errno != ENOENT) return -errno;
  int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -errno;
  swap_header(page, megabytes * PAGES_PER_MB);
  /* Space that is reserved, not written: the host's file grows with what is swapped out. */
  int error = fallocate(fd, 0, 0, (off_t)megabytes * 1024 * 1024) < 0 ? -errno : 0;
  if (error == 0 && pwrite(fd, page, sizeof page, 0) != (ssize_t)sizeof page) error = -EIO;
  if (error == 0 && fsync(fd) < 0) error = -errno; /* the kernel reads the file's blocks, not its cache */
  if (error == 0) return fd;
  close(fd);
  unlinkat(folder, name, 0);
  return error;
}

const char *swap_start(uint32_t megabytes, int *error) {
  static char fault[64];
  char path[32];
  *error = 0;
  if (megabytes == 0) return NULL;
  int fd = swap_make(system_layer(), SWAP_FILE, megabytes);
  if (fd >= 0) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (swapon(path, 0) < 0) *error = errno;
    close(fd);
  } else {
    *error = -fd;
  }
  if (*error != 0) {
    snprintf(fault, sizeof fault, "%u MB of swap could not be set up", megabytes);
    return fault;
  }
  system_allow_thrashing();
  /* The agent answers the platform at once, even when everything else waits for the disk. */
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0) system_note("mlockall", errno);
  return NULL;
}
