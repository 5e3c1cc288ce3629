/* Preloaded into a program, it writes down which files the program flushes, renames and links, in order: to the file that
 * FLUSH_RECORD names, one line for each, with tabs between the words. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void record(const char *what, const char *path, const char *to) {
    char line[2 * PATH_MAX + 16];
    const char *file = getenv("FLUSH_RECORD");
    int fd = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    snprintf(line, sizeof line, "%s\t%s\t%s\n", what, path, to);
    if (write(fd, line, strlen(line)) < 0) abort();
    close(fd);
}

static void record_flush(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = '\0';
    record("flush", path, "");
}

int fsync(int fd) {
    record_flush(fd);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd) {
    record_flush(fd);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

int rename(const char *from, const char *to) {
    record("rename", from, to);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}

int link(const char *from, const char *to) {
    record("link", from, to);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link"))(from, to);
}
