#define _GNU_SOURCE
#include "streams_bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame.h"
#include "group.h"
#include "outbox.h"
#include "streams.h"

#define MOST_RECORDS 4096

static char path[SOCKET_ROOM];
static int way[2];
static struct frame_reader reader;
static struct record *records[MOST_RECORDS];
static size_t record_count;
static uint32_t newest;

void group_make(void) {}
void group_join(void) {}
void group_freeze(int deadline_ms) { (void)deadline_ms; }
void group_thaw(void) {}

static void remove_socket(void) {
  unlink(path);
  *strrchr(path, '/') = '\0';
  rmdir(path);
}

void bench_open(void) {
  const char *temporary = getenv("TMPDIR");
  char folder[SOCKET_ROOM - 4];
  snprintf(folder, sizeof folder, "%s/hibernaut-streams-XXXXXX", temporary != NULL ? temporary : "/tmp");
  if (mkdtemp(folder) == NULL || pipe2(way, O_NONBLOCK | O_CLOEXEC) < 0) exit(2);
  snprintf(path, sizeof path, "%s/api", folder);
  atexit(remove_socket);
  streams_listen(path);
}

const char *bench_socket(void) { return path; }

uint32_t bench_newest(void) { return newest; }

struct record *bench_find(uint32_t id) {
  for (size_t i = 0; i < record_count; i++) if (records[i]->id == id) return records[i];
  return NULL;
}

struct record *bench_record(uint32_t id) {
  struct record *found = bench_find(id);
  if (found != NULL) return found;
  if (record_count == MOST_RECORDS) exit(3);
  struct record *record = calloc(1, sizeof *record);
  record->id = id;
  record->out = calloc(1, KEPT + 1);
  record->err = calloc(1, KEPT + 1);
  return records[record_count++] = record;
}

static void keep(char *text, size_t *size, const struct frame *frame) {
  size_t room = KEPT - *size, kept = frame->length < room ? frame->length : room;
  memcpy(text + *size, frame->payload, kept);
  *size += kept;
}

static void keep_text(struct record *record, const struct frame *frame, size_t from) {
  snprintf(record->text, sizeof record->text, "%.*s", (int)(frame->length - from), (const char *)frame->payload + from);
}

static void note(const struct frame *frame) {
  struct record *record = bench_record(frame->stream);
  switch (frame->type) {
    case F_ACCEPT: record->accepted = true, newest = frame->stream; break;
    case F_DATA: keep(record->out, &record->out_size, frame); break;
    case F_DATA_ERR: keep(record->err, &record->err_size, frame); break;
    case F_END: record->end = true; break;
    case F_CREDIT: record->credit_given += get_u32(frame->payload); break;
    case F_EXEC_STARTED: record->pid = get_u32(frame->payload); break;
    case F_KEPT:
      record->kept = true;
      record->announced++;
      record->pid = get_u32(frame->payload + KEPT_PID), record->waiting = get_u32(frame->payload + KEPT_WAITING);
      record->flags = frame->payload[KEPT_FLAGS];
      snprintf(record->label, sizeof record->label, "%.*s", (int)(frame->length - KEPT_LABEL), (const char *)frame->payload + KEPT_LABEL);
      break;
    case F_RESET: record->reset = true, keep_text(record, frame, 0); break;
    case F_EXEC_EXIT:
      record->exited = true;
      record->code = get_u32(frame->payload), record->signal = get_u32(frame->payload + 4);
      record->how = frame->payload[8];
      keep_text(record, frame, 9);
      break;
    default: break;
  }
}

static void read_all(void) {
  for (size_t room;;) {
    outbox_write(way[1]);
    uint8_t *into = frame_room(&reader, &room);
    ssize_t got = read(way[0], into, room);
    if (got <= 0) return;
    frame_fed(&reader, (size_t)got);
    for (struct frame frame; frame_next(&reader, &frame);) note(&frame);
  }
}

void bench_turn_unread(int wait_ms) {
  static struct pollfd fds[STREAMS_FDS];
  size_t count = streams_poll(fds);
  int due = streams_wait_ms(), status;
  poll(fds, count, due >= 0 && due < wait_ms ? due : wait_ms);
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) streams_reaped(pid, status);
  streams_work(fds, count);
}

void bench_turn(int wait_ms) {
  bench_turn_unread(wait_ms);
  read_all();
}

int bench_ready(void) {
  static struct pollfd fds[STREAMS_FDS];
  return poll(fds, streams_poll(fds), 0);
}

uint32_t bench_accepted(uint32_t after) {
  for (int turns = 0; newest <= after && turns < 100; turns++) bench_turn(20);
  return newest > after ? newest : 0;
}

static void forget(size_t at) {
  free(records[at]->out), free(records[at]->err);
  free(records[at]);
  records[at] = records[--record_count];
}

uint64_t bench_forget_ended(void) {
  uint64_t connections = 0;
  for (size_t i = record_count; i-- > 0;) {
    bool connection = records[i]->accepted;
    if (connection && records[i]->id + 400 > newest && !records[i]->reset) continue;
    connections += connection;
    forget(i);
  }
  return connections;
}

void bench_take_over(void) {
  read_all();
  while (record_count > 0) forget(record_count - 1);
  streams_reset(1);
}

void bench_reset(void) {
  streams_reset(1);
  read_all();
  for (size_t i = 0; i < record_count; i++) if (records[i]->kept) bench_say(F_RESET, records[i]->id, NULL, 0);
  while (waitpid(-1, NULL, 0) > 0) {}
  read_all();
  while (record_count > 0) forget(record_count - 1);
  newest = 0;
}

void bench_say(uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  struct frame frame = {.type = type, .stream = stream, .length = length, .payload = length > 0 ? payload : ""};
  streams_handle(&frame);
}

void bench_say_u32(uint8_t type, uint32_t stream, uint32_t value) {
  uint8_t bytes[4];
  put_u32(bytes, value);
  bench_say(type, stream, bytes, sizeof bytes);
}

int bench_connect(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, path, sizeof path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

int bench_files(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder != NULL && readdir(folder) != NULL) count++;
  if (folder != NULL) closedir(folder);
  return count;
}
