/* Where programs of the machine listen for TCP connections. */
#ifndef HIBERNAUT_LISTENING_H
#define HIBERNAUT_LISTENING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LISTENERS_MAX 64u    /* an app has a handful; what is beyond that is not told */
#define LISTENER_BYTES 19u   /* of one listener in F_LISTENING */

struct listener {
  uint8_t family; /* 4 or 6 */
  uint8_t zero;   /* no gap: two are compared byte by byte */
  uint16_t port;
  uint8_t address[16]; /* in network order; of IPv4 the first four */
};

/* The listening sockets in the text of /proc/net/tcp (family 4) or tcp6 (family 6); returns how many were found, at most
 * `most`. */
size_t listeners_read(const char *table, uint8_t family, struct listener *out, size_t most);

/* Whether only the machine itself reaches it: 127.0.0.0/8, ::1, and the former as IPv6. */
bool listener_is_loopback(const struct listener *listener);

/* Whether a port can be reached from outside. */
bool listeners_reach(const struct listener *listeners, size_t count, uint16_t port);

/* Those of now, of both families, in the kernel's order. */
size_t listeners_now(struct listener *out, size_t most);

/* The payload of F_LISTENING: for each u8 family, u16 port and 16 bytes of address. Returns its length. */
uint32_t listeners_write(const struct listener *listeners, size_t count, uint8_t *out);

#endif
