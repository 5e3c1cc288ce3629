#define _GNU_SOURCE
#include "connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tar.h"

static int connect_to(const struct sockaddr *address, socklen_t length) {
  int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, address, length) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static int open_port(uint16_t port) {
  const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = connect_to((const struct sockaddr *)&four, sizeof four);
  int error = errno;
  if (fd < 0) fd = connect_to((const struct sockaddr *)&six, sizeof six);
  if (fd < 0) errno = error; /* a kernel without IPv6 would hide the reason */
  return fd;
}

/* Passes bytes on until they end. Returns false if one side was lost. */
static bool pump(int from, int to) {
  static uint8_t bytes[16384];
  for (;;) {
    ssize_t got = read(from, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    if (!tar_put(to, bytes, (size_t)got)) return false;
  }
}

/* One process for each direction, so that neither can block the other. */
int connect_run(const char *text) {
  char *end;
  unsigned long port = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || port == 0 || port > UINT16_MAX) {
    dprintf(2, "%s is not a port\n", text);
    return CONNECT_INVALID;
  }
  signal(SIGPIPE, SIG_IGN);
  int fd = open_port((uint16_t)port);
  if (fd < 0) {
    dprintf(2, "%s\n", strerror(errno));
    return CONNECT_REFUSED;
  }
  pid_t writer = fork();
  if (writer < 0) {
    dprintf(2, "%s\n", strerror(errno));
    return CONNECT_LOST;
  }
  if (writer == 0) {
    close(1);
    bool whole = pump(0, fd);
    if (whole) shutdown(fd, SHUT_WR);
    _exit(whole ? 0 : 1);
  }
  close(0);
  bool whole = pump(fd, 1);
  close(1); /* tells the client that nothing follows */
  if (!whole) kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
  if (!whole) dprintf(2, "the connection was lost\n");
  return whole ? CONNECT_ENDED : CONNECT_LOST;
}
