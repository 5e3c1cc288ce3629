/* The agent's streams without a machine, for the platform's tests (streams.test.ts). Reads frames from stdin, writes
 * frames to stdout, listens for the local API at the path that is given, and answers as the agent does, as far as
 * streams are concerned. Ends when its input ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "frame.h"
#include "group.h"
#include "outbox.h"
#include "streams.h"
#include "system.h"

#define REAP_MS 20 /* nothing wakes the loop here when a child process ends */

void group_make(void) {}
void group_join(void) {}
void group_freeze(int deadline_ms) { (void)deadline_ms; }
void group_thaw(void) {}

static struct frame_reader reader;
static struct config app;
static bool quiet;
static uint64_t session;

static void meet(uint64_t next) {
  if (session != 0 && session != next) streams_reset(next);
  session = next;
}

static void handle(const struct frame *frame) {
  uint8_t hello[28] = {2}, awoken[9] = {0};
  if (streams_handle(frame)) return;
  switch (frame->type) {
    case F_HELLO_REQUEST:
      if (frame->length >= 8) meet(get_u64(frame->payload));
      outbox_send(F_HELLO, 0, hello, sizeof hello);
      quiet = false;
      break;
    case F_QUIESCE:
      outbox_send(F_QUIESCED, 0, NULL, 0);
      quiet = true;
      break;
    case F_AWAKE:
      meet(get_u64(frame->payload + AWAKE_SESSION));
      put_u64(awoken, system_wall_ns());
      outbox_send(F_AWOKEN, 0, awoken, sizeof awoken);
      quiet = false;
      break;
    default: break;
  }
}

static bool read_input(void) {
  size_t room;
  uint8_t *into = frame_room(&reader, &room);
  ssize_t got = read(0, into, room);
  if (got < 0) return errno == EAGAIN;
  frame_fed(&reader, (size_t)got);
  for (struct frame frame; frame_next(&reader, &frame);) handle(&frame);
  return got > 0;
}

int main(int count, char **words) {
  static struct pollfd fds[2 + STREAMS_FDS];
  signal(SIGPIPE, SIG_IGN);
  fcntl(0, F_SETFL, O_NONBLOCK);
  fcntl(1, F_SETFL, O_NONBLOCK);
  streams_init(&app);
  if (count > 1) streams_listen(words[1]);
  for (bool open = true; open;) {
    int status;
    fds[0] = (struct pollfd){.fd = 0, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = outbox_empty() ? -1 : 1, .events = POLLOUT};
    size_t used = quiet ? 0 : streams_poll(fds + 2);
    poll(fds, 2 + used, REAP_MS);
    open = read_input();
    if (!quiet) {
      for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) streams_reaped(pid, status);
      streams_work(fds + 2, used);
    }
    outbox_write(1);
  }
  streams_reset(0);
  return 0;
}
