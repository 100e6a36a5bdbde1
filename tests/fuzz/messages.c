/*
 * messages.c - src/cli/message.c compiled again, with messages written to a
 * file in memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdio.h>

static FILE *messages;

#undef stderr
#define stderr messages
#include "../../src/cli/message.c"

#include "fuzz.h"

/* These two are declared in text.h, whose names message.c uses otherwise. */
void hear_messages(void);
void check_messages(int status);

static char said[65536];

void hear_messages(void)
{
    if (messages == NULL)
        messages = fmemopen(said, sizeof said, "w");
    must(messages != NULL);
    rewind(messages);
}

void check_messages(int status)
{
    long n = fflush(messages) == 0 ? ftell(messages) : -1;

    must(n >= 0 && (size_t)n < sizeof said);
    must(status == STATUS_OK || n > 0);
    must(n == 0 || said[n - 1] == '\n');
    for (long i = 0; i < n; i++)
        must(said[i] == '\n' || (said[i] >= ' ' && said[i] <= '~'));
}
