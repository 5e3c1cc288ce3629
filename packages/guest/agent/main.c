/* PID 1 of a machine. It waits for its configuration on one virtio-serial port, starts
 * the app, and then serves the port until the machine is powered off. One thread, one
 * poll loop; nothing in it waits for the platform, so a platform that is away never
 * holds up the app: output that nobody reads is dropped, oldest frames kept. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"
#include "config.h"
#include "frame.h"
#include "system.h"

#define PROTOCOL 1u
#ifndef AGENT_VERSION
#define AGENT_VERSION "dev"
#endif
#define PORT_NAME "hibernaut.agent"
#define PORT_DEADLINE_MS 10000  /* the driver finds the port in milliseconds; minutes would only hide a fault */
#define QUEUE_SIZE (4u * FRAME_MAX)
#define QUEUE_RESERVE FRAME_MAX /* room that only control frames may use ... */
#define QUEUE_LAST 4096u        /* ... and of that, room that answers anyone can ask for may not use */
#define LOG_CHUNK 16384u
#define READY_FAST_MS 10        /* how often listening ports are looked for, at first ... */
#define READY_SLOW_MS 100       /* ... and after READY_FAST_FOR_MS */
#define READY_FAST_FOR_MS 10000
#define QUIET_MS 10000          /* a platform that vanished after F_QUIESCE must not block the app's output for ever */
#define DISCONNECTED_MS 20      /* a port without a peer is always "hung up": look again after this */

enum phase { WAITING, RUNNING, ENDED };

static struct {
  int port, signals;
  enum phase phase;
  bool peer, quiet, ready, stopping;
  uint64_t kill_at, quiet_until, started_at, dropped;
  const char *refused; /* the first fault in the configuration: it is never run in part */
  struct frame_reader reader;
  struct config config;
  struct app app;
  uint8_t queue[QUEUE_SIZE];
  size_t queued;
} agent;

static size_t queue_limit(uint8_t type) {
  if (type == F_LOG) return QUEUE_SIZE - QUEUE_RESERVE;
  return type == F_PONG || type == F_ERROR ? QUEUE_SIZE - QUEUE_LAST : QUEUE_SIZE;
}

static void send_frame(uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  if (agent.queued + FRAME_HEADER + length > queue_limit(type)) agent.dropped++;
  else agent.queued += frame_write(agent.queue + agent.queued, type, stream, payload, length);
}

static void send_text(uint8_t type, const char *text) { send_frame(type, 0, text, (uint32_t)strlen(text)); }

/* u32 protocol, u8 phase, u8 ready, u8 zero, u8 zero, u32 pid, F_EXIT's payload, three u8 zero,
 * u32 frames dropped, version. */
static void send_hello(void) {
  uint8_t payload[29 + 64] = {0};
  put_u32(payload, PROTOCOL);
  payload[4] = (uint8_t)agent.phase;
  payload[5] = agent.ready;
  put_u32(payload + 8, (uint32_t)agent.app.pid);
  put_u32(payload + 12, agent.app.code);
  put_u32(payload + 16, agent.app.signal);
  payload[20] = agent.app.oom;
  put_u32(payload + 24, (uint32_t)agent.dropped);
  size_t length = strnlen(AGENT_VERSION, 64);
  memcpy(payload + 28, AGENT_VERSION, length);
  send_frame(F_HELLO, 0, payload, (uint32_t)(28 + length));
}

static void send_exit(void) {
  uint8_t payload[9];
  put_u32(payload, agent.app.code);
  put_u32(payload + 4, agent.app.signal);
  payload[8] = agent.app.oom;
  send_frame(F_EXIT, 0, payload, sizeof payload);
}

static void send_start_failed(const char *why, int error) {
  uint8_t payload[4 + 256];
  put_u32(payload, (uint32_t)error);
  int length = snprintf((char *)payload + 4, 256, "%s%s%s", why, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  send_frame(F_START_FAILED, 0, payload, 4 + (uint32_t)(length < 255 ? length : 255));
}

static void run(void) {
  if (agent.phase != WAITING) {
    send_text(F_ERROR, "the app was already started");
    return;
  }
  int error = agent.refused == NULL ? -system_configure(&agent.config) : 0;
  const char *fault = error != 0 ? "the network could not be set up" : agent.refused;
  if (fault == NULL) fault = app_start(&agent.app, &agent.config, &error);
  if (fault != NULL) {
    agent.phase = ENDED;
    agent.app.code = 127;
    send_start_failed(fault, error);
    return;
  }
  agent.phase = RUNNING;
  agent.started_at = system_monotonic_ms();
  uint8_t pid[4];
  put_u32(pid, (uint32_t)agent.app.pid);
  send_frame(F_STARTED, 0, pid, sizeof pid);
}

static void stop(const struct frame *frame) {
  if (frame->length != 8) {
    send_text(F_ERROR, "a stop needs a signal and a time");
    return;
  }
  agent.stopping = true;
  agent.quiet = false; /* or the app's end would never be noticed */
  agent.kill_at = system_monotonic_ms() + get_u32(frame->payload + 4);
  app_signal(&agent.app, (int)get_u32(frame->payload));
}

static void quiesce(void) {
  system_sync(); /* so that the disks alone are whole, should the memory ever be lost */
  send_frame(F_QUIESCED, 0, NULL, 0);
  agent.quiet = true;
  agent.quiet_until = system_monotonic_ms() + QUIET_MS; /* this clock stands while the machine does */
}

static void awake(const struct frame *frame) {
  if (frame->length < 8) {
    send_text(F_ERROR, "an awakening needs the clock");
    return;
  }
  int error = system_set_clock(get_u64(frame->payload));
  if (error == 0 && frame->length > 8) error = system_add_entropy(frame->payload + 8, frame->length - 8);
  if (error < 0) system_note("awake", error);
  agent.quiet = false;
  send_frame(F_AWOKEN, 0, NULL, 0);
}

static void configure(const struct frame *frame) {
  const char *fault = agent.phase == WAITING ? config_set(&agent.config, frame->payload, frame->length) : "the app was already started";
  if (fault == NULL) return;
  if (agent.refused == NULL) agent.refused = fault;
  send_text(F_ERROR, fault);
}

static void handle(const struct frame *frame) {
  switch (frame->type) {
    case F_PAD: return;
    case F_HELLO_REQ: agent.quiet = false, send_hello(); return;
    case F_SET: configure(frame); return;
    case F_RUN: run(); return;
    case F_STOP: stop(frame); return;
    case F_QUIESCE: quiesce(); return;
    case F_AWAKE: awake(frame); return;
    case F_PING: send_frame(F_PONG, frame->stream, frame->payload, frame->length); return;
    default: send_text(F_ERROR, "unknown frame type"); return;
  }
}

static void read_port(void) {
  size_t room;
  uint8_t *into = frame_room(&agent.reader, &room);
  ssize_t got = read(agent.port, into, room);
  if (got <= 0) {
    agent.peer = got < 0 && errno == EAGAIN ? agent.peer : false;
    return;
  }
  frame_fed(&agent.reader, (size_t)got);
  for (struct frame frame; frame_next(&agent.reader, &frame);) handle(&frame);
}

static void write_port(void) {
  ssize_t put = write(agent.port, agent.queue, agent.queued);
  if (put <= 0) return;
  agent.queued -= (size_t)put;
  memmove(agent.queue, agent.queue + put, agent.queued);
}

/* Reads what the app wrote; keeps reading when the queue is full, so the app never blocks. */
static void read_output(int *fd, uint32_t stream) {
  static uint8_t chunk[LOG_CHUNK];
  ssize_t got = read(*fd, chunk, sizeof chunk);
  if (got > 0) {
    send_frame(F_LOG, stream, chunk, (uint32_t)got);
  } else if (got == 0 || errno != EAGAIN) {
    close(*fd);
    *fd = -1;
  }
}

/* What the app wrote before it ended. No more than that: what it left running may go on writing for ever. */
static void read_last_words(int *fd, uint32_t stream) {
  int left = 0;
  if (*fd < 0 || ioctl(*fd, FIONREAD, &left) < 0) return;
  for (; left > 0 && *fd >= 0; left -= (int)LOG_CHUNK) read_output(fd, stream);
}

static void reap(void) {
  struct signalfd_siginfo info;
  int status;
  while (read(agent.signals, &info, sizeof info) == sizeof info) {}
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (!app_reaped(&agent.app, pid, status)) continue;
    read_last_words(&agent.app.out, 1);
    read_last_words(&agent.app.err, 2);
    agent.phase = ENDED;
    send_exit();
  }
}

static void look_for_ports(void) {
  static char table[131072];
  if (agent.phase != RUNNING || agent.ready) return;
  for (size_t i = 0; i < agent.config.port_count; i++) {
    uint16_t port = agent.config.ports[i];
    if (!system_listening(system_read_file("/proc/net/tcp", table, sizeof table), port) &&
        !system_listening(system_read_file("/proc/net/tcp6", table, sizeof table), port)) return;
  }
  agent.ready = true;
  send_frame(F_READY, 0, NULL, 0);
}

static int wait_ms(void) {
  int wait = -1;
  uint64_t now = system_monotonic_ms();
  if (agent.quiet) wait = agent.quiet_until > now ? (int)(agent.quiet_until - now) : 0;
  else if (agent.phase == RUNNING && !agent.ready) wait = now - agent.started_at < READY_FAST_FOR_MS ? READY_FAST_MS : READY_SLOW_MS;
  if (agent.stopping) wait = READY_FAST_MS;
  if (!agent.peer && (wait < 0 || wait > DISCONNECTED_MS)) wait = DISCONNECTED_MS;
  return wait;
}

static void end_when_due(void) {
  if (!agent.stopping) return;
  if (agent.app.pid != 0) {
    if (system_monotonic_ms() >= agent.kill_at) app_signal(&agent.app, SIGKILL);
    return;
  }
  for (int tries = 0; agent.queued > 0 && agent.peer && tries < 100; tries++) {
    write_port();
    usleep(1000);
  }
  system_power_off();
}

static void serve(void) {
  struct pollfd fds[4] = {
      {.fd = agent.signals, .events = POLLIN},
      {.fd = agent.peer ? agent.port : -1, .events = POLLIN},
      {.fd = agent.app.out, .events = POLLIN},
      {.fd = agent.app.err, .events = POLLIN},
  };
  /* Quiesced: all that was queued still goes out, F_QUIESCED last, and nothing new is read in. */
  if (agent.queued > 0) fds[1].events |= POLLOUT;
  if (agent.quiet && system_monotonic_ms() >= agent.quiet_until) agent.quiet = false;
  if (agent.quiet) fds[0].fd = fds[2].fd = fds[3].fd = -1;
  poll(fds, 4, wait_ms());
  if (!agent.peer) agent.peer = true; /* found out by trying */
  else if (fds[1].revents & POLLHUP) agent.peer = false;
  if (fds[0].revents & POLLIN) reap();
  if (fds[2].revents != 0 && agent.app.out >= 0) read_output(&agent.app.out, 1);
  if (fds[3].revents != 0 && agent.app.err >= 0) read_output(&agent.app.err, 2);
  if (agent.peer) read_port(); /* after the output: nothing may follow an F_QUIESCED */
  if (!agent.quiet) look_for_ports();
  if (agent.peer && agent.queued > 0) write_port();
  end_when_due();
}

int main(void) {
  sigset_t children;
  agent.app.out = agent.app.err = -1;
  system_mount_early();
  system_open_standard_files();
  system_load_modules("/modules.list");
  system_set_oom_score("-1000");
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  agent.signals = signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC);
  agent.port = system_open_port(PORT_NAME, PORT_DEADLINE_MS);
  if (agent.port < 0) {
    system_note("the port to the platform", agent.port);
    system_power_off();
  }
  int error = system_enter_image("/dev/vda", "/dev/vdb");
  if (error < 0) {
    agent.phase = ENDED;
    agent.app.code = 127;
    send_start_failed("the image could not be mounted", -error);
  }
  send_hello();
  for (;;) serve();
}
