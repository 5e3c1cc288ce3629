/* The arguments: what the jail is made of, and what runs in it. README.md lists them. */
#pragma once
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#define MOST_PLACES 64
#define MOST_SOCKETS 4
#define MOST_LIMITS 8

enum place_kind { PLACE_READ, PLACE_WRITE, PLACE_DEVICE, PLACE_LINK };

/* Something that is visible in the jail, at the path that it has outside. */
struct place {
  enum place_kind kind;
  const char *path;
  const char *target; /* of a link */
  int tree;           /* the mount that was cloned, until it is attached */
};

/* A descriptor that the program finds open: a listening socket, or a tap. */
struct handle {
  int fd;
  const char *name;
};

struct limit {
  int resource;
  struct rlimit value;
};

struct options {
  bool user_namespace; /* no --uid: without root, with the user's own uid */
  uid_t uid;           /* also the gid */
  gid_t groups[4];
  size_t group_count;
  const char *root;
  const char *cgroup;
  bool own_network;
  bool end_with_parent;
  int status;
  struct place places[MOST_PLACES];
  size_t place_count;
  struct handle listeners[MOST_SOCKETS];
  size_t listener_count;
  struct handle taps[MOST_SOCKETS];
  size_t tap_count;
  struct limit limits[MOST_LIMITS];
  size_t limit_count;
  const char *preload; /* a library that the program loads first */
  int nice; /* how far behind the launcher the program comes when the CPUs are busy */
  char **program;
};

/* Reads the arguments; ends the process when they make no sense. */
void options_read(struct options *options, int count, char **arguments);
