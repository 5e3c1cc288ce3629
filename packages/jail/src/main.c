/*
 * Starts a program in a jail: see README.md. The platform starts every QEMU with it. This process stays, waits for the
 * program, and ends as the program has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handles.h"
#include "options.h"
#include "places.h"
#include "report.h"
#include "rights.h"
#include "syscalls.h"

#define USUAL_DESCRIPTORS 512 /* a QEMU with a dozen disks has fewer than 200 */

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) fail("opening", path);
  if (write(file, text, strlen(text)) < 0) fail("writing to", path);
  close(file);
}

/* Everything that this process starts belongs to the control group, from its first instruction. */
static void join_cgroup(const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/cgroup.procs", folder);
  write_file(path, "0");
}

/* The user keeps the uid, and gets no other. */
static void map_user(uid_t uid, gid_t gid) {
  char line[64];
  write_file("/proc/self/setgroups", "deny");
  snprintf(line, sizeof line, "%u %u 1\n", uid, uid);
  write_file("/proc/self/uid_map", line);
  snprintf(line, sizeof line, "%u %u 1\n", gid, gid);
  write_file("/proc/self/gid_map", line);
}

static void separate(const struct options *options) {
  uid_t uid = getuid();
  gid_t gid = getgid();
  int spaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  if (options->own_network) spaces |= CLONE_NEWNET;
  if (options->cgroup != NULL) spaces |= CLONE_NEWCGROUP;
  if (options->user_namespace) spaces |= CLONE_NEWUSER;
  if (unshare(spaces) < 0) fail("making the namespaces", NULL);
  if (options->user_namespace) map_user(uid, gid);
  /* Where it may not be set, as in a systemd unit with ProtectHostname, the host's name stays visible. */
  if (sethostname("jail", 4) < 0 && errno != EPERM) fail("naming the host", NULL);
}

/*
 * The kernel's table of descriptors grows by doubling. In a program with several threads, it waits for all CPUs each time
 * (`synchronize_rcu`), and QEMU would reach that right when its guest resumes. This process has one thread: it does not.
 */
static void make_room_for_descriptors(void) {
  if (dup2(STDIN_FILENO, USUAL_DESCRIPTORS - 1) >= 0) close(USUAL_DESCRIPTORS - 1); /* else a limit forbids that many */
}

/* Whoever kills the parent kills this process. After a change of users, which takes that back. */
static void end_with_parent(void) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) fail("staying with the parent", NULL);
}

/* Threads that the program starts inherit it. */
static void come_behind(int by) {
  errno = 0;
  if (nice(by) == -1 && errno != 0) fail("coming behind other programs", NULL);
}

/*
 * Where the kernel shares CPUs among sessions first (sched(7), autogroups), nice counts only within a session. Whoever is in
 * a session of its own comes behind as a whole. Not every kernel has these groups, and one may refuse a user who sets several
 * at a time: the program then has a fair share, and runs.
 */
static void session_comes_behind(int by) {
  if (getsid(0) != getpid()) return;
  int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (group < 0) return;
  dprintf(group, "%d", by);
  close(group);
}

static _Noreturn void become(struct options *options) {
  make_room_for_descriptors();
  places_take(options);
  places_enter(options);
  if (options->nice > 0) come_behind(options->nice);
  rights_drop(options);
  if (options->end_with_parent) end_with_parent();
  places_check(options);
  syscalls_refuse();
  char preload[4096];
  char *environment[] = {(char *)"PATH=/usr/bin:/bin", (char *)"LC_ALL=C", NULL, NULL};
  if (options->preload != NULL) {
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", options->preload);
    environment[2] = preload;
  }
  execvpe(options->program[0], options->program, environment);
  fail("running", options->program[0]);
}

/* Whatever the platform had open besides: its database must not come along. 3 is the program's, if it is open. */
static void close_inherited(int status) {
  unsigned first = 4;
  if (status >= 4) {
    if (status > 4) close_range(first, (unsigned)status - 1, 0);
    first = (unsigned)status + 1;
  }
  if (close_range(first, ~0U, 0) < 0) fail("closing descriptors", NULL);
}

/* What the program has open would otherwise stay open here: its sockets would still listen after its end. */
static void close_all(void) {
  close_range(0, ~0U, 0);
}

static _Noreturn void wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) _exit(125);
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

int main(int count, char **arguments) {
  static struct options options;
  pid_t parent = getppid();
  options_read(&options, count, arguments);
  if (options.status >= 0 && fcntl(options.status, F_SETFD, FD_CLOEXEC) < 0) fail_usage("--status is not open", NULL);
  close_inherited(options.status);
  if (options.nice > 0) session_comes_behind(options.nice);
  handles_open(&options);
  if (options.cgroup != NULL) join_cgroup(options.cgroup);
  separate(&options);
  pid_t child = fork();
  if (child < 0) fail("starting a process", NULL);
  if (child == 0) become(&options);
  report_pid(child);
  close_all();
  rights_drop(&options); /* waiting needs none */
  if (options.end_with_parent) {
    end_with_parent();
    if (getppid() != parent) raise(SIGKILL); /* it ended before */
  }
  wait_for(child);
}
