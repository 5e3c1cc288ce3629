/* The machine's volumes: ext4 file systems, each on a disk of its own. They are mounted before the app starts, frozen
 * during a suspend, and unmounted before power off. So whenever the guest is not running, the disk alone is
 * consistent. */
#ifndef HIBERNAUT_VOLUMES_H
#define HIBERNAUT_VOLUMES_H

#include "config.h"

/* Mounts the volumes of the configuration, and extends their file systems to the size of their disks. A new volume
 * belongs to the app's user. Returns NULL, or says what went wrong; *error is the errno behind that, or 0. */
const char *volumes_mount(const struct config *config, int *error);

/* Between the two, nothing changes on the disks, and no journal is left to replay. */
void volumes_freeze(void);
void volumes_thaw(void);

/* Kills every process that is left and unmounts the volumes. Does nothing in machines without volumes. */
void volumes_close(void);

#endif
