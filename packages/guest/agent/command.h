/* A command that the platform runs in the machine: one kind of stream. */
#ifndef HIBERNAUT_COMMAND_H
#define HIBERNAUT_COMMAND_H

#include <stdint.h>

#include "config.h"
#include "flow.h"

/* Starts what the F_EXEC asks for on this fresh stream. When it cannot be started, the stream ends as a command that
 * exited does. The app's environment, user and folder hold unless the command says otherwise. */
void command_start(struct stream *stream, const struct frame *exec, const struct config *app);

/* F_RESIZE and F_SIGNAL. */
void command_resize(struct stream *stream, const struct frame *frame);
void command_signal(struct stream *stream, const struct frame *frame);

/* Milliseconds until it is to be killed, UINT64_MAX for never. */
uint64_t command_time_left(const struct stream *stream, uint64_t now);

/* Kills it with its process group: at once, or when its time is over. */
void command_kill(const struct stream *stream);
void command_kill_when_due(struct stream *stream, uint64_t now);

/* It ended, with this status of waitpid. */
void command_exited(struct stream *stream, int status);

/* Once it exited: sends the rest of its output and then F_EXEC_EXIT, and closes the stream. */
void command_finish(struct stream *stream);

#endif
