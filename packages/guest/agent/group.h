/* The control group of the app, commands and hooks. The agent freezes it for a suspend, so that none of them runs after
 * the resume before the clock is set and the random number generator is reseeded. */
#ifndef HIBERNAUT_GROUP_H
#define HIBERNAUT_GROUP_H

/* Creates the group, once the cgroup file system is mounted. Without the group, nothing is ever frozen. */
void group_make(void);

/* Makes the calling process a member, and thereby all processes that it starts. */
void group_join(void);

/* Freezes every member. Gives up after deadline_ms, because a process that waits for a disk cannot be frozen. */
void group_freeze(int deadline_ms);
void group_thaw(void);

#endif
