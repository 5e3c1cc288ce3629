#define _GNU_SOURCE
#include "sockets.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

#define TCP_LISTENS 0x0au  /* TCP_LISTEN, as in /proc/net/tcp */
#define UDP_UNCONNECTED 0x07u
#define TABLE_BYTES 1048576u /* some 6000 sockets */

/* Writes "127.0.0.1:80" or "[::1]:80" for the kernel's form of it: every four bytes as one number in its own byte order. */
static bool write_address(const char *digits, unsigned port, char *out) {
  unsigned char bytes[16];
  char text[INET6_ADDRSTRLEN];
  size_t words = strlen(digits) / 8;
  if (strlen(digits) % 8 != 0 || (words != 1 && words != 4)) return false;
  for (size_t i = 0; i < words; i++) {
    char part[9] = {0};
    memcpy(part, digits + i * 8, 8);
    uint32_t word = (uint32_t)strtoul(part, NULL, 16);
    memcpy(bytes + i * 4, &word, 4);
  }
  if (inet_ntop(words == 1 ? AF_INET : AF_INET6, bytes, text, sizeof text) == NULL) return false;
  snprintf(out, SOCKET_ADDRESS_MAX, words == 1 ? "%s:%u" : "[%s]:%u", text, port & 0xffffu);
  return true;
}

size_t sockets_read(const char *table, const char *proto, struct listener *out, size_t most) {
  const unsigned wanted = proto[0] == 't' ? TCP_LISTENS : UDP_UNCONNECTED;
  char digits[40];
  unsigned port, state;
  unsigned long inode;
  size_t count = 0;
  for (const char *line = strchr(table, '\n'); line != NULL && line[1] != '\0' && count < most; line = strchr(line + 1, '\n')) {
    if (sscanf(line + 1, " %*[^:]: %39[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", digits, &port, &state, &inode) != 4) continue;
    if (state != wanted || inode == 0 || !write_address(digits, port, out[count].address)) continue;
    out[count].inode = inode;
    out[count++].proto = proto;
  }
  return count;
}

static int by_inode(const void *one, const void *other) {
  unsigned long a = ((const struct listener *)one)->inode, b = ((const struct listener *)other)->inode;
  return a < b ? -1 : a > b;
}

size_t sockets_now(struct listener *out, size_t most) {
  static char table[TABLE_BYTES];
  static const char *const protos[] = {"tcp", "tcp6", "udp", "udp6"};
  size_t count = 0;
  for (size_t i = 0; i < sizeof protos / sizeof *protos; i++) {
    char path[32];
    snprintf(path, sizeof path, "/proc/net/%s", protos[i]);
    count += sockets_read(system_read_file(path, table, sizeof table), protos[i], out + count, most - count);
  }
  qsort(out, count, sizeof *out, by_inode);
  return count;
}

const struct listener *sockets_find(const struct listener *sockets, size_t count, unsigned long inode) {
  const struct listener wanted = {.inode = inode};
  return bsearch(&wanted, sockets, count, sizeof *sockets, by_inode);
}
