/*
 * What a TCP proxy would reach that is nothing but C: accepts on a free port of the loopback, connects to the app's port,
 * and copies both ways with epoll, in one thread. A reference for `npm run bench:tcp`, without any of the rules that a
 * proxy has.
 *
 *   splice <the app's port>    prints its own port
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 65536, EVENTS = 64, BACKLOG = 4096 };

/* One end of a connection, with what it could not take yet. */
struct end {
  int fd;
  struct end *peer;
  char *held;
  size_t size, taken;
  unsigned events;
  bool ended;
};

static int poller;
static char piece[PIECE];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void await(struct end *end, unsigned events) {
  if (end->events == events) return;
  end->events = events;
  struct epoll_event event = {.events = events, .data.ptr = end};
  epoll_ctl(poller, EPOLL_CTL_MOD, end->fd, &event);
}

/* Keeps what a slow end did not take, and reads no more for it. */
static void hold(struct end *from, const char *bytes, size_t size) {
  struct end *to = from->peer;
  free(to->held);
  to->held = malloc(size);
  if (to->held == NULL) fail("malloc");
  memcpy(to->held, bytes, size);
  to->size = size;
  to->taken = 0;
  await(to, to->events | EPOLLOUT);
  await(from, from->events & ~(unsigned)EPOLLIN);
}

/* Moves what has come at one end to the other. Returns whether the connection goes on. */
static bool move(struct end *from) {
  struct end *to = from->peer;
  for (;;) {
    const ssize_t came = read(from->fd, piece, sizeof piece);
    if (came < 0) return errno == EAGAIN;
    if (came == 0) {
      from->ended = true;
      shutdown(to->fd, SHUT_WR);
      await(from, from->events & ~(unsigned)EPOLLIN);
      return !to->ended;
    }
    ssize_t went = write(to->fd, piece, (size_t)came);
    if (went < 0 && errno != EAGAIN) return false;
    if (went < 0) went = 0;
    if (went < came) {
      hold(from, piece + went, (size_t)(came - went));
      return true;
    }
    if (came < PIECE) return true;
  }
}

static bool drain(struct end *end) {
  const ssize_t went = write(end->fd, end->held + end->taken, end->size - end->taken);
  if (went < 0) return errno == EAGAIN;
  end->taken += (size_t)went;
  if (end->taken < end->size) return true;
  await(end, end->events & ~(unsigned)EPOLLOUT);
  if (!end->peer->ended) await(end->peer, end->peer->events | EPOLLIN);
  return true;
}

static void add(struct end *end, int fd, struct end *peer) {
  const int on = 1;
  *end = (struct end){.fd = fd, .peer = peer, .events = EPOLLIN};
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};
  epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void connect_to(const struct sockaddr_in *app, int client) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (const struct sockaddr *)app, sizeof *app) < 0) fail("connect");
  struct end *ends = calloc(2, sizeof *ends);
  if (ends == NULL) fail("calloc");
  add(&ends[0], client, &ends[1]);
  add(&ends[1], fd, &ends[0]);
}

/* The memory of a connection is not freed: more events of this turn may be about it, and the bench opens few. */
static void end_both(struct end *end) {
  close(end->fd);
  close(end->peer->fd);
  end->fd = end->peer->fd = -1;
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  const struct sockaddr_in app = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(arguments[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof own;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (bind(listener, (struct sockaddr *)&own, sizeof own) < 0 || listen(listener, BACKLOG) < 0) fail("listen");
  getsockname(listener, (struct sockaddr *)&own, &length);
  printf("%d\n", ntohs(own.sin_port));
  fflush(stdout);
  signal(SIGPIPE, SIG_IGN);
  poller = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    const int ready = epoll_wait(poller, events, EVENTS, -1);
    for (int at = 0; at < ready; at += 1) {
      struct end *end = events[at].data.ptr;
      if (end == NULL) {
        const int client = accept(listener, NULL, NULL);
        if (client >= 0) connect_to(&app, client);
        continue;
      }
      if (end->fd < 0) continue;
      const unsigned came = events[at].events;
      const bool gone = (came & (EPOLLERR | EPOLLHUP)) != 0 && (end->events & EPOLLIN) == 0;
      const bool drained = (came & EPOLLOUT) == 0 || drain(end);
      if (gone || !drained || ((came & EPOLLIN) != 0 && !move(end))) end_both(end);
    }
  }
}
