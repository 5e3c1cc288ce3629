#include "frame.h"

#include <string.h>

static const uint8_t MAGIC[4] = {'H', 'B', 'N', '1'};

uint16_t get_u16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

uint32_t get_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t get_u64(const uint8_t *at) { return (uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32; }

void put_u32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

void put_u64(uint8_t *at, uint64_t value) {
  put_u32(at, (uint32_t)value);
  put_u32(at + 4, (uint32_t)(value >> 32));
}

uint32_t frame_crc(uint32_t crc, const uint8_t *data, size_t length) {
  static uint32_t table[256];
  if (table[1] == 0) {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ ((value & 1) ? 0xedb88320u : 0);
      table[i] = value;
    }
  }
  crc = ~crc;
  for (size_t i = 0; i < length; i++) crc = (crc >> 8) ^ table[(crc ^ data[i]) & 0xff];
  return ~crc;
}

size_t frame_write(uint8_t *out, uint8_t type, uint32_t stream, const void *payload, uint32_t length) {
  memcpy(out, MAGIC, 4);
  out[4] = type;
  out[5] = out[6] = out[7] = 0;
  put_u32(out + 8, stream);
  put_u32(out + 12, length);
  if (length > 0) memmove(out + FRAME_HEADER, payload, length);
  put_u32(out + 16, frame_crc(frame_crc(0, out + 4, 12), out + FRAME_HEADER, length));
  return FRAME_HEADER + length;
}

uint8_t *frame_room(struct frame_reader *reader, size_t *room) {
  reader->end -= reader->begin;
  memmove(reader->buffer, reader->buffer + reader->begin, reader->end);
  reader->begin = 0;
  *room = sizeof reader->buffer - reader->end;
  return reader->buffer + reader->end;
}

void frame_fed(struct frame_reader *reader, size_t bytes) { reader->end += bytes; }

/* Moves to the next place where a frame could begin, at least `least` bytes ahead. */
static void skip_garbage(struct frame_reader *reader, size_t least) {
  size_t at = reader->begin + least;
  for (; at < reader->end; at++) {
    size_t visible = reader->end - at < sizeof MAGIC ? reader->end - at : sizeof MAGIC;
    if (memcmp(reader->buffer + at, MAGIC, visible) == 0) break;
  }
  reader->skipped += at - reader->begin;
  reader->begin = at;
}

bool frame_next(struct frame_reader *reader, struct frame *frame) {
  for (skip_garbage(reader, 0); reader->end - reader->begin >= FRAME_HEADER; skip_garbage(reader, 1)) {
    const uint8_t *head = reader->buffer + reader->begin;
    uint32_t length = get_u32(head + 12);
    if (head[5] != 0 || head[6] != 0 || head[7] != 0 || length > FRAME_MAX_PAYLOAD) continue;
    if (reader->end - reader->begin < FRAME_HEADER + length) return false;
    if (frame_crc(frame_crc(0, head + 4, 12), head + FRAME_HEADER, length) != get_u32(head + 16)) continue;
    *frame = (struct frame){.type = head[4], .stream = get_u32(head + 8), .length = length, .payload = head + FRAME_HEADER};
    reader->begin += FRAME_HEADER + length;
    return true;
  }
  return false;
}
