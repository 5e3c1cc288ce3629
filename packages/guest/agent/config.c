#define _GNU_SOURCE
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "frame.h"

static const char *replace(char **slot, char *text) {
  free(*slot);
  *slot = text;
  return NULL;
}

static const char *append(char **list, size_t *count, size_t limit, char *text) {
  if (*count == limit) {
    free(text);
    return "too many arguments, environment variables, host lines or volumes";
  }
  list[(*count)++] = text;
  list[*count] = NULL;
  return NULL;
}

static const char *append_port(struct config *config, char *text) {
  char *end;
  unsigned long port = strtoul(text, &end, 10);
  bool valid = *text >= '0' && *text <= '9' && *end == '\0' && port > 0 && port < 65536;
  free(text);
  if (!valid) return "a port is not a number from 1 to 65535";
  if (config->port_count == CONFIG_MAX_PORTS) return "too many ports";
  config->ports[config->port_count++] = (uint16_t)port;
  return NULL;
}

static const char *append_volume(struct config *config, char *text) {
  const char *space = strchr(text, ' ');
  if (space == NULL || space == text || space[1] != '/') {
    free(text);
    return "a volume is not a disk's serial number and a path";
  }
  return append(config->volumes, &config->volume_count, CONFIG_MAX_VOLUMES, text);
}

static const char *append_file(struct config *config, char *text) {
  char *end;
  unsigned long mode = strtoul(text, &end, 8);
  const char *fault = NULL;
  if (end == text || *end != ' ' || end[1] != '/' || mode > 0777) fault = "a file is not a mode and a path";
  else if (config->file_count == CONFIG_MAX_FILES) fault = "too many files";
  char *path = fault == NULL ? strdup(end + 1) : NULL;
  free(text);
  if (fault != NULL) return fault;
  if (path == NULL) return "out of memory";
  config->files[config->file_count++] = (struct config_file){.path = path, .mode = (uint32_t)mode};
  return NULL;
}

static const char *append_file_data(struct config *config, const uint8_t *value, size_t length) {
  if (config->file_count == 0) return "a file's content does not follow a file";
  if (length > CONFIG_MAX_FILE_BYTES - config->file_bytes) return "the files are too large";
  struct config_file *file = &config->files[config->file_count - 1];
  if (length == 0) return NULL;
  uint8_t *data = realloc(file->data, file->length + length);
  if (data == NULL) return "out of memory";
  memcpy(data + file->length, value, length);
  file->data = data;
  file->length += length;
  config->file_bytes += length;
  return NULL;
}

static const char *set_label(struct config *config, const uint8_t *value, size_t length) {
  if (length > CONFIG_MAX_LABEL) return "the label is too long";
  uint8_t *label = malloc(length + 1); /* never NULL for an empty one */
  if (label == NULL) return "out of memory";
  memcpy(label, value, length);
  free(config->label);
  config->label = label;
  config->label_length = length;
  return NULL;
}

static const char *set_one(struct config *config, uint8_t key, const uint8_t *value, size_t length) {
  switch (key) {
    case C_CLOCK:
      if (length != 8) return "the clock is not 8 bytes";
      config->clock_ns = get_u64(value);
      return NULL;
    case C_TERMINAL:
      if (length != 4) return "a terminal's size is not 4 bytes";
      config->terminal = true;
      config->rows = get_u16(value), config->columns = get_u16(value + 2);
      return NULL;
    case C_TIMEOUT:
      if (length != 4) return "the time-out is not 4 bytes";
      config->timeout_ms = get_u32(value);
      return NULL;
    case C_SWAP:
      if (length != 4) return "the size of the swap is not 4 bytes";
      config->swap_mb = get_u32(value);
      return NULL;
    case C_INPUT: config->input = true; return NULL;
    case C_LOGIN: config->login = true; return NULL;
    case C_ENTROPY:
      if (length > sizeof config->entropy) return "there is too much entropy";
      memcpy(config->entropy, value, length);
      config->entropy_length = length;
      return NULL;
    case C_FILE_DATA: return append_file_data(config, value, length);
    case C_LABEL: return set_label(config, value, length);
    default: break;
  }
  if (memchr(value, 0, length) != NULL) return "a value contains a zero byte";
  char *text = strndup((const char *)value, length);
  if (text == NULL) return "out of memory";
  switch (key) {
    case C_HOSTNAME: return replace(&config->hostname, text);
    case C_USER: return replace(&config->user, text);
    case C_WORKDIR: return replace(&config->workdir, text);
    case C_ADDRESS: return replace(&config->address, text);
    case C_GATEWAY: return replace(&config->gateway, text);
    case C_DNS: return replace(&config->dns, text);
    case C_MAC: return replace(&config->mac, text);
    case C_HOOKS: return replace(&config->hooks, text);
    case C_TASK: return replace(&config->task, text);
    case C_ARG: return append(config->args, &config->arg_count, CONFIG_MAX_WORDS, text);
    case C_ENV: return append(config->env, &config->env_count, CONFIG_MAX_WORDS, text);
    case C_HOSTS: return append(config->hosts, &config->host_count, CONFIG_MAX_HOSTS - 1, text);
    case C_PORT: return append_port(config, text);
    case C_VOLUME: return append_volume(config, text);
    case C_FILE: return append_file(config, text);
    default: free(text); return "a record has an unknown key";
  }
}

const char *config_set(struct config *config, const uint8_t *records, size_t length) {
  while (length > 0) {
    if (length < 5) return "a record is cut short";
    uint32_t size = get_u32(records + 1);
    if (size > length - 5) return "a record is longer than its frame";
    const char *fault = set_one(config, records[0], records + 5, size);
    if (fault != NULL) return fault;
    records += 5 + size;
    length -= 5 + size;
  }
  return NULL;
}

void config_forget_files(struct config *config) {
  for (size_t i = 0; i < config->file_count; i++) {
    if (config->files[i].data != NULL) explicit_bzero(config->files[i].data, config->files[i].length);
    free(config->files[i].data), free(config->files[i].path);
  }
  memset(config->files, 0, sizeof config->files);
  config->file_count = config->file_bytes = 0;
}

void config_free(struct config *config) {
  free(config->hostname), free(config->user), free(config->workdir);
  free(config->address), free(config->gateway), free(config->dns), free(config->mac), free(config->hooks), free(config->task);
  free(config->label);
  for (size_t i = 0; i < config->arg_count; i++) free(config->args[i]);
  for (size_t i = 0; i < config->env_count; i++) free(config->env[i]);
  for (size_t i = 0; i < config->host_count; i++) free(config->hosts[i]);
  for (size_t i = 0; i < config->volume_count; i++) free(config->volumes[i]);
  config_forget_files(config);
  explicit_bzero(config->entropy, sizeof config->entropy);
  memset(config, 0, sizeof *config);
}

const char *config_env(const struct config *config, const char *name) {
  size_t length = strlen(name);
  for (size_t i = 0; i < config->env_count; i++)
    if (strncmp(config->env[i], name, length) == 0 && config->env[i][length] == '=') return config->env[i] + length + 1;
  return NULL;
}
