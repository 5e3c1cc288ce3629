/* The TCP connections of the machine. */
#ifndef HIBERNAUT_CONNECTIONS_H
#define HIBERNAUT_CONNECTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Connections that the platform carries. IPv4 addresses are numbers. */
struct carried {
  uint32_t base, mask;   /* from here to addresses whose bits of `mask` are those of `base` */
  uint32_t gateway;      /* from this address to one of the ports here; 0: none */
  const uint16_t *ports;
  size_t port_count;
};

/* Opens what `connections_end` needs, so that it takes less time. */
void connections_prepare(void);

/* Ends every TCP connection with other computers, or `only` some, unless that is NULL: programs find them reset. Those
 * within the machine stay, and so do listeners. One that cannot be ended spares no other. Returns 0 or the first errno;
 * EOPNOTSUPP when the kernel cannot end connections (CONFIG_INET_DIAG_DESTROY, tcp_diag). */
int connections_end(const struct carried *only);

#endif
