/* The agent's work on the guest as a whole: mounts, modules, network, clock, power.
 * Every function that can fail returns 0 or -errno unless it says otherwise. */
#ifndef HIBERNAUT_SYSTEM_H
#define HIBERNAUT_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

void system_note(const char *what, int error); /* a line on the console */
void system_mount_early(void);

/* Opens what of 0, 1 and 2 is not open (a kernel without a console leaves PID 1 with none), so
 * that no other file gets such a number. */
void system_open_standard_files(void);

/* How readily the kernel ends this process when memory runs out: "-1000" (never) to "1000". */
void system_set_oom_score(const char *score);
void system_load_modules(const char *list);
int system_open_port(const char *name, int deadline_ms);

/* Read-only image under the writable layer, then root moves there. */
int system_enter_image(const char *image_device, const char *layer_device);

/* The folders of the local API's socket, and a link to it at its second name. */
void system_make_local_api(const char *path, const char *twin);

/* Host name, /etc files, addresses and routes. */
int system_configure(const struct config *config);

int system_set_clock(uint64_t wall_ns);
uint64_t system_wall_ns(void);
int system_add_entropy(const uint8_t *bytes, size_t length);
void system_sync(void);
_Noreturn void system_power_off(void);

uint64_t system_monotonic_ms(void);
uint64_t system_oom_kills(void);

/* The text of a file cut to size - 1 bytes; "" when it cannot be read. */
char *system_read_file(const char *path, char *out, size_t size);

#endif
