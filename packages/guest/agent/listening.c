#include "listening.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "system.h"

#define LISTEN 0x0au /* TCP_LISTEN, as in /proc/net/tcp */
#define TABLE_BYTES 131072u

/* The kernel writes every four bytes of an address as one number in its own byte order. */
static bool read_address(const char *text, uint8_t family, uint8_t *out) {
  size_t words = family == 4 ? 1 : 4;
  if (strlen(text) != words * 8) return false;
  for (size_t i = 0; i < words; i++) {
    char digits[9] = {0};
    memcpy(digits, text + i * 8, 8);
    uint32_t word = (uint32_t)strtoul(digits, NULL, 16);
    memcpy(out + i * 4, &word, 4);
  }
  return true;
}

size_t listeners_read(const char *table, uint8_t family, struct listener *out, size_t most) {
  char local[140];
  unsigned state;
  size_t count = 0;
  for (const char *line = strchr(table, '\n'); line != NULL && line[1] != '\0' && count < most; line = strchr(line + 1, '\n')) {
    if (sscanf(line + 1, " %*[^:]: %139s %*s %x", local, &state) != 2 || state != LISTEN) continue;
    char *colon = strrchr(local, ':');
    if (colon == NULL) continue;
    *colon = '\0';
    struct listener found = {.family = family, .port = (uint16_t)strtoul(colon + 1, NULL, 16)};
    if (read_address(local, family, found.address)) out[count++] = found;
  }
  return count;
}

bool listener_is_loopback(const struct listener *listener) {
  static const uint8_t one[16] = {[15] = 1}, mapped[12] = {[10] = 0xff, [11] = 0xff};
  const uint8_t *address = listener->address;
  if (listener->family == 4) return address[0] == 127;
  return memcmp(address, one, 16) == 0 || (memcmp(address, mapped, 12) == 0 && address[12] == 127);
}

bool listeners_reach(const struct listener *listeners, size_t count, uint16_t port) {
  for (size_t i = 0; i < count; i++)
    if (listeners[i].port == port && !listener_is_loopback(&listeners[i])) return true;
  return false;
}

size_t listeners_now(struct listener *out, size_t most) {
  static char table[TABLE_BYTES];
  size_t count = listeners_read(system_read_file("/proc/net/tcp", table, sizeof table), 4, out, most);
  return count + listeners_read(system_read_file("/proc/net/tcp6", table, sizeof table), 6, out + count, most - count);
}

uint32_t listeners_write(const struct listener *listeners, size_t count, uint8_t *out) {
  for (size_t i = 0; i < count; i++, out += LISTENER_BYTES) {
    out[0] = listeners[i].family;
    out[1] = (uint8_t)(listeners[i].port & 0xff);
    out[2] = (uint8_t)(listeners[i].port >> 8);
    memcpy(out + 3, listeners[i].address, 16);
  }
  return (uint32_t)(count * LISTENER_BYTES);
}
