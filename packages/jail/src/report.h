/* What the platform is told: one line on the status descriptor, in place of an exit code that nobody could explain. */
#pragma once

/* From here on, failures go to this descriptor. -1 means to standard error. */
void report_to(int fd);

/* Says `error <what>: <reason of errno>` and ends the process with code 125. */
_Noreturn void fail(const char *what, const char *about);

/* The same for a mistake in the arguments, where errno means nothing. */
_Noreturn void fail_usage(const char *what, const char *about);

/* Says `pid <n>`. */
void report_pid(int pid);
