/* Frames that wait to be written to the platform. Their number is limited: when the platform does not read, the app's
 * output is dropped and counted, streams wait for room, and control frames use room that is reserved for them. */
#ifndef HIBERNAUT_OUTBOX_H
#define HIBERNAUT_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Queues a frame. Without room for its type, drops and counts the frame and returns false. */
bool outbox_send(uint8_t type, uint32_t stream, const void *payload, uint32_t length);

/* Returns how large the payload of a frame of this type may be now, or 0 without room. */
uint32_t outbox_room(uint8_t type);

bool outbox_empty(void);

/* Writes as much as the port accepts. */
void outbox_write(int port);

/* Returns how many frames were dropped since the machine started. */
uint64_t outbox_dropped(void);

#endif
