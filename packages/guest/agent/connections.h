/* The TCP connections of the machine. */
#ifndef HIBERNAUT_CONNECTIONS_H
#define HIBERNAUT_CONNECTIONS_H

#include <stdint.h>

/* IPv4 addresses, as numbers: those whose bits of `mask` are those of `base`. */
struct subnet {
  uint32_t base, mask;
};

/* Ends every TCP connection with other computers, or only those with a subnet, unless that is NULL: programs find them
 * reset. Those within the machine stay, and so do listeners. Returns 0 or an errno; EOPNOTSUPP when the kernel cannot end
 * connections (CONFIG_INET_DIAG_DESTROY). */
int connections_end(const struct subnet *with);

#endif
