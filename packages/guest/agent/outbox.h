/* Frames that wait to be written to the platform. Bounded: what the app prints is dropped, and
 * counted, when the platform does not read; streams wait for room instead; control frames have
 * room of their own. */
#ifndef HIBERNAUT_OUTBOX_H
#define HIBERNAUT_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Puts a frame in line, or drops and counts it, and says false, when there is no room for its type. */
bool outbox_send(uint8_t type, uint32_t stream, const void *payload, uint32_t length);

/* The largest payload that a frame of this type may have now; 0 when there is no room. */
uint32_t outbox_room(uint8_t type);

bool outbox_empty(void);

/* Writes as much as the port takes. */
void outbox_write(int port);

/* Frames dropped since the machine started. */
uint64_t outbox_dropped(void);

#endif
