/* The user that the app runs as: the image's `user[:group]`, looked up in the image's /etc/passwd and /etc/group. */
#ifndef HIBERNAUT_USER_H
#define HIBERNAUT_USER_H

#include <stddef.h>
#include <sys/types.h>

#define USER_MAX_GROUPS 64

struct user {
  uid_t uid;
  gid_t gid;
  char name[256]; /* the number, when /etc/passwd does not have it */
  char home[256];
  gid_t groups[USER_MAX_GROUPS];
  size_t group_count;
};

/* Finds the user. An empty `spec` is root. `passwd` and `group` are the text of the files, "" when absent. Returns
 * NULL, or says why the user cannot be found. */
const char *user_find(struct user *user, const char *spec, const char *passwd, const char *group);

/* Returns a path as the user means it: absolute, or below the home, which "" and "~" mean, too. If it is too long for
 * `out`, the kernel will say so about what is returned. */
const char *user_path(const struct user *user, const char *path, char *out, size_t size);

#endif
