/* Tar archives, read and written as streams: ustar, with pax and GNU records for long names and large sizes. Memory is
 * constant, and nothing that is read is trusted. */
#ifndef HIBERNAUT_TAR_H
#define HIBERNAUT_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_NAME_MAX 4096u      /* bytes of a path or a link's target: the kernel's PATH_MAX */
#define TAR_EXTENDED_MAX 65536u /* bytes of one pax or GNU record: far more than two paths need */

enum tar_type { TAR_FILE = '0', TAR_HARD_LINK = '1', TAR_SYMLINK = '2', TAR_DIRECTORY = '5' };

struct tar_entry {
  char name[TAR_NAME_MAX + 1], link[TAR_NAME_MAX + 1];
  char type;     /* enum tar_type, or the archive's own letter for anything else */
  uint32_t mode; /* permissions, at most 07777 */
  uint32_t uid, gid;
  uint64_t size; /* bytes of content that follow */
  int64_t mtime; /* seconds since 1970 */
};

struct tar_reader {
  int fd;
  uint64_t left;     /* bytes of the present entry's content that were not read yet */
  uint32_t padding;  /* bytes after the content */
  const char *fault; /* why the archive cannot be read any further */
};

/* Reads the next entry, and skips what is left of the one before. Returns false at the end, or with `fault` set. */
bool tar_next(struct tar_reader *reader, struct tar_entry *entry);

/* Reads some content of the present entry. Returns 0 at its end, or with `fault` set. */
size_t tar_read(struct tar_reader *reader, uint8_t *into, size_t most);

/* Write an entry's header, fill its content up to whole blocks, and end the archive. They return false if `fd` cannot
 * be written to; errno says why. */
bool tar_write_header(int fd, const struct tar_entry *entry);
bool tar_write_padding(int fd, uint64_t size);
bool tar_write_end(int fd);

/* Reads until `size` bytes are there or nothing follows. Returns how many bytes were read. */
size_t tar_fill(int fd, uint8_t *into, size_t size);

/* Writes all bytes. Returns false if that fails. */
bool tar_put(int fd, const void *bytes, size_t size);

#endif
