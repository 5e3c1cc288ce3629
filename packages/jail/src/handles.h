/* Descriptors that the program gets instead of the right to open what is behind them. */
#pragma once
#include "options.h"

/* Opens the taps and the listening sockets, each at the number that it was asked for. */
void handles_open(const struct options *options);
