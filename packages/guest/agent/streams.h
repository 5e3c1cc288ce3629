/* Many streams over the one channel to the platform: connections from programs to the local API, and commands that the
 * platform runs in the machine. Each direction has credit: STREAM_WINDOW bytes at first, and more as the receiver
 * passes them on. So no stream blocks another, and nothing is ever dropped. Streams survive a suspend: what was sent
 * before F_QUIESCED has arrived, and after F_AWAKE they continue from there.
 *
 * A connection begins with F_ACCEPT and is over when both sides have sent F_END, or with F_RESET. A command begins
 * with F_EXEC, says F_EXEC_STARTED once its program runs, and is over with F_EXEC_EXIT, after all its output, or with an
 * F_RESET from the platform, which kills its process group. A task sends F_END as soon as its output ends, which may be
 * long before it exits. The platform gives commands even numbers, starting at FIRST_COMMAND, and the agent gives
 * connections odd ones. No number is used twice.
 *
 * A command with C_LABEL is kept: when another platform takes over, which F_HELLO_REQUEST and F_AWAKE say with another
 * session, other streams end, and this one is announced with F_KEPT before F_HELLO or F_AWOKEN. All that was sent on it
 * before F_KEPT is void for the new platform: it belonged to the old one, and what is lost of it stays lost. From there
 * on credit begins again. */
#ifndef HIBERNAUT_STREAMS_H
#define HIBERNAUT_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "frame.h"

#define FIRST_COMMAND 16u    /* lower numbers belong to the app's output, or are unused */
#define STREAMS_MAX 128u     /* more commands are refused */
#define CONNECTIONS_MAX 96u  /* more connections wait in the socket's queue: the remaining streams are for commands */
#define STREAM_WINDOW 65536u /* bytes that either side may send before the other has passed some on */
#define STREAMS_FDS (1u + 3u * STREAMS_MAX)

/* Listens at the local API's path. If that fails, writes a line to the console. */
void streams_listen(const char *path);

/* Sets the configuration whose environment, user and directory commands have, unless they say otherwise. */
void streams_init(const struct config *app);

/* Handles a frame of a stream. Returns false for frames of another kind. */
bool streams_handle(const struct frame *frame);

/* Fills in what to poll for and returns the number of entries. After the poll, pass the same entries to
 * streams_work(). */
size_t streams_poll(struct pollfd *fds);
void streams_work(const struct pollfd *fds, size_t count);

/* Takes a result of waitpid(). Returns true when it was a command's. */
bool streams_reaped(pid_t pid, int status);

/* Returns the milliseconds until a command has to be killed, or -1. */
int streams_wait_ms(void);

/* Another platform has taken over, which does not know the streams: announces the kept commands and ends all others. */
void streams_reset(uint64_t session);

#endif
