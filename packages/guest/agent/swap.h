/* Swap: a file on the writable layer, next to what the app has written and out of its sight. The layer is a disk of the
 * machine's own, which rests as it is while the machine sleeps, so swapped-out memory survives a sleep there. */
#ifndef HIBERNAUT_SWAP_H
#define HIBERNAUT_SWAP_H

#include <stdint.h>

#define SWAP_PAGE 4096u

/* Fills in the first page of a swap file of that many pages. */
void swap_header(uint8_t page[SWAP_PAGE], uint32_t pages);

/* Creates a swap file in the directory, in place of one that is there. Returns its file, or -errno. */
int swap_make(int folder, const char *name, uint32_t megabytes);

/* Creates the swap file and uses it; 0 MB: nothing. Returns NULL, or says what went wrong; *error is the errno behind
 * that, or 0. */
const char *swap_start(uint32_t megabytes, int *error);

#endif
