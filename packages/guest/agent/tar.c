#define _GNU_SOURCE
#include "tar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512u
#define OCTAL_SIZE_MAX 077777777777ull /* what 11 octal digits hold */
#define OCTAL_ID_MAX 07777777u         /* what 7 octal digits hold */

/* A header, as POSIX has it. */
struct header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
      user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* What pax and GNU records say about the entry after them. */
struct extended {
  bool name, link, size, uid, gid;
  struct tar_entry entry;
};

size_t tar_fill(int fd, uint8_t *into, size_t size) {
  size_t have = 0;
  while (have < size) {
    ssize_t got = read(fd, into + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += (size_t)got;
  }
  return have;
}

bool tar_put(int fd, const void *bytes, size_t size) {
  const uint8_t *at = bytes;
  while (size > 0) {
    ssize_t put = write(fd, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    at += put;
    size -= (size_t)put;
  }
  return true;
}

/* ---- reading ---- */

static bool fail(struct tar_reader *reader, const char *fault) {
  reader->fault = fault;
  return false;
}

/* Octal digits between spaces, or, if the highest bit is set, a binary number. Returns false for anything else. */
static bool number(const char *field, size_t length, uint64_t *value) {
  *value = 0;
  if ((uint8_t)field[0] & 0x80) {
    if ((uint8_t)field[0] != 0x80) return false; /* negative, or too large for 88 bits */
    for (size_t i = 1; i < length; i++) {
      if (*value >> 55 != 0) return false;
      *value = *value << 8 | (uint8_t)field[i];
    }
    return true;
  }
  size_t i = 0;
  while (i < length && field[i] == ' ') i++;
  for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) *value = *value << 3 | (uint64_t)(field[i] - '0');
  while (i < length && (field[i] == ' ' || field[i] == '\0')) i++;
  return i == length;
}

static uint32_t sum_of(const struct header *header) {
  const uint8_t *bytes = (const uint8_t *)header;
  uint32_t sum = 0;
  for (size_t i = 0; i < BLOCK; i++) {
    bool own = i >= offsetof(struct header, checksum) && i < offsetof(struct header, checksum) + sizeof header->checksum;
    sum += own ? ' ' : bytes[i];
  }
  return sum;
}

static bool take_text(struct tar_reader *reader, char *into, const char *from, size_t length) {
  if (length > TAR_NAME_MAX) return fail(reader, "a path is longer than 4096 bytes");
  if (memchr(from, 0, length) != NULL) return fail(reader, "a path contains a zero byte");
  memcpy(into, from, length);
  into[length] = '\0';
  return true;
}

static bool decimal(const char *text, size_t length, uint64_t *value) {
  *value = 0;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9' || *value > (INT64_MAX - 9) / 10) return false;
    *value = *value * 10 + (uint64_t)(text[i] - '0');
  }
  return length > 0;
}

static bool is_key(const char *record, size_t key_length, const char *key) {
  return strlen(key) == key_length && memcmp(record, key, key_length) == 0;
}

static bool take_pax(struct tar_reader *reader, struct extended *more, const char *key, size_t key_length,
                     const char *value, size_t length) {
  struct tar_entry *entry = &more->entry;
  uint64_t found = 0;
  if (key_length >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
    return fail(reader, "a file is stored as sparse, which is not supported");
  if (is_key(key, key_length, "path")) return more->name = take_text(reader, entry->name, value, length);
  if (is_key(key, key_length, "linkpath")) return more->link = take_text(reader, entry->link, value, length);
  bool size = is_key(key, key_length, "size"), uid = is_key(key, key_length, "uid"), gid = is_key(key, key_length, "gid");
  if (!size && !uid && !gid) return true; /* times, attributes and comments are not kept */
  if (!decimal(value, length, &found) || (!size && found > UINT32_MAX)) return fail(reader, "a pax record has a number that is not valid");
  if (size) entry->size = found, more->size = true;
  if (uid) entry->uid = (uint32_t)found, more->uid = true;
  if (gid) entry->gid = (uint32_t)found, more->gid = true;
  return true;
}

/* Records of the form "length key=value\n". */
static bool read_pax(struct tar_reader *reader, struct extended *more, const char *records, size_t length) {
  while (length > 0) {
    size_t digits = 0;
    uint64_t size = 0;
    while (digits < length && digits < 8 && records[digits] >= '0' && records[digits] <= '9') digits++;
    if (!decimal(records, digits, &size) || digits >= length || records[digits] != ' ' || size > length ||
        size < digits + 3 || records[size - 1] != '\n')
      return fail(reader, "a pax record is not valid");
    const char *key = records + digits + 1, *end = records + size - 1;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (equals == NULL) return fail(reader, "a pax record is not valid");
    if (!take_pax(reader, more, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1))) return false;
    records += size;
    length -= size;
  }
  return true;
}

static bool skip(struct tar_reader *reader, uint64_t bytes) {
  static uint8_t chunk[16384];
  while (bytes > 0) {
    size_t part = bytes < sizeof chunk ? (size_t)bytes : sizeof chunk;
    if (tar_fill(reader->fd, chunk, part) != part) return fail(reader, "it is cut short");
    bytes -= part;
  }
  return true;
}

static bool read_extended(struct tar_reader *reader, struct extended *more, char type, uint64_t size) {
  static char text[TAR_EXTENDED_MAX];
  if (size > sizeof text) return fail(reader, "a record about a file is larger than 64 KiB");
  if (tar_fill(reader->fd, (uint8_t *)text, (size_t)size) != size) return fail(reader, "it is cut short");
  if (!skip(reader, (BLOCK - size % BLOCK) % BLOCK)) return false;
  size_t length = strnlen(text, (size_t)size);
  if (type == 'x') return read_pax(reader, more, text, (size_t)size);
  if (type == 'L') return more->name = take_text(reader, more->entry.name, text, length);
  if (type == 'K') return more->link = take_text(reader, more->entry.link, text, length);
  return true; /* 'g': about all entries, and nothing in it is kept */
}

static bool take_header(struct tar_reader *reader, const struct header *header, struct tar_entry *entry) {
  uint64_t mode, uid, gid, mtime, checksum;
  if (!number(header->checksum, sizeof header->checksum, &checksum) || checksum != sum_of(header))
    return fail(reader, "a header's checksum is wrong");
  if (!number(header->mode, sizeof header->mode, &mode) || !number(header->size, sizeof header->size, &entry->size) ||
      !number(header->uid, sizeof header->uid, &uid) || !number(header->gid, sizeof header->gid, &gid))
    return fail(reader, "a header has a number that is not valid");
  if (!number(header->mtime, sizeof header->mtime, &mtime) || mtime > INT64_MAX) mtime = 0;
  if (entry->size > INT64_MAX || uid > UINT32_MAX || gid > UINT32_MAX)
    return fail(reader, "a header has a number that is not valid");
  entry->mode = (uint32_t)(mode & 07777);
  entry->uid = (uint32_t)uid, entry->gid = (uint32_t)gid;
  entry->mtime = (int64_t)mtime;
  entry->type = header->type == '\0' || header->type == '7' ? TAR_FILE : header->type;
  size_t prefix = memcmp(header->magic, "ustar", 6) == 0 ? strnlen(header->prefix, sizeof header->prefix) : 0;
  size_t name = strnlen(header->name, sizeof header->name), link = strnlen(header->link, sizeof header->link);
  memcpy(entry->name, header->prefix, prefix);
  if (prefix > 0) entry->name[prefix++] = '/';
  memcpy(entry->name + prefix, header->name, name);
  entry->name[prefix + name] = '\0';
  memcpy(entry->link, header->link, link);
  entry->link[link] = '\0';
  return true;
}

static void apply(const struct extended *more, struct tar_entry *entry) {
  if (more->name) strcpy(entry->name, more->entry.name);
  if (more->link) strcpy(entry->link, more->entry.link);
  if (more->size) entry->size = more->entry.size;
  if (more->uid) entry->uid = more->entry.uid;
  if (more->gid) entry->gid = more->entry.gid;
}

static bool is_zero(const struct header *header) {
  const uint8_t *bytes = (const uint8_t *)header;
  for (size_t i = 0; i < BLOCK; i++) if (bytes[i] != 0) return false;
  return true;
}

bool tar_next(struct tar_reader *reader, struct tar_entry *entry) {
  static struct extended more;
  struct header header;
  more.name = more.link = more.size = more.uid = more.gid = false;
  if (reader->fault != NULL || !skip(reader, reader->left) || !skip(reader, reader->padding)) return false;
  reader->left = reader->padding = 0;
  for (;;) {
    if (tar_fill(reader->fd, (uint8_t *)&header, BLOCK) != BLOCK) return fail(reader, "it is cut short");
    if (is_zero(&header)) return false;
    if (!take_header(reader, &header, entry)) return false;
    if (entry->type != 'x' && entry->type != 'g' && entry->type != 'L' && entry->type != 'K') break;
    if (!read_extended(reader, &more, entry->type, entry->size)) return false;
  }
  apply(&more, entry);
  if (entry->type == 'S') return fail(reader, "a file is stored as sparse, which is not supported");
  size_t length = strlen(entry->name);
  if (entry->type == TAR_FILE && length > 0 && entry->name[length - 1] == '/') entry->type = TAR_DIRECTORY;
  if (entry->type != TAR_FILE) {
    if (!skip(reader, entry->size) || !skip(reader, (BLOCK - entry->size % BLOCK) % BLOCK)) return false;
    entry->size = 0;
  }
  reader->left = entry->size;
  reader->padding = (uint32_t)((BLOCK - entry->size % BLOCK) % BLOCK);
  return true;
}

size_t tar_read(struct tar_reader *reader, uint8_t *into, size_t most) {
  size_t part = reader->left < most ? (size_t)reader->left : most;
  if (part == 0 || reader->fault != NULL) return 0;
  if (tar_fill(reader->fd, into, part) != part) {
    reader->fault = "it is cut short";
    return 0;
  }
  reader->left -= part;
  return part;
}

/* ---- writing ---- */

static void octal(char *field, size_t size, uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%0*llo", (int)size - 1, (unsigned long long)value);
  memcpy(field, digits, size); /* with its zero byte */
}

/* As GNU tar writes a number that is too large for octal digits. */
static void binary(char *field, size_t size, uint64_t value) {
  for (size_t i = size; i-- > 0; value >>= 8) field[i] = (char)(value & 0xff);
  field[0] = (char)0x80;
}

static bool write_block(int fd, struct header *header) {
  char sum[8];
  memcpy(header->magic, "ustar", 6);
  memcpy(header->version, "00", 2);
  snprintf(sum, sizeof sum, "%06o", (unsigned)(sum_of(header) & 0777777));
  memcpy(header->checksum, sum, 7);
  header->checksum[7] = ' ';
  return tar_put(fd, header, BLOCK);
}

/* A pax record begins with its own length, digits included. */
static size_t add_record(char *records, size_t used, const char *key, const char *value) {
  size_t rest = strlen(key) + strlen(value) + 3, digits = 1, limit = 10;
  while (rest + digits >= limit) digits++, limit *= 10;
  return used + (size_t)sprintf(records + used, "%zu %s=%s\n", rest + digits, key, value);
}

static size_t add_number(char *records, size_t used, const char *key, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  return add_record(records, used, key, text);
}

static bool write_pax(int fd, const char *records, size_t length) {
  struct header header = {.type = 'x'};
  memcpy(header.name, "pax", 3);
  octal(header.mode, sizeof header.mode, 0600);
  octal(header.uid, sizeof header.uid, 0);
  octal(header.gid, sizeof header.gid, 0);
  octal(header.size, sizeof header.size, length);
  octal(header.mtime, sizeof header.mtime, 0);
  return write_block(fd, &header) && tar_put(fd, records, length) && tar_write_padding(fd, length);
}

bool tar_write_header(int fd, const struct tar_entry *entry) {
  static char records[2 * TAR_NAME_MAX + 256];
  struct header header = {.type = entry->type};
  size_t name = strlen(entry->name), link = strlen(entry->link), used = 0;
  if (name > sizeof header.name) used = add_record(records, used, "path", entry->name);
  if (link > sizeof header.link) used = add_record(records, used, "linkpath", entry->link);
  if (entry->uid > OCTAL_ID_MAX) used = add_number(records, used, "uid", entry->uid);
  if (entry->gid > OCTAL_ID_MAX) used = add_number(records, used, "gid", entry->gid);
  if (used > 0 && !write_pax(fd, records, used)) return false;
  memcpy(header.name, entry->name, name < sizeof header.name ? name : sizeof header.name);
  memcpy(header.link, entry->link, link < sizeof header.link ? link : sizeof header.link);
  octal(header.mode, sizeof header.mode, entry->mode & 07777);
  octal(header.uid, sizeof header.uid, entry->uid > OCTAL_ID_MAX ? 0 : entry->uid);
  octal(header.gid, sizeof header.gid, entry->gid > OCTAL_ID_MAX ? 0 : entry->gid);
  if (entry->size <= OCTAL_SIZE_MAX) octal(header.size, sizeof header.size, entry->size);
  else binary(header.size, sizeof header.size, entry->size);
  octal(header.mtime, sizeof header.mtime, entry->mtime < 0 || entry->mtime > (int64_t)OCTAL_SIZE_MAX ? 0 : (uint64_t)entry->mtime);
  return write_block(fd, &header);
}

bool tar_write_padding(int fd, uint64_t size) {
  static const uint8_t zeros[BLOCK];
  return tar_put(fd, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

bool tar_write_end(int fd) {
  static const uint8_t zeros[2 * BLOCK];
  return tar_put(fd, zeros, sizeof zeros);
}
