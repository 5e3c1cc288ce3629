/*
 * Loaded into QEMU when its guest begins with a memory file that other machines begin with, too. QEMU maps that privately,
 * which needs no right to write, but opens it for writing first (before version 8.2 nothing can be said against that). In
 * the jail, the file is another user's, on a read-only mount: what cannot be opened for writing for such a reason is opened
 * for reading. To write to it fails as before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_at_most(const char *path, int flags, mode_t mode) {
  int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  if (file >= 0 || (errno != EROFS && errno != EACCES)) return file;
  if ((flags & O_ACCMODE) != O_RDWR || (flags & O_CREAT) != 0) return -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, (flags & ~O_ACCMODE) | O_RDONLY, mode);
}

/* The two names that QEMU calls open(2) by: with and without a file mode, where it is built with _FORTIFY_SOURCE. */
int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at_most(path, flags, mode);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags) {
  return open_at_most(path, flags, 0);
}
