/* The rights of a process: given up for good. */
#pragma once
#include "options.h"

/* Sets the limits, becomes the user of the jail, and gives up all capabilities and the way to get new ones. */
void rights_drop(const struct options *options);
