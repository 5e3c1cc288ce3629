/* Connects to a port of the machine, for `hibernaut machine forward`. */
#ifndef HIBERNAUT_CONNECT_H
#define HIBERNAUT_CONNECT_H

enum connect_exit {
  CONNECT_ENDED = 0,
  CONNECT_LOST = 1,
  CONNECT_REFUSED = 2, /* nothing listens there */
  CONNECT_INVALID = 3, /* not a port */
};

/* Passes standard input to the TCP port on the loopback interface, and what comes back to standard output, until both
 * have ended. Each direction ends by itself. Runs in a child process of the agent and returns its exit code. When that
 * isn't 0, standard error says why. */
int connect_run(const char *port);

#endif
