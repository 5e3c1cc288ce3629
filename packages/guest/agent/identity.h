/* Who the machine is. A fork begins with the memory of another machine: before anything of the app's runs in it, it has to
 * become the machine that the platform says it is. */
#ifndef HIBERNAUT_IDENTITY_H
#define HIBERNAUT_IDENTITY_H

#include <stdbool.h>

#include "config.h"

/* Remembers who the machine is, once it has its disks. */
void identity_learn(void);

/* Whether this memory came from another machine, and does not know yet. The serial number of the writable layer, which is
 * asked of the host each time, says so: it cannot be in the memory, and an agent needs no platform to notice. */
bool identity_foreign(void);

/* Takes the identity of a configuration with hostname, addresses, MAC address, environment and entropy: reseeds the
 * kernel's generator of random numbers, ends all connections, and renames and renumbers the machine. `config` gets the
 * parts that later commands need, `next` loses them. Returns NULL, or says what failed, with an errno in `error`. Safe to
 * repeat. */
const char *identity_become(struct config *config, struct config *next, int *error);

#endif
