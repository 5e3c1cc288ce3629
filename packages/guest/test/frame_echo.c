/* Reads frames from stdin and writes every valid one back, byte for byte, until the input ends. The argument is how
 * many bytes to read at once, at most. agent.test.ts compares the result with that of the platform's reader. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "frame.h"

static int write_all(const uint8_t *data, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t put = write(1, data + done, length - done);
    if (put <= 0) return -1;
    done += (size_t)put;
  }
  return 0;
}

int main(int count, char **words) {
  static struct frame_reader reader;
  static uint8_t out[FRAME_MAX];
  size_t most = count > 1 ? strtoul(words[1], NULL, 10) : FRAME_MAX;
  for (;;) {
    size_t room;
    uint8_t *into = frame_room(&reader, &room);
    if (room == 0) return 3; /* the agent could never read again */
    ssize_t got = read(0, into, room < most ? room : most);
    if (got < 0) return 1;
    if (got == 0) return 0;
    frame_fed(&reader, (size_t)got);
    for (struct frame frame; frame_next(&reader, &frame);)
      if (write_all(out, frame_write(out, frame.type, frame.stream, frame.payload, frame.length)) < 0) return 2;
  }
}
