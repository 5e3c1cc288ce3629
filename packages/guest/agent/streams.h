/* Many streams over the one channel to the platform: connections that programs made to the local
 * API, and commands that the platform runs in the machine. Each direction has credit: STREAM_WINDOW
 * bytes at first, more as the receiver passes them on, so that no stream holds up another and
 * nothing is ever dropped. Streams survive a suspend: what was sent before F_QUIESCED has arrived,
 * and what comes after F_AWAKE goes on from there.
 *
 * A connection begins with F_ACCEPT and is over when both sides sent F_END, or with F_RESET.
 * A command begins with F_EXEC and is over with F_EXEC_EXIT, after all its output, or with F_RESET
 * from the platform, which kills its process group. The platform numbers commands with even
 * numbers from 16 on, the agent connections with odd ones; no number is used twice. */
#ifndef HIBERNAUT_STREAMS_H
#define HIBERNAUT_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "frame.h"

#define STREAMS_MAX 128u     /* commands beyond are refused ... */
#define CONNECTIONS_MAX 96u  /* ... and connections wait in the socket's own queue: the rest is for commands, always */
#define STREAM_WINDOW 65536u
#define STREAMS_FDS (1u + 3u * STREAMS_MAX)

/* Listens at the local API's path; failing that, a line on the console. */
void streams_listen(const char *path);

/* Runs commands with this configuration's environment, user and folder, unless they say otherwise. */
void streams_init(const struct config *app);

/* Takes a frame of a stream; false when it is of another kind. */
bool streams_handle(const struct frame *frame);

/* Fills in what to poll for and returns how many; streams_work takes the same entries after the poll. */
size_t streams_poll(struct pollfd *fds);
void streams_work(const struct pollfd *fds, size_t count);

/* Takes the result of waitpid; true when it was a command's. */
bool streams_reaped(pid_t pid, int status);

/* Milliseconds until a command is due to be killed, -1 for none. */
int streams_wait_ms(void);

/* The platform is another one than before: it knows none of the streams. */
void streams_reset(void);

#endif
