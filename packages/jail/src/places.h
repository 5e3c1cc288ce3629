/* The file system of the jail: an empty one in memory, with mounts of what the program may see, at the same paths. */
#pragma once
#include "options.h"

/* Takes hold of everything that will be visible. Needs the mount namespace of the jail, and the rights to see it. */
void places_take(struct options *options);

/* Builds the root, puts everything there, makes the rest read-only, and leaves the old root behind. */
void places_enter(const struct options *options);

/* Fails when a device cannot be opened. Call it with the rights of the program: some hosts let only root open theirs. */
void places_check(const struct options *options);
