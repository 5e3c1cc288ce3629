/* The sockets of the machine on which others can reach it, and which process has them. */
#ifndef HIBERNAUT_SOCKETS_H
#define HIBERNAUT_SOCKETS_H

#include <netinet/in.h>
#include <stddef.h>

#define SOCKETS_MAX 4096u      /* in the whole machine; more are not reported */
#define SOCKET_ADDRESS_MAX (INET6_ADDRSTRLEN + sizeof "[]:65535")

struct listener {
  unsigned long inode;
  const char *proto; /* "tcp", "tcp6", "udp" or "udp6" */
  char address[SOCKET_ADDRESS_MAX];
};

/* Finds sockets that listen, and for UDP those that are bound and not connected. Returns how many, at most `most`. */
size_t sockets_now(struct listener *out, size_t most);

/* The same in the text of a table of /proc/net, for one protocol. */
size_t sockets_read(const char *table, const char *proto, struct listener *out, size_t most);

/* Returns the socket with this inode, or NULL. */
const struct listener *sockets_find(const struct listener *sockets, size_t count, unsigned long inode);

#endif
