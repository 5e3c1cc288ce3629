/* Who the app runs as: the image's `user[:group]`, looked up in the image's own
 * /etc/passwd and /etc/group. */
#ifndef HIBERNAUT_USER_H
#define HIBERNAUT_USER_H

#include <stddef.h>
#include <sys/types.h>

#define USER_MAX_GROUPS 64

struct user {
  uid_t uid;
  gid_t gid;
  char home[256];
  gid_t groups[USER_MAX_GROUPS];
  size_t group_count;
};

/* `spec` may be empty (root). The two tables are the files' whole text, "" when absent.
 * NULL, or a sentence that says why the user cannot be found. */
const char *user_find(struct user *user, const char *spec, const char *passwd, const char *group);

#endif
