/* Tests of the agent's parts that need no machine: frames, configuration, files, swap, users, ports. Prints a line per test and
 * exits with 1 when one fails. Run it with the sanitizers. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "config.h"
#include "files.h"
#include "frame.h"
#include "listening.h"
#include "swap.h"
#include "system.h"
#include "user.h"

/* ---- frames ---- */

static struct frame_reader *new_reader(void) { return calloc(1, sizeof(struct frame_reader)); }

/* Feeds bytes in pieces of at most `step` (0: as many as fit), counts the frames, and copies the last one to *last. */
static int feed(struct frame_reader *reader, const uint8_t *bytes, size_t length, size_t step, struct frame *last) {
  int found = 0;
  struct frame frame;
  while (length > 0) {
    size_t room;
    uint8_t *into = frame_room(reader, &room);
    EXPECT(room >= FRAME_MAX);
    if (room == 0) return found;
    size_t piece = step > 0 && step < room ? step : room;
    if (piece > length) piece = length;
    memcpy(into, bytes, piece);
    frame_fed(reader, piece);
    bytes += piece, length -= piece;
    for (; frame_next(reader, &frame); found++) if (last != NULL) *last = frame;
  }
  return found;
}

static void frames_round_trip(void) {
  static const uint32_t lengths[] = {0, 1, 2, 19, 20, 21, 4096, FRAME_MAX_PAYLOAD - 1, FRAME_MAX_PAYLOAD};
  uint8_t *payload = malloc(FRAME_MAX_PAYLOAD), *bytes = malloc(FRAME_MAX);
  for (size_t i = 0; i < FRAME_MAX_PAYLOAD; i++) payload[i] = (uint8_t)(i * 7);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    struct frame_reader *reader = new_reader();
    struct frame frame = {0};
    size_t size = frame_write(bytes, 0x86, 0x01020304, payload, lengths[i]);
    EXPECT(size == FRAME_HEADER + lengths[i]);
    EXPECT(feed(reader, bytes, size, 0, &frame) == 1);
    EXPECT(frame.type == 0x86 && frame.stream == 0x01020304 && frame.length == lengths[i]);
    EXPECT(memcmp(frame.payload, payload, lengths[i]) == 0);
    EXPECT(reader->skipped == 0);
    free(reader);
  }
  free(payload), free(bytes);
}

static void frames_known_bytes(void) {
  static const uint8_t known[] = {'H', 'B', 'N', '1', 0x86, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 0xc2, 0x2c, 0xae, 0x0e, 'h', 'e', 'l', 'l', 'o'};
  uint8_t bytes[sizeof known];
  EXPECT(frame_write(bytes, 0x86, 2, "hello", 5) == sizeof known);
  EXPECT(memcmp(bytes, known, sizeof known) == 0);
  EXPECT(frame_crc(0, (const uint8_t *)"123456789", 9) == 0xcbf43926u);
}

static void frames_damaged(void) {
  uint8_t bytes[200], original[64];
  size_t size = frame_write(original, F_SET, 7, "some payload", 12);
  for (size_t at = 0; at < size; at++) {
    for (int bit = 0; bit < 8; bit++) {
      struct frame_reader *reader = new_reader();
      memcpy(bytes, original, size);
      bytes[at] ^= (uint8_t)(1 << bit);
      size_t total = size + frame_write(bytes + size, F_PING, 0, "ok", 2);
      struct frame frame = {0};
      int found = feed(reader, bytes, total, 0, &frame);
      /* A damaged length may make the reader wait for more, but it never accepts the damaged frame. */
      EXPECT(found == 0 || (found == 1 && frame.type == F_PING));
      EXPECT(found == 1 || (at >= 12 && at < 15));
      free(reader);
    }
  }
}

static void frames_oversized(void) {
  static const uint32_t lengths[] = {FRAME_MAX_PAYLOAD + 1, 0x7fffffff, 0x80000000, 0xffffffec, 0xffffffff};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    uint8_t bytes[100];
    struct frame_reader *reader = new_reader();
    size_t size = frame_write(bytes, F_SET, 0, NULL, 0);
    put_u32(bytes + 12, lengths[i]);
    size += frame_write(bytes + size, F_PING, 0, NULL, 0);
    EXPECT(feed(reader, bytes, size, 0, NULL) == 1);
    EXPECT(reader->skipped == FRAME_HEADER);
    free(reader);
  }
}

static void frames_never_fill_the_reader(void) {
  /* The worst noise: headers with the largest length, so that the reader keeps as much as possible. */
  uint8_t header[FRAME_HEADER];
  struct frame_reader *reader = new_reader();
  frame_write(header, F_SET, 0, NULL, 0);
  put_u32(header + 12, FRAME_MAX_PAYLOAD);
  for (int i = 0; i < 4000; i++) feed(reader, header, sizeof header, 0, NULL); /* feed() checks the room */
  EXPECT(reader->end - reader->begin < FRAME_MAX);
  free(reader);
}

static void frames_fuzz(void) {
  uint8_t bytes[600], payload[200];
  uint64_t taken = 0;
  struct frame_reader *reader = new_reader();
  for (int round = 0; round < 200000 && !failed; round++) {
    size_t size = 0;
    while (size < 300) {
      uint32_t length = random_below(sizeof payload);
      for (uint32_t i = 0; i < length; i++) payload[i] = (uint8_t)random_below(256);
      size += frame_write(bytes + size, (uint8_t)random_below(256), random_below(4), payload, length);
    }
    for (uint32_t changes = random_below(6); changes > 0; changes--) bytes[random_below((uint32_t)size)] = (uint8_t)random_below(256);
    if (random_below(4) == 0) size = random_below((uint32_t)size + 1);
    if (random_below(50) == 0) reader->begin = reader->end = 0;
    size_t kept = reader->end - reader->begin, skipped = (size_t)reader->skipped;
    struct frame frame = {0};
    taken += (uint64_t)feed(reader, bytes, size, random_below(3) == 0 ? 1 + random_below(40) : 0, &frame);
    EXPECT(reader->end - reader->begin < FRAME_MAX);
    EXPECT(reader->skipped - skipped <= kept + size);
    EXPECT(frame.length <= FRAME_MAX_PAYLOAD);
  }
  printf("  seed %#llx: 200000 buffers, %llu frames survived\n", (unsigned long long)SEED, (unsigned long long)taken);
  EXPECT(taken > 100000); /* otherwise the fuzz tests next to nothing */
  free(reader);
}

/* ---- configuration ---- */

static struct config *new_config(void) { return calloc(1, sizeof(struct config)); }

static void end_config(struct config *config) {
  config_free(config);
  EXPECT(config->hostname == NULL && config->arg_count == 0 && config->args[0] == NULL);
  free(config);
}

/* Sets one record, from a block of exactly its size, so that the sanitizer notices a read beyond the end. */
static const char *set_bytes(struct config *config, uint8_t key, const void *value, size_t length) {
  uint8_t *record = malloc(5 + length);
  record[0] = key;
  put_u32(record + 1, (uint32_t)length);
  if (length > 0) memcpy(record + 5, value, length);
  const char *fault = config_set(config, record, 5 + length);
  free(record);
  return fault;
}

static const char *set(struct config *config, uint8_t key, const char *value) { return set_bytes(config, key, value, strlen(value)); }

static void config_every_key(void) {
  static const uint8_t clock[] = {1, 2, 3, 4, 5, 6, 7, 8};
  struct config *config = new_config();
  EXPECT(config_set(config, NULL, 0) == NULL);
  EXPECT(set(config, C_HOSTNAME, "first") == NULL);
  EXPECT(set(config, C_HOSTNAME, "second") == NULL);
  EXPECT(set(config, C_USER, "") == NULL);
  EXPECT(set(config, C_WORKDIR, "/app") == NULL);
  EXPECT(set(config, C_ADDRESS, "10.0.2.15/24") == NULL);
  EXPECT(set(config, C_GATEWAY, "10.0.2.2") == NULL);
  EXPECT(set(config, C_DNS, "10.0.2.3") == NULL);
  EXPECT(set(config, C_ARG, "/bin/app") == NULL && set(config, C_ARG, "") == NULL && set(config, C_ARG, "-v") == NULL);
  EXPECT(set(config, C_ENV, "PATHS=no") == NULL && set(config, C_ENV, "PATH=/bin") == NULL && set(config, C_ENV, "EMPTY=") == NULL);
  EXPECT(set(config, C_HOSTS, "10.0.0.1 db") == NULL);
  EXPECT(set(config, C_VOLUME, "vol_1 /data/a b") == NULL);
  EXPECT(set(config, C_PORT, "8080") == NULL && set(config, C_PORT, "1") == NULL && set(config, C_PORT, "65535") == NULL);
  EXPECT(set_bytes(config, C_CLOCK, clock, 8) == NULL);
  EXPECT_TEXT(config->hostname, "second");
  EXPECT_TEXT(config->user, "");
  EXPECT_TEXT(config->workdir, "/app");
  EXPECT_TEXT(config->address, "10.0.2.15/24");
  EXPECT_TEXT(config->gateway, "10.0.2.2");
  EXPECT_TEXT(config->dns, "10.0.2.3");
  EXPECT(config->arg_count == 3 && config->args[3] == NULL);
  EXPECT_TEXT(config->args[1], "");
  EXPECT_TEXT(config_env(config, "PATH"), "/bin");
  EXPECT_TEXT(config_env(config, "EMPTY"), "");
  EXPECT_TEXT(config_env(config, "PAT"), NULL);
  EXPECT_TEXT(config->hosts[0], "10.0.0.1 db");
  EXPECT_TEXT(config->volumes[0], "vol_1 /data/a b");
  EXPECT(config->port_count == 3 && config->ports[0] == 8080 && config->ports[1] == 1 && config->ports[2] == 65535);
  EXPECT(config->clock_ns == 0x0807060504030201ull);
  end_config(config);
}

static void config_many_records_in_one_frame(void) {
  uint8_t records[12] = {C_ARG, 1, 0, 0, 0, 'a', C_ARG, 1, 0, 0, 0, 'b'};
  struct config *config = new_config();
  EXPECT(config_set(config, records, 12) == NULL);
  EXPECT(config->arg_count == 2);
  EXPECT_TEXT(config_set(config, records, 11), "a record is longer than its frame");
  EXPECT_TEXT(config_set(config, records, 10), "a record is cut short");
  EXPECT(config->arg_count == 4); /* the complete record before each faulty one is kept */
  end_config(config);
}

static void config_cut_and_too_long(void) {
  struct config *config = new_config();
  for (size_t length = 1; length < 5; length++) {
    uint8_t *cut = calloc(1, length);
    EXPECT_TEXT(config_set(config, cut, length), "a record is cut short");
    free(cut);
  }
  static const uint32_t sizes[] = {1, 0x7fffffff, 0xfffffffb, 0xffffffff};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uint8_t *record = calloc(1, 5);
    record[0] = C_ARG;
    put_u32(record + 1, sizes[i]);
    EXPECT_TEXT(config_set(config, record, 5), "a record is longer than its frame");
    free(record);
  }
  end_config(config);
}

static void config_bad_values(void) {
  struct config *config = new_config();
  EXPECT_TEXT(set(config, 0, "x"), "a record has an unknown key");
  EXPECT_TEXT(set(config, 99, "x"), "a record has an unknown key");
  EXPECT_TEXT(set(config, 255, ""), "a record has an unknown key");
  EXPECT_TEXT(set_bytes(config, C_ARG, "a\0b", 3), "a value contains a zero byte");
  EXPECT_TEXT(set_bytes(config, C_HOSTNAME, "\0", 1), "a value contains a zero byte");
  EXPECT_TEXT(set(config, C_SWAP, "512"), "the size of the swap is not 4 bytes");
  EXPECT(set_bytes(config, C_SWAP, "\0\2\0", 4) == NULL && config->swap_mb == 512);
  EXPECT_TEXT(set_bytes(config, C_CLOCK, "1234567", 7), "the clock is not 8 bytes");
  EXPECT_TEXT(set_bytes(config, C_CLOCK, "123456789", 9), "the clock is not 8 bytes");
  static const char *const ports[] = {"", "0", "65536", "-1", "+1", " 1", "1 ", "1x", "0x10", "99999999999999999999999"};
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) EXPECT_TEXT(set(config, C_PORT, ports[i]), "a port is not a number from 1 to 65535");
  static const char *const volumes[] = {"", "vol_1", "vol_1 ", " /data", "vol_1 data", "/data vol_1"};
  for (size_t i = 0; i < sizeof volumes / sizeof *volumes; i++) EXPECT_TEXT(set(config, C_VOLUME, volumes[i]), "a volume is not a disk's serial number and a path");
  static const char *const files[] = {"", "644", "0644 ", "0644 etc/x", "1000 /etc/x", "/etc/x 0644", "9 /etc/x", "x /etc/x"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) EXPECT_TEXT(set(config, C_FILE, files[i]), "a file is not a mode and a path");
  EXPECT_TEXT(set(config, C_FILE_DATA, "x"), "a file's content does not follow a file");
  EXPECT(config->file_count == 0 && config->file_bytes == 0);
  EXPECT(config->arg_count == 0 && config->port_count == 0 && config->volume_count == 0 && config->hostname == NULL);
  end_config(config);
}

static void config_too_many(void) {
  struct config *config = new_config();
  for (int i = 0; i < CONFIG_MAX_WORDS; i++) EXPECT(set(config, C_ARG, "a") == NULL && set(config, C_ENV, "A=b") == NULL);
  EXPECT(set(config, C_ARG, "a") != NULL && set(config, C_ENV, "A=b") != NULL);
  EXPECT(config->args[CONFIG_MAX_WORDS] == NULL && config->env[CONFIG_MAX_WORDS] == NULL);
  int hosts = 0;
  while (hosts < 100 && set(config, C_HOSTS, "h") == NULL) hosts++;
  EXPECT(hosts == CONFIG_MAX_HOSTS - 1 && config->hosts[hosts] == NULL);
  for (int i = 0; i < CONFIG_MAX_PORTS; i++) EXPECT(set(config, C_PORT, "80") == NULL);
  EXPECT_TEXT(set(config, C_PORT, "80"), "too many ports");
  for (int i = 0; i < CONFIG_MAX_VOLUMES; i++) EXPECT(set(config, C_VOLUME, "v /d") == NULL);
  EXPECT(set(config, C_VOLUME, "v /d") != NULL && config->volumes[CONFIG_MAX_VOLUMES] == NULL);
  for (int i = 0; i < CONFIG_MAX_FILES; i++) EXPECT(set(config, C_FILE, "644 /f") == NULL);
  EXPECT_TEXT(set(config, C_FILE, "644 /f"), "too many files");
  static uint8_t piece[60000];
  size_t pieces = 0;
  while (pieces < 1000 && set_bytes(config, C_FILE_DATA, (const char *)piece, sizeof piece) == NULL) pieces++;
  EXPECT(pieces == CONFIG_MAX_FILE_BYTES / sizeof piece && config->file_bytes == pieces * sizeof piece);
  end_config(config);
}

/* ---- files ---- */

static void files_are_written(void) {
  struct config *config = new_config();
  char folder[] = "/tmp/hibernaut-agent-test-XXXXXX", record[200], path[200], text[32];
  struct stat now;
  int error = 7;
  EXPECT(mkdtemp(folder) != NULL);
  EXPECT(files_write(config, &error) == NULL && error == 0); /* none */
  snprintf(record, sizeof record, "%u:%u", (unsigned)getuid(), (unsigned)getgid());
  EXPECT(set(config, C_USER, record) == NULL);
  snprintf(record, sizeof record, "750 %s/a/b/run", folder);
  EXPECT(set(config, C_FILE, record) == NULL && set(config, C_FILE_DATA, "one ") == NULL);
  EXPECT(set_bytes(config, C_FILE_DATA, "t\0wo", 4) == NULL && set(config, C_FILE_DATA, "") == NULL);
  snprintf(record, sizeof record, "600 %s/link", folder);
  EXPECT(set(config, C_FILE, record) == NULL && set(config, C_FILE_DATA, "secret") == NULL);
  snprintf(path, sizeof path, "%s/link", folder);
  EXPECT(symlink("/nonexistent/elsewhere", path) == 0);
  EXPECT(files_write(config, &error) == NULL && error == 0);
  EXPECT(lstat(path, &now) == 0 && S_ISREG(now.st_mode) && (now.st_mode & 07777) == 0600 && now.st_uid == getuid());
  EXPECT_TEXT(system_read_file(path, text, sizeof text), "secret");
  EXPECT(unlink(path) == 0);
  snprintf(path, sizeof path, "%s/a/b/run", folder);
  EXPECT(stat(path, &now) == 0 && (now.st_mode & 07777) == 0750 && now.st_size == 8);
  EXPECT(memcmp(system_read_file(path, text, sizeof text), "one t\0wo", 8) == 0);
  EXPECT(config->file_count == 0 && config->file_bytes == 0); /* forgotten */
  /* A directory is in the place of the file: what is there stays, and no draft is left. */
  snprintf(record, sizeof record, "644 %s/a/b", folder);
  EXPECT(set(config, C_FILE, record) == NULL);
  const char *fault = files_write(config, &error);
  EXPECT(fault != NULL && strstr(fault, "/a/b could not be written") != NULL && error != 0);
  EXPECT(stat(path, &now) == 0 && unlink(path) == 0);
  snprintf(path, sizeof path, "%s/a/b", folder);
  EXPECT(rmdir(path) == 0);
  snprintf(path, sizeof path, "%s/a", folder);
  EXPECT(rmdir(path) == 0 && rmdir(folder) == 0);
  end_config(config);
}

/* ---- swap ---- */

static void swap_files(void) {
  char folder[] = "/tmp/hibernaut-agent-test-XXXXXX";
  uint8_t page[SWAP_PAGE];
  struct stat now;
  EXPECT(mkdtemp(folder) != NULL);
  int root = open(folder, O_RDONLY | O_DIRECTORY);
  int old = openat(root, "swap", O_RDWR | O_CREAT, 0644);
  EXPECT(old >= 0 && write(old, "old", 3) == 3);
  int fd = swap_make(root, "swap", 3);
  EXPECT(fd >= 0 && fstat(fd, &now) == 0);
  EXPECT(now.st_size == 3 << 20 && (now.st_mode & 07777) == 0600);
  EXPECT(pread(fd, page, sizeof page, 0) == sizeof page);
  EXPECT(get_u32(page + 1024) == 1 && get_u32(page + 1028) == 3 * 256 - 1 && get_u32(page + 1032) == 0);
  EXPECT(memcmp(page + sizeof page - 10, "SWAPSPACE2", 10) == 0);
  EXPECT(fstat(old, &now) == 0 && now.st_nlink == 0); /* replaced, not written to */
  close(fd), close(old);
  EXPECT(swap_make(-1, "swap", 1) < 0);
  EXPECT(unlinkat(root, "swap", 0) == 0 && rmdir(folder) == 0);
  close(root);
  int error = 7;
  EXPECT(swap_start(0, &error) == NULL && error == 0);
}

/* ---- users ---- */

static const char PASSWD[] =
    "root:x:0:0:root:/root:/bin/sh\n"
    "\n"
    "short\n"
    "noid:x::0::/noid:/bin/sh\n"
    "words:x:abc:0::/words:/bin/sh\n"
    "huge:x:4294967295:0::/huge:/bin/sh\n"
    "nohome:x:50:51\n"
    "relative:x:60:61::home:/bin/sh\n"
    "app:x:1000:1001:The App:/home/app:/bin/sh\n"
    "42:x:4242:4243::/home/42:/bin/sh\n"
    "last:x:70:71::/last:/bin/sh";
static const char GROUP[] =
    "root:x:0:root\n"
    "app:x:1001:\n"
    "audio:x:29:app,pulse\n"
    "badid:x:zz:app\n"
    "video:x:44:pulse,app\n"
    "almost:x:45:apple,anapp\n"
    "short:x\n"
    "wheel:x:10:last";

static void user_names(void) {
  struct user user;
  EXPECT(user_find(&user, "", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 0 && user.gid == 0 && user.group_count == 1 && user.groups[0] == 0);
  EXPECT_TEXT(user.home, "/root");
  EXPECT(user_find(&user, "app", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 1000 && user.gid == 1001);
  EXPECT_TEXT(user.home, "/home/app");
  EXPECT(user.group_count == 2 && user.groups[0] == 29 && user.groups[1] == 44);
  EXPECT(user_find(&user, "last", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 70 && user.gid == 71 && user.group_count == 1 && user.groups[0] == 10);
  EXPECT_TEXT(user.home, "/last");
  EXPECT(user_find(&user, "nohome", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 50 && user.gid == 51);
  EXPECT_TEXT(user.home, "/");
  EXPECT(user_find(&user, "relative", PASSWD, GROUP) == NULL);
  EXPECT_TEXT(user.home, "/");
}

static void user_numbers(void) {
  struct user user;
  EXPECT(user_find(&user, "1000", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 1000 && user.gid == 1001 && user.group_count == 2);
  EXPECT_TEXT(user.home, "/home/app");
  EXPECT(user_find(&user, "12345", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 12345 && user.gid == 0 && user.group_count == 0);
  EXPECT_TEXT(user.home, "/");
  EXPECT(user_find(&user, "42", PASSWD, GROUP) == NULL); /* a number is never a name */
  EXPECT(user.uid == 42);
  EXPECT(user_find(&user, "0", "", "") == NULL);
  EXPECT(user.uid == 0 && user.gid == 0);
  EXPECT(user_find(&user, "4294967294", "", "") == NULL);
  EXPECT(user_find(&user, "4294967295", "", "") != NULL); /* -1: "leave it as it is" to setuid */
  EXPECT(user_find(&user, "99999999999999999999999", "", "") != NULL);
}

static void user_and_group(void) {
  struct user user;
  EXPECT(user_find(&user, "app:video", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 1000 && user.gid == 44 && user.group_count == 0);
  EXPECT(user_find(&user, "app:777", PASSWD, GROUP) == NULL);
  EXPECT(user.gid == 777);
  EXPECT(user_find(&user, "5:6", "", "") == NULL);
  EXPECT(user.uid == 5 && user.gid == 6);
  EXPECT(user_find(&user, "app:", PASSWD, GROUP) == NULL);
  EXPECT(user.gid == 1001 && user.group_count == 2);
  EXPECT(user_find(&user, ":video", PASSWD, GROUP) == NULL);
  EXPECT(user.uid == 0 && user.gid == 44);
}

static void user_missing(void) {
  struct user user;
  static const char *const missing[] = {"nobody", "ap", "appl", "App", "-1", "1x", " app", "short", "noid", "words", "huge"};
  for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) EXPECT(user_find(&user, missing[i], PASSWD, GROUP) != NULL);
  EXPECT_TEXT(user_find(&user, "nobody", "", ""), "the image's user is not in its /etc/passwd");
  EXPECT_TEXT(user_find(&user, "app:nobody", PASSWD, GROUP), "the image's group is not in its /etc/group");
  EXPECT_TEXT(user_find(&user, "app:short", PASSWD, GROUP), "the image's group is not in its /etc/group");
  EXPECT_TEXT(user_find(&user, "app:badid", PASSWD, GROUP), "the image's group is not in its /etc/group");
}

static void user_long_lines(void) {
  struct user user;
  char *spec = malloc(1001), *passwd = malloc(9000), *group = malloc(20000);
  memset(spec, 'u', 1000), spec[1000] = '\0';
  EXPECT_TEXT(user_find(&user, spec, PASSWD, GROUP), "the image's user name is too long");
  sprintf(passwd, "%s:x:1:1::/one:/bin/sh\nlonghome:x:2:2::/%s:/bin/sh\ngecos:x:3:3:%s:/three:/bin/sh\n", spec, spec, spec);
  EXPECT(user_find(&user, "gecos", passwd, "") == NULL);
  EXPECT_TEXT(user.home, "/three");
  EXPECT(user_find(&user, "longhome", passwd, "") == NULL);
  EXPECT(user.uid == 2);
  EXPECT_TEXT(user.home, "/");
  char *at = group + sprintf(group, "many:x:5:%s", spec);
  for (int i = 0; i < 300; i++) at += sprintf(at, ",member%d", i);
  at += sprintf(at, ",gecos\n");
  for (int i = 0; i < USER_MAX_GROUPS + 10; i++) at += sprintf(at, "g%d:x:%d:gecos\n", i, 100 + i);
  EXPECT(user_find(&user, "gecos", passwd, group) == NULL);
  EXPECT(user.group_count == USER_MAX_GROUPS && user.groups[0] == 5 && user.groups[1] == 100);
  free(spec), free(passwd), free(group);
}

static void user_fuzz(void) {
  static const char letters[] = "ab:,\n0149x/\xff";
  struct user user;
  for (int round = 0; round < 50000; round++) {
    char *texts[3];
    for (int i = 0; i < 3; i++) {
      uint32_t length = random_below(i == 0 ? 8 : 120);
      texts[i] = malloc(length + 1);
      for (uint32_t at = 0; at < length; at++) texts[i][at] = letters[random_below(sizeof letters - 1)];
      texts[i][length] = '\0';
    }
    const char *fault = user_find(&user, texts[0], texts[1], texts[2]);
    EXPECT(fault != NULL || (user.home[0] == '/' && user.uid != (uid_t)-1 && user.gid != (gid_t)-1 && user.group_count <= USER_MAX_GROUPS));
    for (int i = 0; i < 3; i++) free(texts[i]);
  }
}

/* ---- listening ports ---- */

static const char TCP[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22187 1 0000000000000000 100 0 0 10 0                     \n"
    "   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 19234 1 0000000000000000 100 0 0 10 5                     \n"
    "   2: 0F02000A:C350 0202000A:01BB 01 00000000:00000000 02:000006F9 00000000     0        0 24111 2 0000000000000000 20 4 30 10 -1                    \n";
static const char TCP6[] =
    "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000000000000000000000000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 23999 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0000000000000000FFFF00000F02000A:0BB8 0000000000000000FFFF00000202000A:D431 01 00000000:00000000 00:00000000 00000000  1000        0 24000 1 0000000000000000 20 4 30 10 -1\n";

static void listening_ports(void) {
  struct listener found[4];
  EXPECT(listeners_read(TCP, 4, found, 4) == 2); /* the third is a connection */
  EXPECT(found[0].port == 8080 && found[0].address[0] == 127 && found[0].address[3] == 1);
  EXPECT(listener_is_loopback(&found[0]));
  EXPECT(!listeners_reach(found, 2, 8080)); /* only from the machine itself */
  EXPECT(listeners_reach(found, 2, 22));
  EXPECT(!listeners_reach(found, 2, 443)); /* the port of the other end */
  EXPECT(!listeners_reach(found, 2, 0));
  EXPECT(listeners_read(TCP, 4, found, 1) == 1);
  EXPECT(listeners_read(TCP, 6, found, 4) == 0); /* addresses of another length */
  EXPECT(listeners_read(TCP6, 6, found, 4) == 1);
  EXPECT(found[0].port == 3000 && listeners_reach(found, 1, 3000));
  EXPECT(listeners_read("", 4, found, 4) == 0);
  EXPECT(listeners_read("only a headline", 4, found, 4) == 0);
  EXPECT(listeners_read("only a headline\n", 4, found, 4) == 0);
}

static void listening_loopback(void) {
  static const struct { const char *table; bool loopback; } SIX[] = {
      {"h\n 0: 00000000000000000000000001000000:0050 0:0 0A \n", true},  /* ::1 */
      {"h\n 0: 0000000000000000FFFF00000100007F:0050 0:0 0A \n", true},  /* ::ffff:127.0.0.1 */
      {"h\n 0: 0000000000000000FFFF00000F02000A:0050 0:0 0A \n", false}, /* ::ffff:10.0.2.15 */
      {"h\n 0: 00000000000000000000000000000000:0050 0:0 0A \n", false},
  };
  for (size_t i = 0; i < sizeof SIX / sizeof *SIX; i++) {
    struct listener found;
    EXPECT(listeners_read(SIX[i].table, 6, &found, 1) == 1);
    EXPECT(listener_is_loopback(&found) == SIX[i].loopback);
  }
}

static void listening_wire(void) {
  struct listener found[2];
  uint8_t wire[2 * LISTENER_BYTES];
  EXPECT(listeners_write(found, listeners_read(TCP, 4, found, 2), wire) == 2 * LISTENER_BYTES);
  EXPECT(wire[0] == 4 && get_u16(wire + 1) == 8080 && wire[3] == 127 && wire[6] == 1 && wire[18] == 0);
  EXPECT(wire[LISTENER_BYTES] == 4 && get_u16(wire + LISTENER_BYTES + 1) == 22);
}

static void listening_ports_cut(void) {
  for (size_t length = 0; length < sizeof TCP; length++) {
    char *cut = strndup(TCP, length);
    struct listener found[4];
    EXPECT(listeners_read(cut, 4, found, 4) <= 2);
    free(cut);
  }
}

static void read_file(void) {
  char text[8], path[] = "/tmp/hibernaut-agent-test-XXXXXX";
  EXPECT_TEXT(system_read_file("/nonexistent", text, sizeof text), "");
  int fd = mkstemp(path);
  FILE *file = fdopen(fd, "w");
  fputs("0123456789", file);
  fclose(file);
  EXPECT_TEXT(system_read_file(path, text, sizeof text), "0123456");
  EXPECT_TEXT(system_read_file(path, text, 1), "");
  remove(path);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  RUN(frames_round_trip);
  RUN(frames_known_bytes);
  RUN(frames_damaged);
  RUN(frames_oversized);
  RUN(frames_never_fill_the_reader);
  RUN(frames_fuzz);
  RUN(config_every_key);
  RUN(config_many_records_in_one_frame);
  RUN(config_cut_and_too_long);
  RUN(config_bad_values);
  RUN(config_too_many);
  RUN(files_are_written);
  RUN(swap_files);
  RUN(user_names);
  RUN(user_numbers);
  RUN(user_and_group);
  RUN(user_missing);
  RUN(user_long_lines);
  RUN(user_fuzz);
  RUN(listening_ports);
  RUN(listening_loopback);
  RUN(listening_wire);
  RUN(listening_ports_cut);
  RUN(read_file);
  return end_tests();
}
