/* Reports changes in a directory, until standard input ends (so the task needs one) or standard output is closed. Fields
 * end with a zero byte:
 * "start", once nothing will be missed any more, and then for each event
 *
 *   type      "create", "write", "remove", "rename" (it is gone from this name) or "chmod"
 *   name      relative to the directory; the directory itself is "."
 *   "1" and an entry record of entries.h, if those are wanted and something is there by now, and otherwise "0"
 *
 * With `recursive` also in what is below, also where directories appear later: what such a one contains by then is
 * reported as created, some of it twice if it is created just then. Files of replace.h appear as "create" and "write"
 * under their own name only. */
#ifndef HIBERNAUT_WATCH_H
#define HIBERNAUT_WATCH_H

#include <stdbool.h>

#define WATCHES_MAX 8192u /* directories. With more, the task ends */

int watch_run(const char *path, bool recursive, bool with_entries);

#endif
