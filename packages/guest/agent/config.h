/* Configuration: the records of F_SET frames, each `u8 key, u32 length (little endian), value`. The platform sends any
 * number of such frames before F_RUN. The limits below are the agent's, which refuses a record that exceeds one. The
 * platform's side is packages/guest/src/records.ts. */
#ifndef HIBERNAUT_CONFIG_H
#define HIBERNAUT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_key {
  C_HOSTNAME = 1,
  C_ARG = 2,     /* one word of the command, in order: the program comes first */
  C_ENV = 3,     /* NAME=value */
  C_USER = 4,    /* user[:group], names or numbers; empty: root */
  C_WORKDIR = 5,
  C_ADDRESS = 6, /* of eth0, IPv4 in CIDR notation */
  C_GATEWAY = 7,
  C_DNS = 8,
  C_PORT = 9,    /* a TCP port, decimal: the app is ready when it listens on all of them */
  C_CLOCK = 10,  /* u64 wall clock in ns */
  C_HOSTS = 11,  /* a line of /etc/hosts */
  C_VOLUME = 16, /* "serial path": a disk by its serial number, and where its file system is mounted */
  C_FILE = 17,   /* "mode path", mode in octal: a file that is written before the app starts */
  C_FILE_DATA = 18, /* bytes that follow in the file of the last C_FILE */
  C_SWAP = 19,   /* u32 MB of swap on the writable layer; from protocol 3 on */
  /* before F_BECOME, from protocol 5 on: */
  C_MAC = 21,     /* of eth0, six hex pairs with colons */
  C_ENTROPY = 22, /* up to CONFIG_MAX_ENTROPY bytes of randomness */
  /* in F_EXEC only, in addition to C_ARG, C_ENV (on top of the app's), C_USER and C_WORKDIR (instead of the app's): */
  C_TERMINAL = 12, /* u16 rows, u16 columns: run the command on a terminal of this size */
  C_TIMEOUT = 13,  /* u32 ms of the machine's own time until the command and its process group are killed; 0: never */
  C_INPUT = 14,    /* empty: F_DATA becomes the standard input, which is /dev/null otherwise */
  C_HOOKS = 15,    /* run the programs in this directory instead of a command, as root */
  C_TASK = 20,     /* carry out this task of task.h, as root, with the arguments; from protocol 4 on */
  C_LOGIN = 23,    /* empty: run the command as its user logs in, see spawn.h; from protocol 6 on */
  C_LABEL = 24,    /* up to CONFIG_MAX_LABEL bytes: keep the command for a later platform, see streams.h; from protocol 6 on */
};

#define CONFIG_MAX_WORDS 1024 /* of arguments, and of environment variables */
#define CONFIG_MAX_PORTS 32
#define CONFIG_MAX_HOSTS 32
#define CONFIG_MAX_VOLUMES 8
#define CONFIG_MAX_FILES 32
#define CONFIG_MAX_ENTROPY 64 /* the kernel takes no more at once */
#define CONFIG_MAX_LABEL 8192
#define CONFIG_MAX_FILE_BYTES (4u << 20) /* of all files: more than the platform sends, and little for a machine */

struct config_file {
  char *path;
  uint32_t mode;
  uint8_t *data;
  size_t length;
};

struct config {
  char *hostname, *user, *workdir, *address, *gateway, *dns, *mac, *hooks, *task;
  char *args[CONFIG_MAX_WORDS + 1];
  char *env[CONFIG_MAX_WORDS + 1];
  char *hosts[CONFIG_MAX_HOSTS];
  char *volumes[CONFIG_MAX_VOLUMES + 1];
  uint16_t ports[CONFIG_MAX_PORTS];
  struct config_file files[CONFIG_MAX_FILES];
  size_t arg_count, env_count, port_count, host_count, volume_count, file_count, file_bytes;
  uint64_t clock_ns;
  bool terminal, input, login;
  uint16_t rows, columns;
  uint32_t timeout_ms, swap_mb;
  uint8_t entropy[CONFIG_MAX_ENTROPY];
  size_t entropy_length;
  uint8_t *label; /* NULL: none */
  size_t label_length;
};

/* Takes the records of one frame. Returns NULL, or says what is wrong with a record; those before it are kept. */
const char *config_set(struct config *config, const uint8_t *records, size_t length);

void config_free(struct config *config);

/* Wipes and forgets the files, which may be secret, once they are written. */
void config_forget_files(struct config *config);

/* Returns the value of an environment variable of the configuration, or NULL. */
const char *config_env(const struct config *config, const char *name);

#endif
