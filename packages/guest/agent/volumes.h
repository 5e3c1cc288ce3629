/* The machine's volumes: ext4 file systems on disks of their own. They are mounted before the app
 * starts, hold still while the machine is being suspended, and are unmounted before it is powered
 * off: whenever nothing runs, the disk alone is whole. */
#ifndef HIBERNAUT_VOLUMES_H
#define HIBERNAUT_VOLUMES_H

#include "config.h"

/* Mounts what the configuration names, grown to the size of its disk. A volume that is new belongs
 * to the app's user. NULL, or a sentence that says why it cannot be; *error is an errno, or 0. */
const char *volumes_mount(const struct config *config, int *error);

/* From a freeze to the thaw nothing changes on the disks, and no journal is left to replay. */
void volumes_freeze(void);
void volumes_thaw(void);

/* Ends every process that is left and unmounts. For machines without volumes it does nothing. */
void volumes_close(void);

#endif
