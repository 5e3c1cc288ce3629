#define _GNU_SOURCE
#include "connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Of the kernel's include/net/tcp_states.h: all states that a connection may be in, as bits, except TIME_WAIT, which has no
 * program any more. Closed, listening and, from Linux 6.8 on, bound sockets are not connected. */
#define CONNECTED (1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 8 | 1u << 9 | 1u << 11 | 1u << 12)
#define MOST_PASSES 64 /* ending connections while they are listed makes the kernel skip some: look again until none is left */
#define ANSWER_S 5     /* the kernel answers at once */

struct request {
  struct nlmsghdr header;
  struct inet_diag_req_v2 body;
};

/* For lists, and for ends. Open all the time: a guest that is becoming itself would be the first in its virtual machine to open
 * and close such sockets, and an emulator translates what it runs for the first time. */
static int diag[2] = {-1, -1};

static int open_diag(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  struct timeval limit = {.tv_sec = ANSWER_S};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

/* Sets `*number` to an IPv4 address, which a socket for IPv6 has in a mapped form. */
static bool is_ipv4(uint8_t family, const uint32_t address[4], uint32_t *number) {
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  if (family != AF_INET && memcmp(address, mapped, sizeof mapped) != 0) return false;
  *number = ntohl(address[family == AF_INET ? 0 : 3]);
  return true;
}

static bool within_machine(uint8_t family, const uint32_t address[4]) {
  uint32_t number;
  if (is_ipv4(family, address, &number)) return number >> 24 == 127;
  return memcmp(address, &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

static bool is_meant(const struct inet_diag_msg *one, const struct carried *only) {
  uint32_t peer;
  if (within_machine(one->idiag_family, one->id.idiag_src)) return false;
  if (only == NULL) return true;
  if (!is_ipv4(one->idiag_family, one->id.idiag_dst, &peer)) return false;
  if ((peer & only->mask) == only->base) return true;
  if (only->gateway == 0 || peer != only->gateway) return false;
  for (size_t i = 0; i < only->port_count; i++)
    if (only->ports[i] == ntohs(one->id.idiag_sport)) return true;
  return false;
}

static int send_request(int fd, const struct request *request) {
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  return sendto(fd, request, sizeof *request, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0 ? errno : 0;
}

/* Returns ENOENT for one that has ended meanwhile, which is what was wanted. */
static int end_one(int fd, uint8_t family, const struct inet_diag_sockid *id) {
  struct request request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DESTROY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
      .body = {.sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .id = *id},
  };
  union {
    struct nlmsghdr header;
    char bytes[1024];
  } answer;
  int error = send_request(fd, &request);
  if (error != 0) return error;
  ssize_t got = recv(fd, &answer, sizeof answer, 0);
  if (got < 0) return errno;
  if ((size_t)got < NLMSG_LENGTH(sizeof(struct nlmsgerr)) || answer.header.nlmsg_type != NLMSG_ERROR) return EPROTO;
  error = -((struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
  return error == ESTALE ? ENOENT : error;
}

/* Ends the connections of one family that the kernel lists. `found` counts those of programs: what no program has any more,
 * or not yet, may stay listed after its end. */
static int end_listed(int list, int ends, uint8_t family, const struct carried *only, int *found) {
  static union {
    struct nlmsghdr header;
    char bytes[32768];
  } answer;
  struct request request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
      .body = {.sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = CONNECTED},
  };
  int error = send_request(list, &request);
  if (error != 0) return error;
  for (;;) {
    ssize_t got = recv(list, &answer, sizeof answer, 0);
    if (got < 0) return errno;
    for (size_t at = 0; at + sizeof(struct nlmsghdr) <= (size_t)got;) {
      const struct nlmsghdr *message = (const void *)(answer.bytes + at);
      if (message->nlmsg_len < sizeof *message || message->nlmsg_len > (size_t)got - at) return EPROTO;
      if (message->nlmsg_type == NLMSG_DONE) {
        /* It says here why it could list nothing, as without tcp_diag. */
        int status = message->nlmsg_len < NLMSG_LENGTH(sizeof status) ? 0 : *(const int *)NLMSG_DATA(message);
        return status < 0 ? -status : error;
      }
      if (message->nlmsg_type == NLMSG_ERROR) return -((const struct nlmsgerr *)NLMSG_DATA(message))->error;
      const struct inet_diag_msg *one = NLMSG_DATA(message);
      at += NLMSG_ALIGN(message->nlmsg_len);
      if (!is_meant(one, only)) continue;
      int ended = end_one(ends, family, &one->id);
      if (ended == 0 && one->idiag_inode != 0) *found += 1;
      if (ended != 0 && ended != ENOENT && error == 0) error = ended;
    }
  }
}

void connections_prepare(void) {
  for (int i = 0; i < 2; i++)
    if (diag[i] < 0) diag[i] = open_diag();
}

/* What is left unread of an answer would be taken for the next one. */
static void forget_answers(void) {
  for (int i = 0; i < 2; i++) {
    if (diag[i] >= 0) close(diag[i]);
    diag[i] = -1;
  }
}

int connections_end(const struct carried *only) {
  connections_prepare();
  int list = diag[0], ends = diag[1], found = 1;
  int error = list < 0 || ends < 0 ? EPROTONOSUPPORT : 0;
  for (int pass = 0; error == 0 && found > 0; pass++) {
    found = 0;
    error = pass == MOST_PASSES ? EBUSY : end_listed(list, ends, AF_INET, only, &found);
    int more = end_listed(list, ends, AF_INET6, only, &found);
    if (error == 0) error = more;
    if (error == ENOENT) error = EOPNOTSUPP; /* a kernel without tcp_diag */
  }
  if (error != 0) forget_answers();
  return error;
}
