#define _GNU_SOURCE
#include "rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"

/* Without these, no program that is run from here on can have a capability, whoever owns it. */
static void drop_bounding_set(void) {
  for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) fail("giving up capabilities", NULL);
}

static void drop_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
  if (syscall(SYS_capset, &header, none) < 0) fail("giving up capabilities", NULL);
}

/* A limit is never raised: the platform may have been started with a lower one, and without the right to exceed it. */
static void set_limit(const struct limit *limit) {
  struct rlimit now;
  if (getrlimit(limit->resource, &now) < 0) fail("reading the limits", NULL);
  rlim_t most = limit->value.rlim_max < now.rlim_max ? limit->value.rlim_max : now.rlim_max;
  struct rlimit next = {.rlim_cur = most, .rlim_max = most};
  if (setrlimit(limit->resource, &next) < 0) fail("setting the limits", NULL);
}

static void become_user(const struct options *options) {
  gid_t gid = (gid_t)options->uid;
  if (setgroups(options->group_count, options->groups) < 0) fail("setting the groups", NULL);
  if (setresgid(gid, gid, gid) < 0) fail("becoming the group of the jail", NULL);
  if (setresuid(options->uid, options->uid, options->uid) < 0) fail("becoming the user of the jail", NULL);
}

void rights_drop(const struct options *options) {
  umask(0077);
  for (size_t at = 0; at < options->limit_count; at++) set_limit(&options->limits[at]);
  drop_bounding_set();
  if (!options->user_namespace) become_user(options);
  drop_capabilities();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("giving up new privileges", NULL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}
