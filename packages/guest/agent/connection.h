/* A connection from a program in the machine to the local API: the other kind of stream. */
#ifndef HIBERNAUT_CONNECTION_H
#define HIBERNAUT_CONNECTION_H

#include "flow.h"

/* Returns a socket that listens at the path, or writes a line to the console and returns -1. */
int connection_listen(const char *path);

/* Sends F_END after the program's last byte, and closes the stream when both sides have ended it. */
void connection_finish(struct stream *stream);

#endif
