/* The framed protocol between the agent and the platform: many streams over one
 * byte channel. The TypeScript twin is packages/platform/src/guest/frame.ts.
 *
 *   offset size field (little endian)
 *        0    4 magic   "HBN1"
 *        4    1 type    enum frame_type
 *        5    1 flags   0
 *        6    2 zero
 *        8    4 stream  0 = control, 1 = app stdout, 2 = app stderr, above: see streams.h
 *       12    4 length  payload bytes, at most FRAME_MAX_PAYLOAD
 *       16    4 crc     CRC-32 (IEEE 802.3) of bytes 4..15 and the payload
 *       20    n payload
 *
 * A reader that meets anything else drops one byte and looks for the next magic, so a
 * frame cut short by a vanished peer costs that frame and never the connection. */
#ifndef HIBERNAUT_FRAME_H
#define HIBERNAUT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER 20u
#define FRAME_MAX_PAYLOAD 65536u
#define FRAME_MAX (FRAME_HEADER + FRAME_MAX_PAYLOAD)

enum frame_type {
  /* platform to agent */
  F_HELLO_REQ = 0x01, /* u64 session; answer with F_HELLO */
  F_PAD = 0x02,       /* ignored: pushes a cut frame out of the reader */
  F_SET = 0x10,       /* configuration records, see config.h */
  F_RUN = 0x11,       /* configuration complete: start the app */
  F_STOP = 0x12,      /* u32 signal, u32 grace in ms: end the app, then power off */
  F_QUIESCE = 0x13,   /* hold the app still, flush file systems, answer F_QUIESCED, then send nothing until F_AWAKE,
                       * F_HELLO_REQ or F_STOP, or until QUIET_MS of the machine's own time have passed */
  F_AWAKE = 0x14,     /* u64 wall clock in ns, u64 session, 64 bytes of randomness and, where it is known, u64 ns by which the
                       * machine's clock fell behind while it stood still; answer F_AWOKEN */
  F_PING = 0x15,      /* answered with F_PONG and the same payload */
  F_EXEC = 0x20,      /* records as of F_SET: start a command on this new stream, see streams.h */
  F_RESIZE = 0x21,    /* u16 rows, u16 columns of a stream's terminal */
  F_SIGNAL = 0x22,    /* u32 signal for a stream's process group */
  /* both ways, of a stream: see streams.h */
  F_DATA = 0x40,   /* bytes; of a command its input or its standard output */
  F_END = 0x41,    /* no more F_DATA will follow this way */
  F_CREDIT = 0x42, /* u32 more bytes that may be sent the other way */
  F_RESET = 0x43,  /* text: the stream is over, at once */
  /* agent to platform */
  F_HELLO = 0x81,        /* see hello() in main.c */
  F_STARTED = 0x82,      /* u32 pid */
  F_START_FAILED = 0x83, /* u32 errno, text */
  F_READY = 0x84,        /* every port asked for is listening, and not for the machine itself alone */
  F_EXIT = 0x85,         /* u32 code, u32 signal, u8 killed for lack of memory */
  F_LOG = 0x86,          /* output of the app */
  F_QUIESCED = 0x87,      /* u64 the machine's wall clock in ns */
  F_AWOKEN = 0x88, /* u64 wall clock of the guest in ns, u8 whether hooks are to be run after a resume */
  F_PONG = 0x89,
  F_ERROR = 0x8a, /* text: what was refused and why */
  F_ACCEPT = 0x8b,    /* a program connected to the local API: a new stream */
  F_DATA_ERR = 0x8c,  /* bytes of a command's standard error */
  F_EXEC_EXIT = 0x8d, /* u32 code, u32 signal, u8 0 = ended, 1 = killed at its time-out, 2 = never started; text */
  F_PRINTED = 0x8e,   /* u64 bytes that the app has printed up to here: what did not come as F_LOG is lost. Sent after a
                       * loss, as soon as there is room again, and before F_HELLO and F_AWOKEN */
  F_LISTENING = 0x8f, /* where programs listen, see listening.h: each time that it changes until F_READY, and after F_HELLO
                       * and F_AWOKEN */
};

struct frame {
  uint8_t type;
  uint32_t stream;
  uint32_t length;
  const uint8_t *payload; /* inside the reader, valid until the next frame_room */
};

struct frame_reader {
  size_t begin, end; /* the bytes of buffer that are still to be looked at */
  uint64_t skipped; /* bytes that belonged to no valid frame */
  uint8_t buffer[2 * FRAME_MAX];
};

uint32_t frame_crc(uint32_t crc, const uint8_t *data, size_t length);

/* Writes a whole frame to out (FRAME_HEADER + length bytes) and returns its size. */
size_t frame_write(uint8_t *out, uint8_t type, uint32_t stream, const void *payload, uint32_t length);

/* Room for more input: read at most *room bytes to the returned address, then call frame_fed. */
uint8_t *frame_room(struct frame_reader *reader, size_t *room);
void frame_fed(struct frame_reader *reader, size_t bytes);

/* The next whole valid frame, or false when more input is needed. */
bool frame_next(struct frame_reader *reader, struct frame *frame);

uint16_t get_u16(const uint8_t *at);
uint32_t get_u32(const uint8_t *at);
uint64_t get_u64(const uint8_t *at);
void put_u32(uint8_t *at, uint32_t value);
void put_u64(uint8_t *at, uint64_t value);

#endif
