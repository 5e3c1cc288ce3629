/* PID 1 of a machine. The agent waits for its configuration on a virtio-serial port, starts the app, and serves the
 * port until the machine is powered off. It has one thread with one poll loop, in which nothing waits for the
 * platform. So the app never blocks while the platform is away: output that no platform reads is dropped, the newest
 * first. */
#define _GNU_SOURCE
#include <arpa/inet.h>
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
#include "connections.h"
#include "files.h"
#include "frame.h"
#include "group.h"
#include "hooks.h"
#include "identity.h"
#include "listening.h"
#include "outbox.h"
#include "streams.h"
#include "swap.h"
#include "system.h"
#include "volumes.h"

#ifndef AGENT_VERSION
#define AGENT_VERSION "dev"
#endif
#define VERSION_MAX 64u         /* bytes of the version in F_HELLO */
#define PORT_NAME "hibernaut.agent"
#define PORT_DEADLINE_MS 10000  /* the driver finds the port within milliseconds; minutes would only hide a fault */
#define LOG_CHUNK 16384u
#define READY_FAST_MS 10        /* between two looks for listening ports, at first */
#define READY_SLOW_MS 100       /* the same, after READY_FAST_FOR_MS */
#define READY_FAST_FOR_MS 10000
#define QUIET_MS 10000          /* a platform that vanishes after F_QUIESCE must not freeze the app forever */
#define CLOCK_BEHIND_NS 20000000u   /* the platform tolerates a clock that is off by this much */
#define MESSAGE_LATE_NS 1000000000u /* on a busy host, a message is late by a tenth of this */
#define FREEZE_MS 1000          /* until the app is frozen; it takes longer only if it waits for a disk */
#define LOCAL_API "/.hibernaut/api"
#define LOCAL_API_TWIN "/.fly/api" /* where apps made for Fly Machines look */
#define DISCONNECTED_MS 20      /* poll() always reports a port without a peer as hung up: look again after this */

enum phase { WAITING, RUNNING, ENDED };

static struct {
  int port, signals;
  enum phase phase;
  bool peer, quiet, ready, stopping;
  bool gap;         /* output was dropped since the last F_PRINTED */
  uint64_t printed; /* bytes that the app has written, including those that were dropped */
  uint64_t kill_at, quiet_until, started_at, session;
  uint64_t carrier; /* see AWAKE_CARRIER */
  struct listener listeners[LISTENERS_MAX]; /* as last reported */
  size_t listener_count;
  bool listeners_told;
  const char *refused; /* the first fault in the configuration, which is never used in part */
  struct frame_reader reader;
  struct config config;
  struct config next; /* of the machine that this one has to become */
  const char *next_refused;
  struct app app;
} agent;

static void send_text(uint8_t type, const char *text) { outbox_send(type, 0, text, (uint32_t)strlen(text)); }

static void put_exit(uint8_t *payload) {
  put_u32(payload + EXIT_CODE, agent.app.code);
  put_u32(payload + EXIT_SIGNAL, agent.app.signal);
  payload[EXIT_OOM] = agent.app.oom;
}

static void send_hello(void) {
  uint8_t payload[HELLO_VERSION + VERSION_MAX] = {0};
  put_u32(payload + HELLO_PROTOCOL, PROTOCOL);
  payload[HELLO_PHASE] = (uint8_t)agent.phase;
  payload[HELLO_READY] = agent.ready;
  put_u32(payload + HELLO_PID, (uint32_t)agent.app.pid);
  put_exit(payload + HELLO_EXIT);
  put_u32(payload + HELLO_DROPPED, (uint32_t)outbox_dropped());
  size_t length = strnlen(AGENT_VERSION, VERSION_MAX);
  memcpy(payload + HELLO_VERSION, AGENT_VERSION, length);
  outbox_send(F_HELLO, 0, payload, (uint32_t)(HELLO_VERSION + length));
}

/* Reports how much the app has printed, so that the platform knows what it missed: output that was dropped here, or
 * that an earlier platform took with it. */
static void send_printed(void) {
  uint8_t payload[8];
  put_u64(payload, agent.printed);
  if (outbox_send(F_PRINTED, 0, payload, sizeof payload)) agent.gap = false;
}

static void send_exit(void) {
  uint8_t payload[EXIT_BYTES];
  put_exit(payload);
  outbox_send(F_EXIT, 0, payload, sizeof payload);
}

static void send_start_failed(const char *why, int error) {
  uint8_t payload[4 + 256];
  put_u32(payload, (uint32_t)error);
  int length = snprintf((char *)payload + 4, 256, "%s%s%s", why, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  outbox_send(F_START_FAILED, 0, payload, 4 + (uint32_t)(length < 255 ? length : 255));
}

static void run(void) {
  if (agent.phase != WAITING) {
    send_text(F_ERROR, "the app was already started");
    return;
  }
  int error = agent.refused == NULL ? -system_configure(&agent.config) : 0;
  const char *fault = error != 0 ? "the network could not be set up" : agent.refused;
  if (fault == NULL) fault = swap_start(agent.config.swap_mb, &error);
  if (fault == NULL) fault = volumes_mount(&agent.config, &error);
  if (fault == NULL) fault = files_write(&agent.config, &error);
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
  outbox_send(F_STARTED, 0, pid, sizeof pid);
}

/* Ends the quiet: the app continues, and its output is read again. Not in a fork that does not know yet who it is. */
static void speak(void) {
  if (agent.quiet && identity_foreign()) {
    agent.quiet_until = system_monotonic_ms() + QUIET_MS;
    return;
  }
  if (agent.quiet) {
    volumes_thaw();
    group_thaw();
  }
  agent.quiet = false;
}

static void stop(const struct frame *frame) {
  if (frame->length != 8) {
    send_text(F_ERROR, "F_STOP needs a signal and a time");
    return;
  }
  speak(); /* otherwise the end of the app would go unnoticed */
  if (agent.quiet) system_power_off(); /* nothing of the app may run, so it cannot be asked to end */
  agent.stopping = true;
  agent.kill_at = system_monotonic_ms() + get_u32(frame->payload + 4);
  app_signal(&agent.app, (int)get_u32(frame->payload));
}

static void quiesce(void) {
  group_freeze(FREEZE_MS);
  system_sync(); /* so that the disks alone are consistent, should the memory ever be lost */
  volumes_freeze();
  uint8_t payload[8];
  put_u64(payload, system_wall_ns());
  outbox_send(F_QUIESCED, 0, payload, sizeof payload);
  agent.quiet = true;
  agent.quiet_until = system_monotonic_ms() + QUIET_MS; /* this clock stops while the machine sleeps */
}

/* Another platform than before does not know the streams. It hears of those that continue before it hears anything else. */
static void meet(uint64_t session) {
  if (session != agent.session) streams_reset(session);
  agent.session = session;
}

/* Returns what the clock should say. The message may be late, whereas the machine's own clock, moved forward by how
 * long the machine slept, is right at any moment. If that is far from the message, the clock or `stood` was wrong. */
static uint64_t wall_after(uint64_t sent, uint64_t stood) {
  uint64_t own = system_wall_ns() + stood;
  return own + CLOCK_BEHIND_NS >= sent && own <= sent + MESSAGE_LATE_NS ? own : sent;
}

static void become(void) {
  uint8_t payload[5 + 256];
  int error = EINVAL;
  const char *fault = agent.next_refused;
  /* A machine that goes back to an earlier memory of its own is not foreign, and becomes itself, too: its connections are
   * of a time that is over for others. Without a configuration, this is a repetition. */
  if (!identity_foreign() && agent.next.hostname == NULL && agent.next_refused == NULL) fault = NULL;
  else if (fault == NULL) fault = identity_become(&agent.config, &agent.next, &error);
  config_free(&agent.next);
  agent.next_refused = NULL;
  if (fault != NULL) system_note(fault, error);
  put_u32(payload, fault != NULL ? (uint32_t)error : 0);
  payload[4] = hooks_exist(HOOKS_AFTER_FORK);
  int length = fault == NULL ? 0 : snprintf((char *)payload + 5, 256, "%s: %s", fault, strerror(error));
  outbox_send(F_BECAME, 0, payload, 5 + (uint32_t)(length < 255 ? length : 255));
}

/* What another platform carried, or a host that lost its power, ended while nothing could reach the machine. A program that
 * only waits to be sent something would wait forever, and one that serves would answer into nowhere. */
static void end_carried(const struct frame *frame) {
  if (frame->length <= AWAKE_INWARD) return;
  uint64_t carrier = get_u64(frame->payload + AWAKE_CARRIER);
  if (carrier == agent.carrier) return;
  struct carried old = {
      .base = get_u32(frame->payload + AWAKE_APPS),
      .mask = get_u32(frame->payload + AWAKE_APPS + 4),
      .ports = agent.config.ports,
      .port_count = agent.config.port_count,
  };
  struct in_addr gateway;
  if (frame->payload[AWAKE_INWARD] != 0 && agent.config.gateway != NULL && inet_pton(AF_INET, agent.config.gateway, &gateway) == 1)
    old.gateway = ntohl(gateway.s_addr);
  int error = connections_end(&old);
  if (error != 0) system_note("connections to apps that have ended", error);
  agent.carrier = carrier;
}

static void awake(const struct frame *frame) {
  uint8_t payload[9];
  if (identity_foreign()) {
    send_text(F_ERROR, "the machine has the memory of another one, and does not know yet who it is");
    return;
  }
  if (frame->length < AWAKE_ENTROPY) {
    send_text(F_ERROR, "F_AWAKE needs a clock and a session");
    return;
  }
  uint64_t wall = get_u64(frame->payload + AWAKE_CLOCK);
  if (frame->length >= AWAKE_STOOD + 8) wall = wall_after(wall, get_u64(frame->payload + AWAKE_STOOD));
  int error = system_set_clock(wall);
  end_carried(frame);
  meet(get_u64(frame->payload + AWAKE_SESSION));
  send_printed();
  put_u64(payload, system_wall_ns());
  payload[8] = hooks_exist(HOOKS_AFTER_RESUME);
  outbox_send(F_AWOKEN, 0, payload, sizeof payload);
  agent.listeners_told = false;
  /* Send this now: once the app continues, it competes for the CPU. Meanwhile the platform already connects to it. */
  if (agent.peer) outbox_write(agent.port);
  if (error == 0 && frame->length > AWAKE_ENTROPY)
    error = system_add_entropy(frame->payload + AWAKE_ENTROPY, frame->length - AWAKE_ENTROPY);
  if (error < 0) system_note("awake", error);
  speak();
}

static void hello(const struct frame *frame) {
  if (frame->length >= 8) meet(get_u64(frame->payload));
  /* A quiet machine may have slept: F_AWAKE follows, and ends what is over. */
  if (frame->length >= 16 && !agent.quiet) agent.carrier = get_u64(frame->payload + 8);
  speak();
  send_printed();
  send_hello();
  agent.listeners_told = false;
}

static void configure_next(const struct frame *frame) {
  const char *fault = config_set(&agent.next, frame->payload, frame->length);
  if (agent.next_refused == NULL) agent.next_refused = fault;
}

static void configure(const struct frame *frame) {
  if (agent.quiet) {
    configure_next(frame);
    return;
  }
  const char *fault = agent.phase == WAITING ? config_set(&agent.config, frame->payload, frame->length) : "the app was already started";
  if (fault == NULL) return;
  if (agent.refused == NULL) agent.refused = fault;
  send_text(F_ERROR, fault);
}

static void handle(const struct frame *frame) {
  /* A new program joins the app's group. While that is frozen, the program would never begin, and the agent would wait
   * for it forever. The platform does not request a start in a quiet machine, unless it has made a mistake. */
  if (frame->type == F_EXEC || frame->type == F_RUN) {
    speak();
    if (agent.quiet) {
      send_text(F_ERROR, "the machine does not know yet who it is");
      return;
    }
  }
  if (streams_handle(frame)) return;
  switch (frame->type) {
    case F_PAD: return;
    case F_HELLO_REQUEST: hello(frame); return;
    case F_SET: configure(frame); return;
    case F_RUN: run(); return;
    case F_STOP: stop(frame); return;
    case F_QUIESCE: quiesce(); return;
    case F_AWAKE: awake(frame); return;
    case F_BECOME: become(); return;
    case F_PING: outbox_send(F_PONG, frame->stream, frame->payload, frame->length); return;
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

/* Reads the output of the app, even when the queue is full, so that the app never blocks. */
static void read_output(int *fd, uint32_t stream) {
  static uint8_t chunk[LOG_CHUNK];
  ssize_t got = read(*fd, chunk, sizeof chunk);
  if (got > 0) {
    /* A gap ends with its report, so that what follows is not taken for the rest of the line before the gap. */
    if (agent.gap && outbox_room(F_LOG) >= LOG_CHUNK + FRAME_HEADER + 8) send_printed();
    if (agent.gap || !outbox_send(F_LOG, stream, chunk, (uint32_t)got)) agent.gap = true;
    agent.printed += (uint64_t)got;
  } else if (got == 0 || errno != EAGAIN) {
    close(*fd);
    *fd = -1;
  }
}

/* Reads what the app wrote before it ended, and no more: processes that it left running may continue to write forever. */
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
    if (streams_reaped(pid, status) || !app_reaped(&agent.app, pid, status)) continue;
    read_last_words(&agent.app.out, 1);
    read_last_words(&agent.app.err, 2);
    if (agent.gap) send_printed();
    agent.phase = ENDED;
    send_exit();
  }
}

/* Reports where programs listen, so that the platform can say why it cannot reach the app. */
static void tell_listeners(const struct listener *listeners, size_t count) {
  static uint8_t payload[LISTENERS_MAX * LISTENER_BYTES];
  size_t bytes = count * sizeof *listeners;
  if (agent.listeners_told && count == agent.listener_count && memcmp(listeners, agent.listeners, bytes) == 0) return;
  if (!outbox_send(F_LISTENING, 0, payload, listeners_write(listeners, count, payload))) return; /* try again later */
  memcpy(agent.listeners, listeners, bytes);
  agent.listener_count = count;
  agent.listeners_told = true;
}

static void look_for_ports(void) {
  static struct listener listeners[LISTENERS_MAX];
  if (agent.phase != RUNNING || agent.ready) return;
  size_t count = agent.config.port_count == 0 ? 0 : listeners_now(listeners, LISTENERS_MAX);
  tell_listeners(listeners, count);
  for (size_t i = 0; i < agent.config.port_count; i++)
    if (!listeners_reach(listeners, count, agent.config.ports[i])) return;
  agent.ready = true;
  outbox_send(F_READY, 0, NULL, 0);
}

static int wait_ms(void) {
  int wait = -1;
  uint64_t now = system_monotonic_ms();
  if (agent.quiet) wait = agent.quiet_until > now ? (int)(agent.quiet_until - now) : 0;
  else if (agent.phase == RUNNING && !agent.ready) wait = now - agent.started_at < READY_FAST_FOR_MS ? READY_FAST_MS : READY_SLOW_MS;
  int due = agent.quiet ? -1 : streams_wait_ms();
  if (due >= 0 && (wait < 0 || due < wait)) wait = due;
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
  for (int tries = 0; !outbox_empty() && agent.peer && tries < 100; tries++) {
    outbox_write(agent.port);
    usleep(1000);
  }
  volumes_close();
  system_power_off();
}

static void serve(void) {
  static struct pollfd fds[4 + STREAMS_FDS];
  if (agent.quiet && system_monotonic_ms() >= agent.quiet_until) speak();
  fds[0] = (struct pollfd){.fd = agent.quiet ? -1 : agent.signals, .events = POLLIN};
  fds[1] = (struct pollfd){.fd = agent.peer ? agent.port : -1, .events = POLLIN};
  fds[2] = (struct pollfd){.fd = agent.quiet ? -1 : agent.app.out, .events = POLLIN};
  fds[3] = (struct pollfd){.fd = agent.quiet ? -1 : agent.app.err, .events = POLLIN};
  /* While quiet, the queue is still written, F_QUIESCED last, and nothing new is read. */
  if (!outbox_empty()) fds[1].events |= POLLOUT;
  size_t count = agent.quiet ? 0 : streams_poll(fds + 4);
  poll(fds, 4 + count, wait_ms());
  if (!agent.peer) agent.peer = true; /* reading will show whether there is one */
  else if (fds[1].revents & POLLHUP) agent.peer = false;
  if (agent.peer) read_port();
  if (!agent.quiet) { /* read_port() may have changed it, and nothing may follow F_QUIESCED */
    if (fds[0].revents & POLLIN) reap();
    if (fds[2].revents != 0 && agent.app.out >= 0) read_output(&agent.app.out, 1);
    if (fds[3].revents != 0 && agent.app.err >= 0) read_output(&agent.app.err, 2);
    streams_work(fds + 4, count);
    look_for_ports();
    if (agent.gap && outbox_room(F_LOG) >= LOG_CHUNK) send_printed();
  }
  if (agent.peer) outbox_write(agent.port);
  end_when_due();
}

int main(void) {
  sigset_t children;
  agent.app.out = agent.app.err = -1;
  signal(SIGPIPE, SIG_IGN);
  system_mount_early();
  group_make();
  system_open_standard_files();
  system_load_modules("/modules.list");
  connections_prepare();
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
  identity_learn();
  streams_init(&agent.config);
  system_make_local_api(LOCAL_API, LOCAL_API_TWIN);
  streams_listen(LOCAL_API);
  send_hello();
  for (;;) serve();
}
