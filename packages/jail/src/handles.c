#define _GNU_SOURCE
#include "handles.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "report.h"

#define WAITING_CONNECTIONS 8 /* the platform makes one at a time */

static void move(int from, const struct handle *handle) {
  if (from == handle->fd) return;
  if (fcntl(handle->fd, F_GETFD) >= 0) fail_usage("a descriptor is taken:", handle->name);
  if (dup2(from, handle->fd) < 0) fail("moving the descriptor of", handle->name);
  close(from);
}

/* A tap that exists. With the header of virtio, as QEMU opens it itself, so that snapshots fit both ways. */
static void open_tap(const struct handle *handle) {
  struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
  if (strlen(handle->name) >= sizeof request.ifr_name) fail_usage("not the name of a tap:", handle->name);
  strcpy(request.ifr_name, handle->name);
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (fd < 0) fail("opening", "/dev/net/tun");
  if (ioctl(fd, TUNSETIFF, &request) < 0) fail("opening the tap", handle->name);
  move(fd, handle);
}

static void listen_at(const struct handle *handle) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(handle->name) >= sizeof address.sun_path) fail_usage("too long for a socket:", handle->name);
  strcpy(address.sun_path, handle->name);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) fail("making a socket", NULL);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, WAITING_CONNECTIONS) < 0)
    fail("listening at", handle->name);
  move(fd, handle);
}

void handles_open(const struct options *options) {
  for (size_t at = 0; at < options->tap_count; at++) open_tap(&options->taps[at]);
  for (size_t at = 0; at < options->listener_count; at++) listen_at(&options->listeners[at]);
}
