/* The user that the app runs as: the image's `user[:group]`, looked up in the image's /etc/passwd and /etc/group. */
#ifndef HIBERNAUT_USER_H
#define HIBERNAUT_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USER_MAX_GROUPS 64
#define USER_NAME_MAX 256 /* bytes, with the zero */

struct user {
  uid_t uid;
  gid_t gid;
  bool unknown; /* there is no such user, and only the name is set */
  char name[USER_NAME_MAX]; /* the number, when /etc/passwd does not have it */
  char home[256];
  gid_t groups[USER_MAX_GROUPS];
  size_t group_count;
};

/* Finds the user. An empty `spec` is root. `passwd` and `group` are the text of the files, "" when absent. Returns
 * NULL, or says why the user cannot be found. */
const char *user_find(struct user *user, const char *spec, const char *passwd, const char *group);

/* Finds the name of a user in the text of /etc/passwd, or of a group in that of /etc/group. Without one, it is the number. */
void user_name(const char *table, unsigned id, char name[USER_NAME_MAX]);

/* Returns a path as the user means it: absolute, or below the home, which "" and "~" mean, too. If it is too long for
 * `out`, the kernel will say so about what is returned. */
const char *user_path(const struct user *user, const char *path, char *out, size_t size);

#endif
