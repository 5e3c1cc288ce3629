#define _GNU_SOURCE
#include "processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sockets.h"

#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD in a process's flags */
#define FILES_LOOKED_AT 100000u   /* open files of all processes together: a program may have half a million */
#define STAT_BYTES 2048u

static struct listener sockets[SOCKETS_MAX];
static size_t socket_count;
static size_t files_left = FILES_LOOKED_AT;

struct process {
  char name[64];
  unsigned flags;
  unsigned long user_ticks, system_ticks;
  unsigned long long start_ticks;
  long pages;
};

static unsigned long long boot_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

static unsigned long long ticks_ms(unsigned long long ticks) {
  static long per_second;
  if (per_second == 0) per_second = sysconf(_SC_CLK_TCK);
  return ticks * 1000 / (unsigned long long)(per_second > 0 ? per_second : 100);
}

/* Reads the beginning of a file of a process. Returns its length, or -1. */
static ssize_t read_part(const char *pid, const char *name, char *out, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t got = read(fd, out, size - 1);
  close(fd);
  out[got > 0 ? got : 0] = '\0';
  return got;
}

/* A name may have any characters, so that its end is the last parenthesis. */
static bool read_process(const char *pid, struct process *out) {
  char stat[STAT_BYTES];
  if (read_part(pid, "stat", stat, sizeof stat) <= 0) return false;
  const char *begin = strchr(stat, '('), *end = strrchr(stat, ')');
  if (begin == NULL || end == NULL || end < begin) return false;
  snprintf(out->name, sizeof out->name, "%.*s", (int)(end - begin - 1), begin + 1);
  return sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %llu %*u %ld", &out->flags,
                &out->user_ticks, &out->system_ticks, &out->start_ticks, &out->pages) == 5;
}

static void print_command(const char *pid, const char *name) {
  static char words[PROCESS_TEXT_MAX];
  ssize_t length = read_part(pid, "cmdline", words, sizeof words);
  while (length > 0 && words[length - 1] == '\0') length--;
  if (length <= 0) {
    printf("[%s]%c", name, '\0');
    return;
  }
  for (ssize_t i = 0; i < length; i++) if (words[i] == '\0') words[i] = ' ';
  fwrite(words, 1, (size_t)length, stdout);
  putchar('\0');
}

static void print_directory(const char *pid) {
  char path[64], directory[PROCESS_TEXT_MAX];
  snprintf(path, sizeof path, "/proc/%.20s/cwd", pid);
  ssize_t length = readlink(path, directory, sizeof directory - 1);
  directory[length > 0 ? length : 0] = '\0';
  printf("%s%c", directory, '\0');
}

static void print_sockets(const char *pid) {
  const struct listener *found[PROCESS_SOCKETS_MAX];
  char path[64], target[64];
  size_t count = 0;
  snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
  DIR *files = socket_count > 0 ? opendir(path) : NULL;
  for (struct dirent *entry; files != NULL && count < PROCESS_SOCKETS_MAX && files_left > 0 && (entry = readdir(files)) != NULL;) {
    unsigned long inode;
    ssize_t length = readlinkat(dirfd(files), entry->d_name, target, sizeof target - 1);
    if (length <= 0) continue;
    files_left--;
    target[length] = '\0';
    if (sscanf(target, "socket:[%lu]", &inode) != 1) continue;
    const struct listener *socket = sockets_find(sockets, socket_count, inode);
    if (socket != NULL) found[count++] = socket;
  }
  if (files != NULL) closedir(files);
  printf("%zu%c", count, '\0');
  for (size_t i = 0; i < count; i++) printf("%s%c%s%c", found[i]->proto, '\0', found[i]->address, '\0');
}

static bool print_process(const char *pid) {
  struct process process;
  if (!read_process(pid, &process) || (process.flags & KERNEL_THREAD) != 0) return false; /* it may have ended meanwhile */
  unsigned long long started = ticks_ms(process.start_ticks), now = boot_ms();
  printf("%s%c%llu%c%llu%c", pid, '\0', started, '\0', now > started ? now - started : 0, '\0');
  printf("%llu%c", ticks_ms((unsigned long long)process.user_ticks + process.system_ticks), '\0');
  printf("%llu%c", (unsigned long long)(process.pages > 0 ? process.pages : 0) * (unsigned long long)sysconf(_SC_PAGESIZE), '\0');
  print_command(pid, process.name);
  print_directory(pid);
  print_sockets(pid);
  return true;
}

int processes_print(void) {
  DIR *all = opendir("/proc");
  if (all == NULL) {
    dprintf(2, "/proc cannot be read: %s\n", strerror(errno));
    return 1;
  }
  socket_count = sockets_now(sockets, SOCKETS_MAX);
  size_t count = 0;
  for (struct dirent *entry; count < PROCESSES_MAX && (entry = readdir(all)) != NULL;) {
    const char *pid = entry->d_name;
    /* Not this process, which is only there to answer. */
    if (pid[strspn(pid, "0123456789")] != '\0' || atoi(pid) == getpid()) continue;
    if (print_process(pid)) count++;
  }
  closedir(all);
  return fflush(stdout) == 0 ? 0 : 1;
}
