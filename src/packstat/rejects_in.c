/*
 * rejects_in.c - the stream of rejects that packstream wrote beside the packs.
 *
 * It has the order of the input, so one record of it at a time is enough.
 *
 * SPDX-License-Identifier: MIT
 */

#include "rejects_in.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"

#define U64 "%" PRIu64

/* What its two channels add to a payload: u64 source_id, u8 reason. */
enum { EXTRA_BYTES = 9, AT_REASON = 8 };

const char *dropped_name(const dropped *d)
{
    return inputs_name(&d->in, inputs_file(&d->in));
}

/* The schema of the rejects of sequences of `schema`. */
static ps_schema with_reasons(const ps_schema *schema)
{
    static const ps_channel extra[] = {
        {"source_id", PS_U64, PS_PER_SEQUENCE, 0},
        {"reason", PS_U8, PS_PER_SEQUENCE, 0},
    };
    ps_schema with = *schema;

    with.framed = true;
    for (size_t i = 0; i < 2 && with.n_channels < PS_MAX_CHANNELS; i++)
        with.channels[with.n_channels++] = extra[i];
    return with;
}

/* Rejects are within the limit of the formats, as their writer is. */
static int advance(dropped *d)
{
    int status = inputs_next(&d->in, &d->next, &d->more);

    if (status != STATUS_OK || !d->more || d->next.payload != NULL)
        return status;
    message_error("%s: record " U64 " at byte " U64 ": too long for a reject",
                  dropped_name(d), d->next.id, d->next.offset);
    return STATUS_DATA;
}

int rejects_in_open(dropped *d, const name_list *names, const ps_schema *schema)
{
    ps_schema wanted = with_reasons(schema);
    int status = inputs_open(&d->in, names, schema->token_type, 0, false);

    d->open = true;
    if (status != STATUS_OK)
        return status;
    /* They declare none where they may have tokens outside it. */
    if (inputs_schema(&d->in)->vocab_size == 0)
        wanted.vocab_size = 0;
    if (!ps_schema_equal(inputs_schema(&d->in), &wanted)) {
        message_error("%s: not rejects of such an input: the header does not "
                      "fit", dropped_name(d));
        return STATUS_DATA;
    }
    return advance(d);
}

/* Behind the payload of the sequence as it came. */
static const unsigned char *extra(const ps_sequence *reject)
{
    return reject->payload + reject->payload_bytes - EXTRA_BYTES;
}

static uint64_t source_id(const dropped *d)
{
    return load_u64(extra(&d->next));
}

static bool is_whole(const dropped *d, const ps_sequence *sequence)
{
    const ps_sequence *reject = &d->next;

    return sequence->payload != NULL && reject->n_tok == sequence->n_tok &&
           memcmp(reject->payload, sequence->payload,
                  sequence->payload_bytes) == 0;
}

/* Tells what is wrong with the reject at hand. */
#define REJECT_FAULT(d, f, place, why)                                   \
    faults_add(f, (place)->record, (place)->offset,                      \
               "record " U64 " at byte " U64 " of %s, sequence " U64 ", " \
               why, (d)->next.id, (d)->next.offset, dropped_name(d),      \
               source_id(d))

int rejects_in_match(dropped *d, uint64_t id, const ps_sequence *sequence,
                     faults *f, const fault_place *place, uint8_t *reason)
{
    int status = STATUS_OK;

    *reason = REASON_NONE;
    while (status == STATUS_OK && d->more && source_id(d) <= id) {
        if (source_id(d) < id) {
            REJECT_FAULT(d, f, place, "is out of order");
        } else {
            *reason = extra(&d->next)[AT_REASON];
            if (!is_whole(d, sequence))
                REJECT_FAULT(d, f, place, "is not as it was in the input");
        }
        status = advance(d);
    }
    return status;
}

void rejects_in_end(dropped *d, faults *f, const fault_place *place)
{
    if (d->more)
        REJECT_FAULT(d, f, place, "is beyond the end of the input");
}

void rejects_in_close(dropped *d)
{
    if (d->open)
        inputs_close(&d->in);
    *d = (dropped){0};
}
