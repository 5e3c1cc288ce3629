/* The guest as a whole: mounts, modules, network, clock, power. Functions that can fail return 0 or -errno, unless
 * their comment says otherwise. */
#ifndef HIBERNAUT_SYSTEM_H
#define HIBERNAUT_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

/* Writes a line to the console. `error` is an errno, positive or negative, or 0. */
void system_note(const char *what, int error);

/* Mounts /proc, /sys, /dev and the like. */
void system_mount_early(void);

/* Opens those of the files 0, 1 and 2 that are not open, so that no other file gets their number: a kernel without a
 * console opens none of them for PID 1. */
void system_open_standard_files(void);

/* Sets how readily the kernel kills this process when memory runs out: "-1000" (never) to "1000". */
void system_set_oom_score(const char *score);

/* Loads the kernel modules that a file lists, one path per line. */
void system_load_modules(const char *list);

/* Opens the virtio-serial port with that name and returns its file. */
int system_open_port(const char *name, int deadline_ms);

/* Mounts the read-only image under the writable layer, and makes that the root directory. */
int system_enter_image(const char *image_device, const char *layer_device);

/* Creates the directories of the local API's socket, and a link to the socket at its second path. */
void system_make_local_api(const char *path, const char *twin);

/* The writable layer as a directory, which has no path any more, or -1. */
int system_layer(void);

/* With swap, an app may use more memory than there is, slowly. See end_thrashing_early() in system.c. */
void system_allow_thrashing(void);

/* Creates a directory and those that lead to it. */
int system_make_folders(const char *path);

/* Sets the hostname, files in /etc, addresses and routes. */
int system_configure(const struct config *config);

/* Sets the MAC address of the network interface, from text. Its neighbours are forgotten. */
int system_set_mac(const char *mac);

int system_set_clock(uint64_t wall_ns);
uint64_t system_wall_ns(void);
int system_add_entropy(const uint8_t *bytes, size_t length);
void system_sync(void);
_Noreturn void system_power_off(void);

uint64_t system_monotonic_ms(void);
uint64_t system_oom_kills(void);

/* Reads a file, of which only the first size - 1 bytes count. "" when it cannot be read. Returns `out`. */
char *system_read_file(const char *path, char *out, size_t size);

#endif
