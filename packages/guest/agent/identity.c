#define _GNU_SOURCE
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connections.h"
#include "system.h"

#define LAYER_SERIAL "/sys/block/vdb/serial"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define OWN_BOOT_ID "/run/boot_id"

static char known[64];

void identity_learn(void) { system_read_file(LAYER_SERIAL, known, sizeof known); }

bool identity_foreign(void) {
  char now[sizeof known];
  return strcmp(known, system_read_file(LAYER_SERIAL, now, sizeof now)) != 0;
}

static int rewrite(const char *path, int flags, const char *text) {
  int fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | flags, 0444);
  if (fd < 0) return errno;
  size_t length = strlen(text);
  int error = write(fd, text, length) == (ssize_t)length ? 0 : EIO;
  close(fd);
  return error;
}

/* Images without such a file, or with an empty one, do not get one: their programs expect to make it themselves. */
static int renew_machine_id(const char *path, const char *id) {
  struct stat file;
  if (lstat(path, &file) < 0 || !S_ISREG(file.st_mode) || file.st_size == 0) return 0;
  return rewrite(path, 0, id);
}

/* The kernel's own boot id cannot be changed, and is the parent's. */
static int renew_boot_id(const char *id) {
  int error = rewrite(OWN_BOOT_ID, O_CREAT, id);
  if (error != 0) return error;
  return mount(OWN_BOOT_ID, BOOT_ID, NULL, MS_BIND, NULL) < 0 ? errno : 0;
}

static int renew_ids(void) {
  uint8_t random[32];
  char machine[34], boot[38], hex[2 * sizeof random + 1];
  if (getrandom(random, sizeof random, 0) != sizeof random) return EIO;
  for (size_t i = 0; i < sizeof random; i++) snprintf(hex + 2 * i, 3, "%02x", random[i]);
  snprintf(machine, sizeof machine, "%.32s\n", hex);
  snprintf(boot, sizeof boot, "%.8s-%.4s-4%.3s-a%.3s-%.12s\n", hex + 32, hex + 40, hex + 45, hex + 49, hex + 52);
  int error = renew_machine_id("/etc/machine-id", machine);
  if (error == 0) error = renew_machine_id("/var/lib/dbus/machine-id", machine);
  return error != 0 ? error : renew_boot_id(boot);
}

static void take_text(char **to, char **from) {
  char *old = *to;
  *to = *from;
  *from = old;
}

/* What a later command inherits. The app keeps the environment that it was started with. */
static void take(struct config *config, struct config *next) {
  take_text(&config->hostname, &next->hostname);
  take_text(&config->address, &next->address);
  take_text(&config->gateway, &next->gateway);
  take_text(&config->dns, &next->dns);
  for (size_t i = 0; i <= CONFIG_MAX_WORDS; i++) take_text(&config->env[i], &next->env[i]);
  size_t count = config->env_count;
  config->env_count = next->env_count;
  next->env_count = count;
}

const char *identity_become(struct config *config, struct config *next, int *error) {
  *error = EINVAL;
  if (next->hostname == NULL || next->address == NULL || next->mac == NULL) return "the new identity is incomplete";
  /* First, and without it nothing: two machines that draw the same random numbers have each other's keys. */
  if (next->entropy_length == 0) return "the new identity has no entropy";
  if ((*error = -system_add_entropy(next->entropy, next->entropy_length)) != 0) return "randomness could not be renewed";
  if ((*error = connections_end(NULL)) != 0) return "the connections of the machine before could not be ended";
  if ((*error = -system_set_mac(next->mac)) != 0) return "the MAC address could not be changed";
  next->clock_ns = 0; /* F_AWAKE sets the clock */
  if ((*error = -system_configure(next)) != 0) return "the network could not be set up";
  if ((*error = renew_ids()) != 0) return "the ids of machine and boot could not be renewed";
  take(config, next);
  identity_learn();
  return NULL;
}
