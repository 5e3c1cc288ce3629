#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "outbox.h"
#include "system.h"

#define BACKLOG 128

int connection_listen(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  unlink(path); /* from an earlier start: the writable layer may have been kept */
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && chmod(path, 0666) == 0 &&
      listen(listener, BACKLOG) == 0)
    return listener;
  system_note(path, errno);
  if (listener >= 0) close(listener); /* one that does not listen would wake the loop forever */
  return -1;
}

void connection_finish(struct stream *stream) {
  if (stream->out_ended && !stream->end_sent) {
    outbox_send(F_END, stream->id, NULL, 0);
    stream->end_sent = true;
  }
  if (stream->end_sent && stream->in < 0) flow_close(stream);
}
