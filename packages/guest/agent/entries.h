/* Entry records: what is at a path, as fields that each end with a zero byte:
 *
 *   kind              "file", "directory", "link" or "other"; a link is not followed
 *   size              in bytes
 *   mode              permissions in octal, with the bits for setuid, setgid and sticky
 *   owner, group      names, or numbers without a name in /etc/passwd or /etc/group
 *   mtime             in ns since 1970
 *   path              absolute
 *   target            of a link: the path that it leads to, or its text when it leads nowhere; otherwise empty
 *   n                 how many pairs follow
 *   key, value        n times: its metadata, which are the extended attributes whose names begin with ENTRIES_METADATA */
#ifndef HIBERNAUT_ENTRIES_H
#define HIBERNAUT_ENTRIES_H

#include <stdbool.h>
#include <sys/types.h>

#define ENTRIES_METADATA "user.e2b."
#define ENTRIES_MOST 100000u /* in one list */

/* Files that are not finished, or not in their place yet, have this name and ENTRIES_TEMPORARY_DIGITS hexadecimal digits. */
#define ENTRIES_TEMPORARY ".hibernaut-"
#define ENTRIES_TEMPORARY_DIGITS 16
bool entries_is_temporary(const char *name);

/* Reads the names of users and groups. Call it before the others. */
void entries_learn_names(void);

/* Prints the record of what is at an absolute path and returns its mode; or 0, with errno set, when nothing is there. */
mode_t entries_print(const char *path);

/* The same for what an operation made, which has to be there. Returns an exit code. */
int entries_show(const char *path);

/* Prints the records of all that is below a directory whose path has no links, to that depth: names in order, a directory
 * before what is in it. Leaves out what is temporary. Returns an exit code. */
int entries_list(const char *directory, unsigned long depth);

#endif
