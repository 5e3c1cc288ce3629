/*
 * A file that is written under another name and then renamed is whole, or is the old one: also after a power cut, or when
 * QEMU is killed. Of a file that replaces another, ext4 writes the contents before its journal has the name. Of one that is
 * new, it does that only if the file was truncated before: otherwise it is there without its contents, for up to 30 s.
 * None of this waits for the disk: the new file may be lost.
 */
#ifndef HIBERNAUT_WHOLE_H
#define HIBERNAUT_WHOLE_H

#include <unistd.h>

/* Call it when the file is open and empty. Returns -1 with errno. */
static inline int whole_when_closed(int fd) { return ftruncate(fd, 0); }

#endif
