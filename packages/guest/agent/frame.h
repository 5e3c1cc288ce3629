/* The frames between the agent and the platform: many streams over one byte channel. The platform's side is
 * packages/guest/src/frame.ts and hello.ts; a test there reads this file and compares the two.
 *
 *   offset size field (little endian)
 *        0    4 magic   "HBN1"
 *        4    1 type    enum frame_type
 *        5    1 flags   0
 *        6    2 zero
 *        8    4 stream  0 = control, 1 = app stdout, 2 = app stderr, others: see streams.h
 *       12    4 length  payload bytes, at most FRAME_MAX_PAYLOAD
 *       16    4 crc     CRC-32 (IEEE 802.3) of bytes 4..15 and the payload
 *       20    n payload
 *
 * A reader that finds anything else skips one byte and looks for the next magic. So a peer that vanishes in the middle
 * of a frame costs that frame, and never the connection. */
#ifndef HIBERNAUT_FRAME_H
#define HIBERNAUT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of everything below and in the headers named here: raise it when a platform could not talk to this agent
 * as it talks to the one before. bundle.json and every snapshot record it. A sleeping machine keeps its agent, and the
 * platform speaks this one and some before it. */
#define PROTOCOL 6u

#define FRAME_HEADER 20u
#define FRAME_MAX_PAYLOAD 65536u
#define FRAME_MAX (FRAME_HEADER + FRAME_MAX_PAYLOAD)

enum frame_type {
  /* platform to agent */
  F_HELLO_REQUEST = 0x01, /* u64 session, u64 as AWAKE_CARRIER: answered with F_HELLO */
  F_PAD = 0x02,       /* ignored: pushes an incomplete frame out of the reader */
  F_SET = 0x10,       /* configuration records, see config.h. In a quiet machine: of its next identity */
  F_RUN = 0x11,       /* the configuration is complete: start the app */
  F_STOP = 0x12,      /* u32 signal, u32 ms until SIGKILL: end the app, then power off */
  F_QUIESCE = 0x13,   /* freeze the app, flush file systems, answer with F_QUIESCED, then send nothing until F_AWAKE,
                       * F_HELLO_REQUEST or F_STOP comes, or QUIET_MS of the machine's own time have passed */
  F_AWAKE = 0x14,     /* see enum awake_offset: answered with F_AWOKEN */
  F_PING = 0x15,      /* answered with F_PONG and the same payload */
  F_BECOME = 0x16,    /* in a quiet machine, after F_SET: be the machine of that configuration from now on. Answered with
                       * F_BECAME. A machine with the memory of another one stays frozen until this has worked */
  F_EXEC = 0x20,      /* records as in F_SET: start a command on this new stream, see streams.h */
  F_RESIZE = 0x21,    /* u16 rows, u16 columns: the size of a command's terminal */
  F_SIGNAL = 0x22,    /* u32 signal for a command's process group */
  /* both ways, for one stream: see streams.h */
  F_DATA = 0x40,   /* bytes; for a command, its input or its standard output */
  F_END = 0x41,    /* no more F_DATA follows in this direction */
  F_CREDIT = 0x42, /* u32: this many more bytes may be sent in the other direction */
  F_RESET = 0x43,  /* text: the stream is over, immediately */
  /* agent to platform */
  F_HELLO = 0x81,        /* see enum hello_offset */
  F_STARTED = 0x82,      /* u32 pid */
  F_START_FAILED = 0x83, /* u32 errno, text */
  F_READY = 0x84,        /* the app listens on every port of the configuration, and not on loopback only */
  F_EXIT = 0x85,         /* see enum exit_offset */
  F_LOG = 0x86,          /* output of the app */
  F_QUIESCED = 0x87,     /* u64 wall clock of the machine in ns */
  F_AWOKEN = 0x88,       /* u64 wall clock of the machine in ns, u8 whether the image has hooks to run after a resume */
  F_PONG = 0x89,
  F_ERROR = 0x8a,        /* text: what was refused, and why */
  F_ACCEPT = 0x8b,       /* a program connected to the local API: a new stream */
  F_DATA_ERR = 0x8c,     /* bytes of a command's standard error */
  F_EXEC_EXIT = 0x8d,    /* u32 code, u32 signal, u8 enum command_end of flow.h, text */
  F_PRINTED = 0x8e,      /* u64 bytes that the app has printed so far: those that did not arrive as F_LOG are lost. Sent
                          * after a loss, as soon as there is room again, and before F_HELLO and F_AWOKEN */
  F_LISTENING = 0x8f,    /* where programs listen, see listening.h. Sent whenever it changes until F_READY, and after
                          * F_HELLO and F_AWOKEN */
  F_BECAME = 0x90,       /* u32 errno, u8 whether the image has hooks to run after a fork, text: why not; 0 and empty when
                          * it worked, or the machine was that one already */
  F_EXEC_STARTED = 0x91, /* u32 pid: the command's program runs */
  F_KEPT = 0x92,         /* see enum kept_offset: a command that an earlier platform started and that continues */
};

/* Where the fields of payloads are, in bytes. */
enum hello_offset {
  HELLO_PROTOCOL = 0, /* u32 */
  HELLO_PHASE = 4,    /* u8 enum phase of main.c */
  HELLO_READY = 5,    /* u8 */
  HELLO_PID = 8,      /* u32, of the app */
  HELLO_EXIT = 12,    /* as F_EXIT */
  HELLO_DROPPED = 24, /* u32 frames dropped */
  HELLO_VERSION = 28, /* text, to the end */
};
enum exit_offset {
  EXIT_CODE = 0,   /* u32 */
  EXIT_SIGNAL = 4, /* u32, or 0 */
  EXIT_OOM = 8,    /* u8: killed because memory ran out */
  EXIT_BYTES = 9,
};
enum awake_offset {
  AWAKE_CLOCK = 0,    /* u64 wall clock in ns */
  AWAKE_SESSION = 8,  /* u64 */
  AWAKE_ENTROPY = 16, /* 64 bytes of randomness */
  AWAKE_STOOD = 80,   /* u64, if known: by how many ns the machine's clock fell behind in its sleep */
  AWAKE_CARRIER = 88, /* u64: what carries connections between the machine and apps of its network. When it is another one
                       * than before, those that are open have ended in the machine's sleep */
  AWAKE_APPS = 96,    /* u32 base, u32 mask: the addresses of these apps */
  AWAKE_INWARD = 104, /* u8: those from the gateway to ports of services are carried by it, too */
};
enum kept_offset {
  KEPT_PID = 0,     /* u32 */
  KEPT_FLAGS = 4,   /* u8, sum of KEPT_ON_TERMINAL and KEPT_HAS_INPUT */
  KEPT_WAITING = 5, /* u32 bytes of input that wait for the command: by so much less than a window it may be sent now */
  KEPT_SESSION = 9, /* u64: for the platform with this session. Another one finds it still on its way, and ignores it */
  KEPT_LABEL = 17,  /* the rest: as in C_LABEL */
};
#define KEPT_ON_TERMINAL 1u
#define KEPT_HAS_INPUT 2u /* F_END has not come yet */

struct frame {
  uint8_t type;
  uint32_t stream;
  uint32_t length;
  const uint8_t *payload; /* inside the reader, valid until the next frame_room() */
};

struct frame_reader {
  size_t begin, end; /* the part of buffer that was not looked at yet */
  uint64_t skipped; /* bytes that did not belong to a valid frame */
  uint8_t buffer[2 * FRAME_MAX];
};

uint32_t frame_crc(uint32_t crc, const uint8_t *data, size_t length);

/* Writes a frame to out (FRAME_HEADER + length bytes) and returns its size. */
size_t frame_write(uint8_t *out, uint8_t type, uint32_t stream, const void *payload, uint32_t length);

/* Makes room for more input: read at most *room bytes to the returned address, then call frame_fed(). */
uint8_t *frame_room(struct frame_reader *reader, size_t *room);
void frame_fed(struct frame_reader *reader, size_t bytes);

/* Takes the next valid frame. Returns false when that needs more input. */
bool frame_next(struct frame_reader *reader, struct frame *frame);

uint16_t get_u16(const uint8_t *at);
uint32_t get_u32(const uint8_t *at);
uint64_t get_u64(const uint8_t *at);
void put_u32(uint8_t *at, uint32_t value);
void put_u64(uint8_t *at, uint64_t value);

#endif
