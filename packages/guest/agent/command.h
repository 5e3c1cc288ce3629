/* A command that the platform runs in the machine: one kind of stream. */
#ifndef HIBERNAUT_COMMAND_H
#define HIBERNAUT_COMMAND_H

#include <stdint.h>

#include "config.h"
#include "flow.h"

/* Starts the command of an F_EXEC on this new stream. When the command cannot be started, the stream ends as a command
 * that exited does. The command has the app's environment, user and directory, unless it says otherwise. */
void command_start(struct stream *stream, const struct frame *exec, const struct config *app);

/* Sends F_EXEC_STARTED if that has not been done yet. */
void command_tell_started(struct stream *stream);

/* Prepares the command for a platform that does not know it, and returns whether it continues there. */
bool command_keep(struct stream *stream);

/* Sends F_KEPT if that has to be done and there is room. */
void command_tell_kept(struct stream *stream, uint64_t session);

/* Handle F_RESIZE and F_SIGNAL. */
void command_resize(struct stream *stream, const struct frame *frame);
void command_signal(struct stream *stream, const struct frame *frame);

/* Returns how many milliseconds the command has left, UINT64_MAX without a limit. */
uint64_t command_time_left(const struct stream *stream, uint64_t now);

/* Kill the command and its process group: immediately, or when its time is up. */
void command_kill(const struct stream *stream);
void command_kill_when_due(struct stream *stream, uint64_t now);

/* The command ended, with this status of waitpid(). */
void command_exited(struct stream *stream, int status);

/* Once the command has exited: sends the rest of its output, then F_EXEC_EXIT, and closes the stream. */
void command_finish(struct stream *stream);

#endif
