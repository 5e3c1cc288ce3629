/* The TCP connections of the machine. */
#ifndef HIBERNAUT_CONNECTIONS_H
#define HIBERNAUT_CONNECTIONS_H

/* Ends every TCP connection with other computers: programs find them reset. Those within the machine stay, and so do
 * listeners. Returns 0 or an errno; EOPNOTSUPP when the kernel cannot end connections (CONFIG_INET_DIAG_DESTROY). */
int connections_end(void);

#endif
