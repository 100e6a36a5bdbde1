/*
 * rejects_in.h - the stream of rejects that packstream wrote beside the packs,
 * followed while the input is read; packstream(1), --rejects.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_REJECTS_IN_H
#define PACKSTAT_REJECTS_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "faults.h"
#include "inputs.h"
#include "packstream.h"

/* The values of the channel `reason`. */
enum {
    REASON_NONE = 0, /* no reject */
    REASON_DROPPED = 1,
    REASON_TRUNCATED = 2,
    REASON_OUT_OF_VOCAB = 3
};

/* All zeros: there is no such stream. */
typedef struct dropped {
    inputs in;
    bool open;
    bool more;         /* `next` is still to be compared */
    ps_sequence next;
} dropped;

/* Opens it for sequences of `schema`; an exit status. */
int rejects_in_open(dropped *d, const name_list *names,
                    const ps_schema *schema);

/*
 * Compares the reject of sequence `id` of the input, if there is one, with
 * the sequence itself, of which the caller knows a name, "record 3 at byte
 * 40 of FILE"; *reason is what the reject says.  An exit status; what is
 * wrong with the rejects goes to `f`, as found at a record of the packs.
 */
int rejects_in_match(dropped *d, uint64_t id, const ps_sequence *sequence,
                     faults *f, const fault_place *place, uint8_t *reason);

/* All rejects should have been met: tells of one that was not. */
void rejects_in_end(dropped *d, faults *f, const fault_place *place);

/* Their name, for messages. */
const char *dropped_name(const dropped *d);

void rejects_in_close(dropped *d);

#endif
