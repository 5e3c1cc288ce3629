/* Where programs of the machine listen for TCP connections. */
#ifndef HIBERNAUT_LISTENING_H
#define HIBERNAUT_LISTENING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LISTENERS_MAX 64u    /* an app has a handful; more are not reported */
#define LISTENER_BYTES 19u   /* bytes of one listener in F_LISTENING */

struct listener {
  uint8_t family; /* 4 or 6 */
  uint8_t zero;   /* leaves no gap: listeners are compared byte by byte */
  uint16_t port;
  uint8_t address[16]; /* in network byte order; IPv4 uses the first four */
};

/* Finds the listening sockets in the text of /proc/net/tcp (family 4) or tcp6 (family 6). Returns how many there are,
 * at most `most`. */
size_t listeners_read(const char *table, uint8_t family, struct listener *out, size_t most);

/* Whether only programs in the machine can connect to it: 127.0.0.0/8, also as mapped IPv6, and ::1. */
bool listener_is_loopback(const struct listener *listener);

/* Whether others can connect to the port. */
bool listeners_reach(const struct listener *listeners, size_t count, uint16_t port);

/* Finds the current listeners of both families, in the kernel's order. */
size_t listeners_now(struct listener *out, size_t most);

/* Writes the payload of F_LISTENING: u8 family, u16 port and 16 bytes of address for each. Returns its length. */
uint32_t listeners_write(const struct listener *listeners, size_t count, uint8_t *out);

#endif
