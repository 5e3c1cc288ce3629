/*
 * An app that takes all it can get of what it shares with others, without end.
 *
 *   hostile print                   short lines, as fast as they go
 *   hostile fork                    processes, each of which makes more
 *   hostile fill FILE               a file that grows; when the disk is full, it begins again
 *   hostile connect ADDRESS PORT    connections that say nothing, kept open
 *   hostile half ADDRESS PORT       connections with the beginning of a request, kept open
 *   hostile dns ADDRESS             questions to a name server, answers unread
 *   hostile flows ADDRESS           datagrams to one port of the host after the other
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define DNS_PORT 53
/* What one process may have open; the kernel of a small machine has memory for about as many. */
#define MOST_OPEN 20000

static struct sockaddr_in address_of(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) exit(64);
    return address;
}

static void print_lines(void) {
    static char lines[4096];
    for (size_t i = 0; i < sizeof lines; i += 2) memcpy(lines + i, "y\n", 2);
    for (;;)
        if (write(STDOUT_FILENO, lines, sizeof lines) < 0 && errno != EAGAIN) exit(1);
}

static void fork_on(void) {
    signal(SIGCHLD, SIG_IGN);
    for (;;)
        if (fork() < 0) usleep(1000);
}

static void fill(const char *file) {
    static char block[1 << 16];
    memset(block, 0x5a, sizeof block);
    for (;;) {
        int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0) exit(1);
        while (write(fd, block, sizeof block) > 0) {
        }
        close(fd);
    }
}

/* Opens connections until none can be had, sends `first` on each, and opens more as soon as some are cut. */
static void connect_on(const struct sockaddr_in *to, const char *first) {
    struct rlimit most = {MOST_OPEN, MOST_OPEN};
    setrlimit(RLIMIT_NOFILE, &most);
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof *to) == 0) {
            if (first[0] != 0) (void)!send(fd, first, strlen(first), MSG_NOSIGNAL);
            continue;
        }
        if (fd >= 0) close(fd);
        usleep(1000);
    }
}

static void ask_names(const struct sockaddr_in *server) {
    /* One question for the address of "a.example"; the number differs each time. */
    unsigned char question[] = "\0\0\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1";
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (unsigned number = 0;; number += 1) {
        question[0] = (unsigned char)(number >> 8);
        question[1] = (unsigned char)number;
        (void)!sendto(fd, question, sizeof question - 1, MSG_DONTWAIT, (const struct sockaddr *)server, sizeof *server);
    }
}

static void make_flows(struct sockaddr_in to) {
    for (unsigned port = 1;; port = port % 65535 + 1) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        to.sin_port = htons((uint16_t)port);
        (void)!sendto(fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&to, sizeof to);
        close(fd);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *where = argc > 2 ? argv[2] : "";
    int port = argc > 3 ? atoi(argv[3]) : 0;
    struct sockaddr_in to = {0};
    if (strcmp(what, "print") == 0) print_lines();
    if (strcmp(what, "fork") == 0) fork_on();
    if (strcmp(what, "fill") == 0) fill(where);
    to = address_of(where, strcmp(what, "dns") == 0 ? DNS_PORT : port);
    if (strcmp(what, "connect") == 0) connect_on(&to, "");
    if (strcmp(what, "half") == 0) connect_on(&to, "POST / HTTP/1.1\r\nHost: ");
    if (strcmp(what, "dns") == 0) ask_names(&to);
    if (strcmp(what, "flows") == 0) make_flows(to);
    return 64;
}
