/* What the platform tells the agent before the app starts: records of F_SET frames,
 * each `u8 key, u32 length (little endian), value`. Any number of frames may follow one
 * another; F_RUN ends them. Limits are this side's, and a record over one is refused. */
#ifndef HIBERNAUT_CONFIG_H
#define HIBERNAUT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_key {
  C_HOSTNAME = 1,
  C_ARG = 2,     /* one word of the command, in order */
  C_ENV = 3,     /* NAME=value */
  C_USER = 4,    /* user[:group], names or numbers; empty is root */
  C_WORKDIR = 5,
  C_ADDRESS = 6, /* IPv4 in CIDR form, of eth0 */
  C_GATEWAY = 7,
  C_DNS = 8,
  C_PORT = 9,    /* TCP port, decimal: ready when all are listening */
  C_CLOCK = 10,  /* u64 wall clock in ns */
  C_HOSTS = 11,  /* a line of /etc/hosts */
  C_VOLUME = 16, /* "serial path": the disk with that serial number, and where its file system is mounted */
  /* of F_EXEC only, besides C_ARG, C_ENV (over the app's), C_USER and C_WORKDIR (instead of the app's): */
  C_TERMINAL = 12, /* u16 rows, u16 columns: input and output are a terminal */
  C_TIMEOUT = 13,  /* u32 ms of the machine's own time until the command is killed with its group; 0 is never */
  C_INPUT = 14,    /* empty: F_DATA becomes its standard input, which is /dev/null otherwise */
  C_HOOKS = 15,    /* run the programs of this folder instead of a command, as root */
};

#define CONFIG_MAX_WORDS 1024 /* arguments, and as many environment variables */
#define CONFIG_MAX_PORTS 32
#define CONFIG_MAX_HOSTS 32
#define CONFIG_MAX_VOLUMES 8

struct config {
  char *hostname, *user, *workdir, *address, *gateway, *dns, *hooks;
  char *args[CONFIG_MAX_WORDS + 1];
  char *env[CONFIG_MAX_WORDS + 1];
  char *hosts[CONFIG_MAX_HOSTS];
  char *volumes[CONFIG_MAX_VOLUMES + 1];
  uint16_t ports[CONFIG_MAX_PORTS];
  size_t arg_count, env_count, port_count, host_count, volume_count;
  uint64_t clock_ns;
  bool terminal, input;
  uint16_t rows, columns;
  uint32_t timeout_ms;
};

/* Takes the records of one frame. NULL, or a sentence that says what was wrong; records
 * before the faulty one stand. */
const char *config_set(struct config *config, const uint8_t *records, size_t length);

void config_free(struct config *config);

/* Value of NAME in the environment that was set, or NULL. */
const char *config_env(const struct config *config, const char *name);

#endif
