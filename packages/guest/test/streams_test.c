/* Tests of streams: connections over a real socket, commands by a real shell. Commands are started as in a machine,
 * for which you have to be root: otherwise these tests are skipped, and a line says so. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "config.h"
#include "frame.h"
#include "outbox.h"
#include "streams.h"
#include "streams_bench.h"
#include "system.h"

static uint8_t block[STREAM_WINDOW + 1];
static struct config app;

/* ---- connections ---- */

/* Returns how many bytes can be read right now. *end: whether the end was reached. */
static size_t read_now(int fd, char *into, size_t room, bool *end) {
  size_t size = 0;
  for (ssize_t got; size < room; size += (size_t)got) {
    got = read(fd, into + size, room - size);
    if (got < 0) break;
    if (got == 0) {
      *end = true;
      break;
    }
  }
  return size;
}

static void connection_both_ways_and_half_closed(void) {
  char text[100] = "";
  bool end = false;
  int files = bench_files(), fd = bench_connect();
  uint32_t id = bench_accepted(0);
  EXPECT(id % 2 == 1 && id > 16);
  struct record *record = bench_record(id);
  EXPECT(write(fd, "question", 8) == 8);
  shutdown(fd, SHUT_WR);
  UNTIL(record->end);
  EXPECT_TEXT(record->out, "question");
  EXPECT(bench_ready() == 0); /* its end is not reported again and again */
  bench_say(F_DATA, id, "an ", 3);
  bench_say(F_DATA, id, "answer", 6);
  bench_say(F_END, id, NULL, 0);
  UNTIL(bench_files() == files + 1); /* closed on the agent's side */
  read_now(fd, text, sizeof text, &end);
  EXPECT_TEXT(text, "an answer");
  EXPECT(end && record->credit_given == 9 && !record->reset);
  close(fd);
}

static void connection_whose_program_never_reads(void) {
  int fd = bench_connect();
  uint32_t id = bench_accepted(0);
  struct record *record = bench_record(id);
  uint64_t sent = 0;
  /* The platform keeps to its credit: the stream comes to a stop, and nothing is lost. */
  for (int turns = 0; turns < 200; turns++) {
    if (sent + 4096 <= STREAM_WINDOW + record->credit_given) bench_say(F_DATA, id, block, 4096), sent += 4096;
    else if (bench_ready() == 0) break;
    bench_turn(0);
  }
  EXPECT(sent == STREAM_WINDOW + record->credit_given);
  EXPECT(!record->reset && bench_ready() == 0);
  size_t got = 0;
  bool end = false;
  for (int turns = 0; got < sent && turns < 1000; turns++, bench_turn(0)) got += read_now(fd, (char *)block, sizeof block, &end);
  EXPECT(got == sent && !record->reset);
  close(fd);
}

static void connection_that_gets_more_than_its_credit(void) {
  int fd = bench_connect();
  uint32_t id = bench_accepted(0);
  bench_say(F_DATA, id, block, STREAM_WINDOW);
  bench_say(F_DATA, id, block, 1);
  bench_turn(0);
  EXPECT_TEXT(bench_record(id)->text, "more was sent than the credit allowed");
  close(fd);
}

static void connection_sends_no_more_than_its_credit(void) {
  int fd = bench_connect();
  uint32_t id = bench_accepted(0);
  struct record *record = bench_record(id);
  size_t written = 0;
  for (int turns = 0; turns < 100; turns++) {
    ssize_t put = write(fd, block, sizeof block);
    if (put > 0) written += (size_t)put;
    bench_turn(0);
  }
  EXPECT(written > STREAM_WINDOW && record->out_size == STREAM_WINDOW);
  EXPECT(bench_ready() == 0); /* more bytes wait, and nothing can be done about them */
  bench_say_u32(F_CREDIT, id, 1000);
  bench_turn(0);
  bench_turn(0);
  EXPECT(record->out_size == STREAM_WINDOW + 1000);
  bench_say_u32(F_CREDIT, id, UINT32_MAX); /* too much credit counts as one window */
  for (int turns = 0; turns < 100; turns++) bench_turn(0);
  EXPECT(record->out_size <= 2 * STREAM_WINDOW + 1000);
  close(fd);
}

static void connection_reset_by_the_platform(void) {
  char text[10];
  bool end = false;
  int files = bench_files(), fd = bench_connect();
  uint32_t id = bench_accepted(0);
  bench_say(F_RESET, id, "closed", 6);
  EXPECT(bench_files() == files + 1);
  EXPECT(read_now(fd, text, sizeof text, &end) == 0 && end);
  bench_say(F_DATA, id, "late", 4); /* no one will read it */
  bench_say(F_END, id, NULL, 0);
  bench_turn(0);
  EXPECT(!bench_record(id)->reset && !bench_record(id)->end);
  close(fd);
}

static void connection_whose_program_leaves(void) {
  int files = bench_files(), fd = bench_connect();
  uint32_t id = bench_accepted(0);
  EXPECT(write(fd, "last words", 10) == 10);
  close(fd);
  struct record *record = bench_record(id);
  UNTIL(record->end);
  EXPECT_TEXT(record->out, "last words");
  EXPECT(bench_ready() == 0);
  bench_say(F_DATA, id, "nobody hears", 12);
  UNTIL(record->reset);
  EXPECT_TEXT(record->text, "the connection was lost");
  EXPECT(bench_files() == files);
}

static void connections_beyond_the_limit_wait(void) {
  int fds[CONNECTIONS_MAX + 1];
  for (size_t i = 0; i <= CONNECTIONS_MAX; i++) fds[i] = bench_connect();
  for (size_t i = 0; i < 2 * CONNECTIONS_MAX; i++) bench_turn(0);
  uint32_t last = bench_accepted(0);
  EXPECT(fds[CONNECTIONS_MAX] >= 0 && bench_ready() == 0); /* the last one waits in the socket's queue */
  bench_say(F_EXEC, 16, NULL, 0);
  bench_turn(0);
  EXPECT_TEXT(bench_record(16)->text, "no command was given"); /* there is still room for commands */
  bench_say(F_RESET, last, NULL, 0);
  EXPECT(bench_accepted(last) == last + 2);
  for (size_t i = 0; i <= CONNECTIONS_MAX; i++) close(fds[i]);
}

static void connections_at_an_impossible_path(void) {
  int files = bench_files();
  streams_listen("/nonexistent/api");
  EXPECT(bench_files() == files && bench_ready() == 0);
}

static void another_session_ends_everything(void) {
  int files = bench_files(), fds[5];
  for (int i = 0; i < 5; i++) fds[i] = bench_connect();
  for (int i = 0; i < 5; i++) bench_turn(0);
  streams_reset(2);
  EXPECT(bench_files() == files + 5 && bench_ready() == 0);
  for (int i = 0; i < 5; i++) close(fds[i]);
}

/* ---- commands ---- */

static uint32_t command_id = 16;

static size_t add_record(uint8_t *at, uint8_t key, const void *value, size_t length) {
  at[0] = key;
  put_u32(at + 1, (uint32_t)length);
  memcpy(at + 5, value, length);
  return 5 + length;
}

/* Runs a shell script. `more` are additional records of the command. */
static struct record *shell(const char *script, const uint8_t *more, size_t more_size) {
  uint8_t records[4096];
  size_t size = add_record(records, C_ARG, "/bin/sh", 7);
  size += add_record(records + size, C_ARG, "-c", 2);
  size += add_record(records + size, C_ARG, script, strlen(script));
  if (more_size > 0) memcpy(records + size, more, more_size);
  struct record *record = bench_record(command_id += 2);
  bench_say(F_EXEC, record->id, records, (uint32_t)(size + more_size));
  return record;
}

static const uint8_t WITH_INPUT[] = {C_INPUT, 0, 0, 0, 0};
static const uint8_t ON_A_TERMINAL[] = {C_TERMINAL, 4, 0, 0, 0, 30, 0, 100, 0};

static void command_output_and_code(void) {
  int files = bench_files();
  struct record *record = shell("echo out; echo err >&2; echo $COLOUR $SHAPE; exit 7", NULL, 0);
  UNTIL(record->exited);
  EXPECT_TEXT(record->out, "out\nblue round\n");
  EXPECT_TEXT(record->err, "err\n");
  EXPECT(record->code == 7 && record->signal == 0 && record->how == 0);
  EXPECT(bench_files() == files);
}

static void command_says_that_it_runs(void) {
  struct record *record = shell("echo $$; read never", WITH_INPUT, sizeof WITH_INPUT);
  EXPECT(record->pid == 0);
  bench_turn(0);
  EXPECT(record->pid > 1);
  UNTIL(record->out_size > 0);
  EXPECT((uint32_t)atoi(record->out) == record->pid);
}

/* With login, as the user `who` (NULL: the app's), in `directory` (NULL: none is given). */
static struct record *log_in(const char *script, const char *who, const char *directory) {
  uint8_t records[2048];
  size_t size = add_record(records, C_LOGIN, "", 0);
  size += add_record(records + size, C_ENV, "LOGNAME=given", 13);
  if (who != NULL) size += add_record(records + size, C_USER, who, strlen(who));
  if (directory != NULL) size += add_record(records + size, C_WORKDIR, directory, strlen(directory));
  return shell(script, records, size);
}

static void login_has_the_users_own_environment_and_home(void) {
  struct record *record = log_in("echo $HOME $USER $LOGNAME $COLOUR; pwd", NULL, NULL);
  UNTIL(record->exited);
  EXPECT_TEXT(record->out, "/root root given blue\n/root\n");
  record = log_in("echo $HOME $USER", "65000", "/tmp"); /* without an entry in /etc/passwd */
  UNTIL(record->exited);
  EXPECT_TEXT(record->out, "/ 65000\n");
}

static void login_in_directories(void) {
  static const struct { const char *directory, *out, *why; } cases[] = {
      {"", "/root\n", ""},
      {"~", "/root\n", ""},
      {"~/", "/root\n", ""},
      {"~/../tmp", "/tmp\n", ""},
      {"../tmp", "/tmp\n", ""},
      {"/tmp", "/tmp\n", ""},
      {"/nonexistent/x", "", "cwd '/nonexistent/x' does not exist"},
      {"no such", "", "cwd '/root/no such' does not exist"},
      {"/etc/passwd", "", "cwd '/etc/passwd' is not a directory"},
      {"~root", "", "cwd '/root/~root' does not exist"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct record *record = log_in("pwd -P", NULL, cases[i].directory);
    UNTIL(record->exited);
    EXPECT_TEXT(record->out, cases[i].out);
    EXPECT_TEXT(record->text, cases[i].why);
    EXPECT(record->how == (cases[i].why[0] != '\0' ? 2 : 0) && (record->pid == 0) == (record->how == 2));
  }
  char directory[1000] = "/";
  memset(directory + 1, 'x', 900);
  struct record *record = log_in("pwd", NULL, directory);
  UNTIL(record->exited);
  EXPECT(strstr(record->text, "xxx...' cannot be entered: File name too long") != NULL);
}

static void login_of_nobody(void) {
  struct record *record = log_in("pwd", "no-such-user", NULL);
  UNTIL(record->exited);
  EXPECT_TEXT(record->text, "user 'no-such-user' does not exist");
  EXPECT(record->how == 2);
}

static struct record *kept(const char *script, const char *label, const uint8_t *more, size_t more_size) {
  uint8_t records[2048];
  size_t size = add_record(records, C_LABEL, label, strlen(label));
  if (more_size > 0) memcpy(records + size, more, more_size);
  return shell(script, records, size + more_size);
}

static void kept_command_goes_on_under_another_platform(void) {
  struct record *record = kept("echo $$; cat; echo over; exit 6", "a label", WITH_INPUT, sizeof WITH_INPUT);
  struct record *other = shell("sleep 1000", NULL, 0);
  uint32_t id = record->id, other_id = other->id;
  UNTIL(record->out_size > 0 && record->pid > 0);
  uint32_t pid = record->pid;
  bench_take_over();
  bench_turn(0);
  EXPECT(bench_find(other_id) == NULL);
  record = bench_record(id);
  EXPECT(record->kept && record->pid == pid && record->flags == KEPT_HAS_INPUT && record->waiting == 0);
  EXPECT_TEXT(record->label, "a label");
  bench_say(F_DATA, id, "again\n", 6);
  UNTIL(record->out_size == 6 && record->credit_given == 6);
  bench_say(F_END, id, NULL, 0);
  UNTIL(record->exited);
  EXPECT_TEXT(record->out, "again\nover\n");
  EXPECT(record->code == 6);
}

static void kept_command_has_credit_anew(void) {
  /* It neither reads nor is it read: both directions are full. */
  struct record *record = kept("head -c 60000 /dev/zero; head -c 60000 /dev/zero; exec sleep 1000", "x", WITH_INPUT, sizeof WITH_INPUT);
  uint32_t id = record->id;
  bench_say(F_DATA, id, block, STREAM_WINDOW);
  UNTIL(record->out_size == STREAM_WINDOW);
  bench_take_over();
  bench_turn(0);
  record = bench_record(id);
  uint32_t waiting = record->waiting;
  EXPECT(waiting == STREAM_WINDOW - 65536); /* the pipe took all of it */
  memset(block, 'y', STREAM_WINDOW);
  bench_say(F_DATA, id, block, STREAM_WINDOW - waiting);
  UNTIL(record->out_size == 120000 - STREAM_WINDOW);
  bench_take_over(); /* now a window waits, of which nothing may be lost */
  bench_turn(0);
  record = bench_record(id);
  EXPECT(record->waiting == STREAM_WINDOW && !record->reset);
  bench_say(F_DATA, id, "\n", 1); /* more than is allowed */
  UNTIL(record->reset);
  EXPECT_TEXT(record->text, "more was sent than the credit allowed");
}

static void kept_command_that_ended_meanwhile(void) {
  struct record *record = kept("head -c 70000 /dev/zero; exit 8", "x", NULL, 0);
  uint32_t id = record->id;
  UNTIL(record->out_size == STREAM_WINDOW);
  for (int turns = 0; turns < 20; turns++) bench_turn(5);
  bench_take_over();
  record = bench_record(id);
  UNTIL(record->exited);
  EXPECT(record->kept && record->pid > 0 && record->flags == 0);
  EXPECT(record->out_size == 70000 - STREAM_WINDOW && record->code == 8);
}

static void kept_terminal_and_empty_label(void) {
  struct record *record = kept("stty -echo; echo ready; read line; stty size; echo $line", "", ON_A_TERMINAL, sizeof ON_A_TERMINAL);
  uint32_t id = record->id;
  UNTIL(strstr(record->out, "ready") != NULL);
  bench_take_over();
  bench_turn(0);
  record = bench_record(id);
  EXPECT(record->kept && record->flags == (KEPT_ON_TERMINAL | KEPT_HAS_INPUT));
  EXPECT_TEXT(record->label, "");
  bench_say(F_RESIZE, id, "\x32\0\x78\0", 4);
  bench_say(F_DATA, id, "typed\n", 6);
  UNTIL(record->exited);
  EXPECT_TEXT(record->out, "50 120\r\ntyped\r\n");
}

static void labels_that_are_refused(void) {
  static uint8_t records[CONFIG_MAX_LABEL + 100];
  size_t size = add_record(records, C_LABEL, block, CONFIG_MAX_LABEL + 1);
  struct record *record = bench_record(command_id += 2);
  bench_say(F_EXEC, record->id, records, (uint32_t)size);
  UNTIL(record->exited);
  EXPECT_TEXT(record->text, "the label is too long");
  size = add_record(records, C_LABEL, "x", 1);
  size += add_record(records + size, C_TASK, "stat", 4);
  record = bench_record(command_id += 2);
  bench_say(F_EXEC, record->id, records, (uint32_t)size);
  uint32_t id = record->id;
  bench_take_over(); /* what could not be started is not kept */
  bench_turn(0);
  EXPECT(bench_find(id) == NULL);
}

/* As many as there may be, with the longest labels: all are announced before anything else, whatever is queued. A
 * platform that reads nothing and is followed by another one delays the announcements, and nothing overtakes them. */
static void kept_commands_in_great_number(void) {
  static uint8_t records[CONFIG_MAX_LABEL + 200];
  uint32_t before = command_id;
  size_t size = add_record(records, C_ARG, "/bin/sh", 7);
  size += add_record(records + size, C_ARG, "-c", 2);
  size += add_record(records + size, C_ARG, "yes", 3);
  size += add_record(records + size, C_LABEL, block, CONFIG_MAX_LABEL);
  for (size_t i = 0; i < STREAMS_MAX; i++) bench_say(F_EXEC, command_id += 2, records, (uint32_t)size);
  for (int turns = 0; turns < 10; turns++) bench_turn_unread(10); /* the queue is full */
  streams_reset(2);
  EXPECT(outbox_send(F_HELLO, 0, NULL, 0));
  streams_reset(2);
  for (int turns = 0; turns < 3; turns++) bench_turn_unread(0);
  bench_turn(0);
  for (uint32_t id = before + 2; id <= command_id; id += 2) {
    struct record *record = bench_record(id);
    UNTIL(record->announced == 2);
    EXPECT(record->kept && !record->reset);
  }
}

static void command_with_input(void) {
  struct record *record = shell("cat; exit 3", WITH_INPUT, sizeof WITH_INPUT);
  bench_say(F_DATA, record->id, "one\n", 4);
  UNTIL(record->out_size == 4);
  bench_say(F_DATA, record->id, "two\n", 4);
  bench_say(F_END, record->id, NULL, 0);
  UNTIL(record->exited);
  EXPECT_TEXT(record->out, "one\ntwo\n");
  EXPECT(record->code == 3 && record->credit_given == 8);
}

static void command_that_closes_its_input(void) {
  struct record *record = shell("exec <&-; echo closed; while :; do sleep 1; done", WITH_INPUT, sizeof WITH_INPUT);
  UNTIL(record->out_size > 0);
  bench_say(F_DATA, record->id, block, STREAM_WINDOW);
  UNTIL(record->credit_given == STREAM_WINDOW); /* no one will read it, so the sender need not wait */
  EXPECT(bench_ready() == 0);
  bench_say_u32(F_SIGNAL, record->id, SIGTERM);
  UNTIL(record->exited);
  EXPECT(record->signal == SIGTERM);
}

static void command_that_cannot_be_started(void) {
  static const struct {
    uint8_t key;
    const char *value, *why;
    uint32_t code;
  } cases[] = {
      {C_ARG, "no-such-program", "the command could not be run: No such file or directory", 127},
      {C_ARG, "/", "the command could not be run: Permission denied", 126},
      {C_ENV, "A=b", "no command was given", 126},
      {200, "x", "a record has an unknown key", 126},
  };
  int files = bench_files();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t records[100];
    struct record *record = bench_record(command_id += 2);
    bench_say(F_EXEC, record->id, records, (uint32_t)add_record(records, cases[i].key, cases[i].value, strlen(cases[i].value)));
    UNTIL(record->exited);
    EXPECT_TEXT(record->text, cases[i].why);
    EXPECT(record->code == cases[i].code && record->how == 2);
  }
  EXPECT(bench_files() == files);
}

static void command_out_of_time_is_killed_with_its_group(void) {
  static const uint8_t soon[] = {C_TIMEOUT, 4, 0, 0, 0, 100, 0, 0, 0};
  struct record *record = shell("sleep 1000 & echo $!; wait", soon, sizeof soon);
  UNTIL(record->exited);
  EXPECT(record->signal == SIGKILL && record->how == 1);
  pid_t child = atoi(record->out);
  /* The child process belongs to init now, which may reap it later. What counts is that it is no longer running. */
  char path[64], state[200] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", child);
  UNTIL(strlen(system_read_file(path, state, sizeof state)) == 0 || strstr(state, ") Z ") != NULL);
  EXPECT(child > 1);
}

static void command_that_leaves_a_silent_child(void) {
  struct record *record = shell("sleep 1000 & echo $!; exit 4", NULL, 0);
  UNTIL(record->exited);
  EXPECT(record->code == 4 && atoi(record->out) > 1);
  kill(atoi(record->out), SIGKILL);
}

static void command_that_leaves_a_chatty_child(void) {
  struct record *record = shell("yes & echo $! >&2; exit 4", NULL, 0);
  for (int turns = 0; turns < 2000 && !record->exited; turns++) {
    bench_turn(1);
    bench_say_u32(F_CREDIT, record->id, STREAM_WINDOW); /* everything is read immediately */
  }
  EXPECT(record->exited && record->code == 4);
  kill(atoi(record->err), SIGKILL);
}

static void command_end_needs_no_credit(void) {
  /* Exactly as much as the credit allows: nothing is left to be read, so nothing delays the end. */
  struct record *record = shell("head -c 65536 /dev/zero", NULL, 0);
  UNTIL(record->exited);
  EXPECT(record->out_size == STREAM_WINDOW && record->code == 0);
}

static void command_output_waits_for_credit_and_none_is_lost(void) {
  struct record *record = shell("head -c 100000 /dev/zero; echo all >&2; exit 5", NULL, 0);
  UNTIL(record->out_size + record->err_size >= STREAM_WINDOW);
  for (int turns = 0; turns < 50; turns++) bench_turn(1); /* what it has no credit for would come now */
  EXPECT(record->out_size + record->err_size == STREAM_WINDOW && !record->exited);
  EXPECT(bench_ready() == 0);
  bench_say_u32(F_CREDIT, record->id, STREAM_WINDOW);
  UNTIL(record->exited);
  EXPECT(record->out_size == 100000 && record->code == 5);
  EXPECT_TEXT(record->err, "all\n");
}

static void terminal_has_a_size_and_follows_it(void) {
  struct record *record =
      shell("stty size; trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done", ON_A_TERMINAL, sizeof ON_A_TERMINAL);
  UNTIL(strstr(record->out, "ready") != NULL);
  EXPECT(strncmp(record->out, "30 100\r\n", 8) == 0);
  bench_say(F_RESIZE, record->id, "\x32\0\x78\0", 4);
  UNTIL(record->exited);
  EXPECT(strstr(record->out, "50 120\r\n") != NULL && record->code == 5);
}

static void terminal_input_ends_after_all_of_it(void) {
  /* While the program is stopped, more input waits than a terminal holds, and the end of the input waits behind it. */
  struct record *record =
      shell("stty -echo; echo ready; kill -STOP $$; wc -c; echo over", ON_A_TERMINAL, sizeof ON_A_TERMINAL);
  UNTIL(strstr(record->out, "ready") != NULL);
  memset(block, 'x', 30000);
  for (size_t i = 99; i < 30000; i += 100) block[i] = '\n';
  bench_say(F_DATA, record->id, block, 30000);
  bench_say(F_END, record->id, NULL, 0);
  for (int turns = 0; turns < 20; turns++) bench_turn(1);
  bench_say_u32(F_SIGNAL, record->id, SIGCONT);
  UNTIL(record->exited);
  EXPECT(strstr(record->out, "30000\r\nover\r\n") != NULL);
}

static void terminal_with_a_chatty_child(void) {
  struct record *record = shell("trap '' HUP; yes & echo pid $! pid; exit 4", ON_A_TERMINAL, sizeof ON_A_TERMINAL);
  for (int turns = 0; turns < 2000 && !record->exited; turns++) {
    bench_turn(1);
    bench_say_u32(F_CREDIT, record->id, STREAM_WINDOW);
  }
  EXPECT(record->exited && record->code == 4);
  EXPECT(strstr(record->out, "pid ") != NULL);
}

static void command_reset_kills_its_group(void) {
  struct record *record = shell("sleep 1000 & echo $!; wait", NULL, 0);
  UNTIL(record->out_size > 0);
  char path[64], state[200];
  snprintf(path, sizeof path, "/proc/%d/stat", atoi(record->out));
  bench_say(F_RESET, record->id, "gone", 4);
  UNTIL(strlen(system_read_file(path, state, sizeof state)) == 0 || strstr(state, ") Z ") != NULL);
  EXPECT(!record->exited && !record->reset);
}

static void too_many_commands_and_numbers_that_are_wrong(void) {
  uint32_t before = command_id;
  for (size_t i = 0; i < STREAMS_MAX; i++) shell("exec sleep 1000", NULL, 0);
  struct record *refused = shell("echo", NULL, 0);
  bench_turn(0);
  EXPECT_TEXT(refused->text, "too many streams");
  EXPECT(!bench_record(before + 2)->reset);
  shell("echo", NULL, 0)->id = 0; /* refused as well */
  static const uint32_t wrong[] = {0, 2, 15, 17, 0xffffffff};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    bench_say(F_EXEC, wrong[i], NULL, 0);
    bench_turn(0);
    EXPECT_TEXT(bench_record(wrong[i])->text, "this number is not valid for a new command");
  }
  bench_say(F_EXEC, before + 2, NULL, 0); /* a number that is in use: both streams end */
  bench_turn(0);
  EXPECT(bench_record(before + 2)->reset);
}

static void run_here(const char *name, void (*test)(void)) {
  int files = bench_files();
  run_test(name, test);
  bench_reset();
  if (bench_files() == files) return;
  printf("FAIL %s left %d files open\n", name, bench_files() - files);
  failures++;
}
#define RUN_HERE(test) run_here(#test, test)
#define RUN_AS_ROOT(test) (geteuid() == 0 ? run_here(#test, test) : (void)printf("skip %s: only root may start commands\n", #test))

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGPIPE, SIG_IGN);
  system_open_standard_files();
  app.env[app.env_count++] = (char *)"COLOUR=blue";
  app.env[app.env_count++] = (char *)"SHAPE=round";
  app.env[app.env_count++] = (char *)"HOME=/of/the/app";
  app.workdir = (char *)"/tmp";
  streams_init(&app);
  bench_open();
  RUN_HERE(connection_both_ways_and_half_closed);
  RUN_HERE(connection_whose_program_never_reads);
  RUN_HERE(connection_that_gets_more_than_its_credit);
  RUN_HERE(connection_sends_no_more_than_its_credit);
  RUN_HERE(connection_reset_by_the_platform);
  RUN_HERE(connection_whose_program_leaves);
  RUN_HERE(connections_beyond_the_limit_wait);
  RUN_HERE(another_session_ends_everything);
  RUN_AS_ROOT(command_output_and_code);
  RUN_AS_ROOT(command_says_that_it_runs);
  RUN_AS_ROOT(login_has_the_users_own_environment_and_home);
  RUN_AS_ROOT(login_in_directories);
  RUN_AS_ROOT(login_of_nobody);
  RUN_AS_ROOT(kept_command_goes_on_under_another_platform);
  RUN_AS_ROOT(kept_command_has_credit_anew);
  RUN_AS_ROOT(kept_command_that_ended_meanwhile);
  RUN_AS_ROOT(kept_terminal_and_empty_label);
  RUN_AS_ROOT(labels_that_are_refused);
  RUN_AS_ROOT(kept_commands_in_great_number);
  RUN_AS_ROOT(command_with_input);
  RUN_AS_ROOT(command_that_closes_its_input);
  RUN_AS_ROOT(command_that_cannot_be_started);
  RUN_AS_ROOT(command_out_of_time_is_killed_with_its_group);
  RUN_AS_ROOT(command_that_leaves_a_silent_child);
  RUN_AS_ROOT(command_that_leaves_a_chatty_child);
  RUN_AS_ROOT(command_end_needs_no_credit);
  RUN_AS_ROOT(command_output_waits_for_credit_and_none_is_lost);
  RUN_AS_ROOT(terminal_has_a_size_and_follows_it);
  RUN_AS_ROOT(terminal_input_ends_after_all_of_it);
  RUN_AS_ROOT(terminal_with_a_chatty_child);
  RUN_AS_ROOT(command_reset_kills_its_group);
  RUN_AS_ROOT(too_many_commands_and_numbers_that_are_wrong);
  run_test("connections_at_an_impossible_path", connections_at_an_impossible_path); /* the last test: nothing listens after it */
  return end_tests();
}
