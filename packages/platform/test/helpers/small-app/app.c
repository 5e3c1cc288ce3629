/*
 * The app that most tests on QEMU run. It starts in milliseconds; Node takes seconds under emulation.
 *
 *   app [--port PORT] [--host ADDRESS] [--anywhere-after MS] [--text TEXT | --label TEXT] [--health STATUS] [--notes FILE]
 *   app [--port PORT] --lines NAME
 *   app [--say TEXT] [--after MS] (--fail CODE | --signal NUMBER)
 *   app --count FILE      prints how many lines a file has
 *
 * GET /          what this process is: nonce, requests so far, pid, uptime, the time; or the text; or the label and the
 *                requests so far
 * GET /health    "fine", or "no database" with STATUS
 * GET /wait/MS   "began " at once, and "ended" after MS
 * GET /env       its environment, as JSON
 * GET /head      the head of this request, as it arrived
 * GET /notes     the contents of FILE, /data/notes by default
 * GET /fill/MB   takes this much more memory and writes a pattern to it
 * GET /sum       how many words of that memory do not have the pattern any more, and how much swap is in use, as JSON
 * POST /         appends the body as a line; POST /sure also flushes it to the disk
 * GET, POST /layer  the same with a file in the writable layer, without a flush
 * any /replay/X  Fly-Replay: X, for a request that no other app has sent on
 * GET /disk      size, owner, mount and entries of /data, as JSON
 *
 * With --lines, it does not speak HTTP: it answers each line with NAME, if that is not empty, the number of lines that
 * came over all connections, and the line. A connection that says no more gets "bye".
 *
 * Each connection has a thread and stays open. SIGTERM ends the app with code 0.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TEXT_SIZE (1 << 20)
#define HEAD_SIZE 8192
#define STACK_SIZE (64 << 10)
/* Every image of the small app has /tmp, and no test mounts anything there. */
#define LAYER_NOTES "/tmp/layer"

static char nonce[33];
static atomic_long count;
static int health = 200;
static const char *answer, *label, *lines, *notes = "/data/notes";

static long long now_ms(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (long long)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static long long started;

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
    while (nanosleep(&time, &time) != 0) {
    }
}

static void finish(int signal) {
    (void)signal;
    _exit(0);
}

static int send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = write(fd, bytes, length);
        if (sent <= 0) return -1;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static int send_status(int fd, int status, size_t length) {
    char head[128];
    int size = snprintf(head, sizeof head, "HTTP/1.1 %d It is\r\nContent-Length: %zu\r\n\r\n", status, length);
    return send_all(fd, head, (size_t)size);
}

static int send_head(int fd, size_t length) {
    return send_status(fd, 200, length);
}

static int send_text(int fd, const char *text) {
    size_t length = strlen(text);
    return send_head(fd, length) || send_all(fd, text, length);
}

static int send_counter(int fd) {
    char text[512], when[64];
    if (label != NULL) {
        snprintf(text, sizeof text, "%s %ld", label, atomic_fetch_add(&count, 1) + 1);
        return send_text(fd, text);
    }
    long long now = now_ms(CLOCK_REALTIME);
    time_t seconds = now / 1000;
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
    snprintf(text, sizeof text,
             "{\"nonce\":\"%s\",\"count\":%ld,\"pid\":%d,\"uptime_ms\":%lld,\"now\":\"%s.%03lldZ\"}\n", nonce,
             atomic_fetch_add(&count, 1) + 1, getpid(), now_ms(CLOCK_MONOTONIC) - started, when, now % 1000);
    return send_text(fd, text);
}

static int send_health(int fd) {
    const char *text = health == 200 ? "fine" : "no database";
    return send_status(fd, health, strlen(text)) || send_all(fd, text, strlen(text));
}

static int send_wait(int fd, long ms) {
    if (send_head(fd, strlen("began ended")) || send_all(fd, "began ", 6)) return -1;
    sleep_ms(ms);
    return send_all(fd, "ended", 5);
}

/* Quotes and backslashes are escaped; no test has other characters that need it. */
static void put_json(FILE *out, const char *text, size_t length) {
    putc('"', out);
    for (size_t i = 0; i < length; i += 1) {
        if (text[i] == '"' || text[i] == '\\') putc('\\', out);
        putc(text[i], out);
    }
    putc('"', out);
}

static int send_environment(int fd) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return -1;
    for (char **variable = environ; *variable != NULL; variable += 1) {
        size_t name = strcspn(*variable, "=");
        fputs(variable == environ ? "{" : ",", out);
        put_json(out, *variable, name);
        putc(':', out);
        put_json(out, *variable + name + 1, strlen(*variable + name + 1));
    }
    putc('}', out);
    fclose(out);
    int failed = send_text(fd, text);
    free(text);
    return failed;
}

static int send_notes(int fd, const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0) return send_text(fd, "");
    char *text = calloc(1, TEXT_SIZE);
    ssize_t length = text == NULL ? -1 : read(file, text, TEXT_SIZE - 1);
    close(file);
    int failed = length < 0 || send_text(fd, text);
    free(text);
    return failed;
}

/* One line per body, so that a line cut by a kill is recognizable. */
static int note(int fd, const char *path, char *body, size_t length, int sure) {
    body[length] = '\n';
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0) return -1;
    int failed = send_all(file, body, length + 1) || (sure && fsync(file) != 0);
    close(file);
    return failed ? -1 : send_text(fd, "kept");
}

static void mount_of_data(char *line, size_t size) {
    FILE *mounts = fopen("/proc/mounts", "r");
    while (mounts != NULL && fgets(line, (int)size, mounts) != NULL && strstr(line, " /data ") == NULL) line[0] = 0;
    if (mounts != NULL) fclose(mounts);
    line[strcspn(line, "\n")] = 0;
}

static int send_disk(int fd) {
    char text[4096], mount[1024] = "", entries[1024] = "";
    struct statfs disk;
    struct stat owner;
    if (statfs("/data", &disk) != 0 || stat("/data", &owner) != 0) return send_text(fd, "{}");
    mount_of_data(mount, sizeof mount);
    DIR *directory = opendir("/data");
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        size_t used = strlen(entries);
        snprintf(entries + used, sizeof entries - used, "%s\"%s\"", used > 0 ? "," : "", entry->d_name);
    }
    if (directory != NULL) closedir(directory);
    snprintf(text, sizeof text, "{\"bytes\":%lld,\"uid\":%u,\"gid\":%u,\"mount\":\"%s\",\"entries\":[%s]}",
             (long long)disk.f_blocks * disk.f_bsize, owner.st_uid, owner.st_gid, mount, entries);
    return send_text(fd, text);
}

static unsigned long long *pattern;
static size_t pattern_words;

/* No two words are the same, so that a page in the wrong place is found, too. */
static unsigned long long pattern_at(size_t index) {
    return index * 0x9e3779b97f4a7c15ull + 1;
}

static int send_fill(int fd, long megabytes) {
    size_t bytes = (size_t)megabytes << 20;
    pattern = malloc(bytes);
    if (pattern == NULL) return send_text(fd, "no memory");
    pattern_words = bytes / sizeof *pattern;
    for (size_t i = 0; i < pattern_words; i += 1) pattern[i] = pattern_at(i);
    return send_text(fd, "filled");
}

static long meminfo(const char *name) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file != NULL && value < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) value = atol(line + strlen(name));
    if (file != NULL) fclose(file);
    return value;
}

static int send_sum(int fd) {
    char text[256];
    size_t wrong = 0;
    long total = meminfo("SwapTotal:"), swapped = total - meminfo("SwapFree:");
    for (size_t i = 0; i < pattern_words; i += 1) wrong += pattern[i] != pattern_at(i);
    snprintf(text, sizeof text, "{\"bytes\":%zu,\"wrong\":%zu,\"swap_kb\":%ld,\"swapped_kb\":%ld}", pattern_words * sizeof *pattern,
             wrong, total, swapped);
    return send_text(fd, text);
}

static int send_back(int fd, const char *head) {
    char text[HEAD_SIZE + 1];
    size_t length = (size_t)(strstr(head, "\r\n\r\n") - head);
    memcpy(text, head, length);
    text[length] = 0;
    return send_text(fd, text);
}

/* Whether the request is to be sent on: the first line is about /replay/, and no other app has done so. */
static const char *replay_of(const char *head) {
    const char *where = strstr(head, " /replay/"), *line_end = strstr(head, "\r\n");
    if (where == NULL || where > line_end || strcasestr(head, "\r\nfly-replay-src:") != NULL) return NULL;
    return where + strlen(" /replay/");
}

static int send_replay(int fd, const char *where) {
    char head[512];
    int size = snprintf(head, sizeof head, "HTTP/1.1 200 It is\r\nFly-Replay: %.*s\r\nContent-Length: 0\r\n\r\n",
                        (int)strcspn(where, " "), where);
    return size < (int)sizeof head ? send_all(fd, head, (size_t)size) : -1;
}

static int reply(int fd, const char *head, char *body, size_t length) {
    const char *replay = replay_of(head);
    if (replay != NULL) return send_replay(fd, replay);
    if (strncmp(head, "POST /layer ", 12) == 0) return note(fd, LAYER_NOTES, body, length, 0);
    if (strncmp(head, "POST ", 5) == 0) return note(fd, notes, body, length, strncmp(head, "POST /sure ", 11) == 0);
    if (strncmp(head, "GET /wait/", 10) == 0) return send_wait(fd, atol(head + 10));
    if (strncmp(head, "GET /fill/", 10) == 0) return send_fill(fd, atol(head + 10));
    if (strncmp(head, "GET /sum ", 9) == 0) return send_sum(fd);
    if (strncmp(head, "GET /health ", 12) == 0) return send_health(fd);
    if (strncmp(head, "GET /head ", 10) == 0) return send_back(fd, head);
    if (strncmp(head, "GET /env ", 9) == 0) return send_environment(fd);
    if (strncmp(head, "GET /notes ", 11) == 0) return send_notes(fd, notes);
    if (strncmp(head, "GET /layer ", 11) == 0) return send_notes(fd, LAYER_NOTES);
    if (strncmp(head, "GET /disk ", 10) == 0) return send_disk(fd);
    return answer == NULL ? send_counter(fd) : send_text(fd, answer);
}

/* Reads each request whole, and answers it before it reads the next one. */
static void *serve(void *connection) {
    int fd = (int)(long)connection;
    char buffer[HEAD_SIZE + 1];
    size_t filled = 0;
    for (;;) {
        buffer[filled] = 0;
        char *end = strstr(buffer, "\r\n\r\n");
        char *length_line = end == NULL ? NULL : strcasestr(buffer, "\r\ncontent-length:");
        size_t body = length_line == NULL || length_line > end ? 0 : (size_t)atol(length_line + 17);
        size_t head = end == NULL ? 0 : (size_t)(end + 4 - buffer);
        if (end == NULL || filled < head + body) {
            ssize_t got = filled < HEAD_SIZE ? read(fd, buffer + filled, HEAD_SIZE - filled) : 0;
            if (got <= 0) break;
            filled += (size_t)got;
            continue;
        }
        char text[HEAD_SIZE + 1];
        memcpy(text, buffer + head, body);
        if (reply(fd, buffer, text, body) != 0) break;
        filled -= head + body;
        memmove(buffer, buffer + head + body, filled);
    }
    close(fd);
    return NULL;
}

static int send_line(int fd, const char *line) {
    char text[HEAD_SIZE + 128];
    int size = snprintf(text, sizeof text, "%s%s%ld %s\n", lines, lines[0] == 0 ? "" : " ",
                        atomic_fetch_add(&count, 1) + 1, line);
    return size < (int)sizeof text ? send_all(fd, text, (size_t)size) : -1;
}

static void *serve_lines(void *connection) {
    int fd = (int)(long)connection, failed = 0;
    char buffer[HEAD_SIZE + 1];
    size_t filled = 0;
    for (ssize_t got; !failed && filled < HEAD_SIZE && (got = read(fd, buffer + filled, HEAD_SIZE - filled)) >= 0;) {
        if (got == 0) send_all(fd, "bye\n", 4);
        if (got == 0) break;
        filled += (size_t)got;
        buffer[filled] = 0;
        char *line = buffer;
        for (char *end; !failed && (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = 0;
            failed = send_line(fd, line);
        }
        filled -= (size_t)(line - buffer);
        memmove(buffer, line, filled);
    }
    close(fd);
    return NULL;
}

static int listen_on(const char *host, int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 511) != 0) return -1;
    return fd;
}

static void *accept_all(void *listener) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    for (;;) {
        int fd = accept((int)(long)listener, NULL, NULL);
        pthread_t thread;
        if (fd >= 0 && pthread_create(&thread, &attributes, lines == NULL ? serve : serve_lines, (void *)(long)fd) != 0)
            close(fd);
        if (fd < 0) return NULL; /* it listens elsewhere now */
    }
}

static int count_lines(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return 74;
    long count = 0;
    for (int byte = fgetc(file); byte != EOF; byte = fgetc(file)) count += byte == '\n';
    printf("%ld\n", count);
    return fclose(file);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--count") == 0) return count_lines(argv[2]);
    const char *host = "0.0.0.0", *say = NULL;
    int port = 8080, code = -1, ending = 0;
    long anywhere_ms = -1, after_ms = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0) port = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--host") == 0) host = argv[i + 1];
        if (strcmp(argv[i], "--text") == 0) answer = argv[i + 1];
        if (strcmp(argv[i], "--label") == 0) label = argv[i + 1];
        if (strcmp(argv[i], "--lines") == 0) lines = argv[i + 1];
        if (strcmp(argv[i], "--health") == 0) health = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--say") == 0) say = argv[i + 1];
        if (strcmp(argv[i], "--fail") == 0) code = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--anywhere-after") == 0) anywhere_ms = atol(argv[i + 1]);
        if (strcmp(argv[i], "--notes") == 0) notes = argv[i + 1];
        if (strcmp(argv[i], "--signal") == 0) ending = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--after") == 0) after_ms = atol(argv[i + 1]);
    }
    if (say != NULL) fprintf(stderr, "%s\n", say);
    sleep_ms(after_ms);
    if (ending > 0) kill(getpid(), ending);
    if (code >= 0) return code;
    signal(SIGTERM, finish);
    signal(SIGPIPE, SIG_IGN);
    started = now_ms(CLOCK_MONOTONIC);
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random) return 70;
    for (size_t i = 0; i < sizeof random; i += 1) snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    int listener = listen_on(host, port);
    if (listener < 0) return 71;
    printf("listens on %s:%d\n", host, port);
    fflush(stdout);
    if (anywhere_ms < 0) return accept_all((void *)(long)listener) != NULL;
    pthread_t first;
    if (pthread_create(&first, NULL, accept_all, (void *)(long)listener) != 0) return 72;
    sleep_ms(anywhere_ms);
    shutdown(listener, SHUT_RDWR);
    pthread_join(first, NULL);
    close(listener);
    listener = listen_on("0.0.0.0", port);
    return listener < 0 ? 73 : accept_all((void *)(long)listener) != NULL;
}
