/* Which process is the app's, for tasks, which are copies of the agent. */
#ifndef HIBERNAUT_RUNNING_H
#define HIBERNAUT_RUNNING_H

#include <sys/types.h>

/* Says which one it is; 0 before its start and after its end. */
void running_is(pid_t pid);

/* The task of task.h that sends it a signal, given as a number. Returns the exit code. */
enum app_task_exit { APP_TASK_DONE = 0, APP_TASK_FAILED = 1, APP_TASK_NOT_RUNNING = 2 };
int running_signal(const char *number);

#endif
