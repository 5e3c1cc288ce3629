/* The control group of everything that is the user's: the app, commands and hooks. The agent can
 * hold it still, so that nothing runs between a resume and the setting of clock and randomness. */
#ifndef HIBERNAUT_GROUP_H
#define HIBERNAUT_GROUP_H

/* After the cgroup file system is mounted. Without it nothing is ever held still. */
void group_make(void);

/* The calling process becomes a member, and so does what it starts. */
void group_join(void);

/* Returns when every member stands still, or after deadline_ms: a process that waits for a disk cannot be stopped. */
void group_freeze(int deadline_ms);
void group_thaw(void);

#endif
