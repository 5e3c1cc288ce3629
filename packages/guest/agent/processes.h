/* The task that lists the processes of the machine, without those of the kernel: for each, in the order of their numbers,
 * fields that end with a zero byte:
 *
 *   pid
 *   started           in ms of the machine's own time after its boot, which stops while the machine sleeps
 *   ran               for how many ms of that time
 *   cpu               how many ms of CPU time it has had
 *   rss               bytes of memory
 *   command           its arguments with spaces between them, cut to PROCESS_TEXT_MAX; or the program's name in brackets
 *   directory         where it works, cut likewise; empty when that is not known
 *   n                 how many pairs follow, at most PROCESS_SOCKETS_MAX
 *   proto, address    n times: where it listens, see sockets.h */
#ifndef HIBERNAUT_PROCESSES_H
#define HIBERNAUT_PROCESSES_H

#define PROCESSES_MAX 1000u       /* in the list */
#define PROCESS_TEXT_MAX 4096u    /* bytes of a command, or of a directory */
#define PROCESS_SOCKETS_MAX 64u   /* of one process */

/* Prints the list. Returns the exit code: 0, or 1 when /proc cannot be read. */
int processes_print(void);

#endif
