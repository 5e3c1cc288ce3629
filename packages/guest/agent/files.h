/* The files of the configuration, which are written before the app starts. */
#ifndef HIBERNAUT_FILES_H
#define HIBERNAUT_FILES_H

#include "config.h"

/* Writes every file whole, over one that is there, with its directories. The app's user owns it. Then wipes the contents
 * from the configuration. Returns NULL, or says what went wrong; *error is the errno behind that, or 0. */
const char *files_write(struct config *config, int *error);

#endif
