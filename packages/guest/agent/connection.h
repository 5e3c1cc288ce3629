/* Connections that programs in the machine make to the local API: the other kind of stream. */
#ifndef HIBERNAUT_CONNECTION_H
#define HIBERNAUT_CONNECTION_H

#include "flow.h"

/* A socket that listens at the path, or -1 and a line on the console. */
int connection_listen(const char *path);

/* Sends F_END after the program's last byte, and closes the stream when both sides ended. */
void connection_finish(struct stream *stream);

#endif
