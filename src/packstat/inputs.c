/*
 * inputs.c - read token records of several files as one stream, and rejects.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/inputs.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "cli/threads.h"
#include "common/bytes.h"
#include "files/files.h"

#define U64 "%" PRIu64

const char *inputs_name(const inputs *in, uint32_t file)
{
    return files_input_name(in->names->names[file]);
}

static int failure(const inputs *in, const ps_error *err)
{
    return message_failure(inputs_name(in, in->file), err);
}

int inputs_open(inputs *in, const name_list *names, ps_type raw_type,
                uint32_t vocab_size, bool empty)
{
    const ps_token_reader_options options = {.vocab_size = vocab_size,
                                             .expect_overlong = true,
                                             .expect_outside = true,
                                             .expect_empty = true,
                                             .raw_flush = !empty};
    const ps_schema *schema;
    uint64_t fixed;
    uint64_t per_token;
    ps_error err;

    *in = (inputs){.names = names};
    in->fd = files_open_input(names->names[0]);
    if (in->fd < 0)
        return STATUS_FAILURE;
    if (ps_token_reader_open(&in->reader, in->fd, raw_type, &options, &err) !=
        PS_OK)
        return failure(in, &err);
    schema = ps_token_reader_schema(in->reader);
    fixed = ps_payload_bytes(schema, 0);
    per_token = ps_payload_bytes(schema, 1) - fixed;
    in->longest = (uint32_t)((PS_MAX_SEQUENCE_BYTES - fixed) / per_token);

    if (threads_available() > 1 &&
        ps_token_reader_read_ahead(in->reader, &err) != PS_OK)
        return failure(in, &err);
    return STATUS_OK;
}

int inputs_check(const inputs *in, const ps_schema *packed)
{
    ps_schema schema = *ps_token_reader_schema(in->reader);
    ps_error err;

    /*
     * Raw records do not declare the vocabulary size; packstream got it from an
     * option.
     */
    if (!schema.framed && !packed->framed)
        schema.vocab_size = packed->vocab_size;
    if (ps_schema_compare(&schema, packed, &err) == PS_OK)
        return STATUS_OK;
    message_error("%s: not the input of these packs: %s", inputs_name(in, 0),
                  err.text);
    return STATUS_DATA;
}

int inputs_next(inputs *in, ps_sequence *sequence, bool *more)
{
    ps_error err;
    int status = STATUS_OK;

    while (status == STATUS_OK && !in->ended) {
        const int before = in->fd;
        ps_result r =
            ps_token_reader_next(in->reader, in->longest, sequence, &err);
        const bool overlong = r == PS_ERR_OVERLONG;

        /*
         * Accept overlong sequences, and sequences with out-of-vocabulary
         * tokens.
         */
        if (overlong)
            r = ps_token_reader_skip(in->reader, &err);
        in->outside = r == PS_ERR_RANGE;
        if (in->outside)
            r = overlong ? ps_token_reader_skip(in->reader, &err)
                         : ps_token_reader_hold(in->reader, sequence, &err);
        if (r == PS_OK || r == PS_ERR_EMPTY)
            break;

        if (r != PS_END) {
            status = failure(in, &err);
        } else if (in->file + 1 == (uint32_t)in->names->n) {
            in->ended = true;
        } else {
            in->file++;
            in->fd = files_open_input(in->names->names[in->file]);
            if (in->fd < 0)
                status = STATUS_FAILURE;
            else if (ps_token_reader_append(in->reader, in->fd, &err) !=
                     PS_OK)
                status = failure(in, &err);
            files_close_input(before);
        }
    }
    *more = !in->ended;
    return status;
}

void inputs_close(inputs *in)
{
    ps_token_reader_free(in->reader);
    if (in->names != NULL && in->fd >= 0)
        files_close_input(in->fd);
    *in = (inputs){0};
}

/* ---- Rejects ---- */

const char *rejects_name(const rejects *r)
{
    return inputs_name(&r->in, r->in.file);
}

/* Reads the next reject.  Rejects are in input order, so only one is held. */
static int advance(rejects *r)
{
    int status = inputs_next(&r->in, &r->next, &r->more);
    const unsigned char *extra;

    if (status != STATUS_OK || !r->more)
        return status;
    /* packstream does not write rejects that exceed the limit of the format. */
    if (r->next.payload == NULL) {
        message_error("%s: record " U64 " at byte " U64
                      ": too long for a reject",
                      rejects_name(r), r->next.id, r->next.offset);
        return STATUS_DATA;
    }
    /* The extra channels are the last before the lists. */
    extra = r->next.payload +
            ps_payload_bytes(ps_token_reader_schema(r->in.reader),
                             r->next.n_tok) -
            REJECT_EXTRA_BYTES;
    r->id = load_u64(extra);
    r->reason = extra[REJECT_AT_REASON];
    return STATUS_OK;
}

int rejects_open(rejects *r, const name_list *names, const ps_schema *schema)
{
    static const ps_channel extra[] = {REJECT_CHANNELS};
    const ps_schema *declared;
    ps_schema wanted = *schema;
    ps_error err;
    int status = inputs_open(&r->in, names, schema->token_type, 0, false);

    r->open = true;
    if (status != STATUS_OK)
        return status;
    wanted.framed = true;
    for (size_t i = 0; i < 2 && wanted.n_channels < PS_MAX_CHANNELS; i++)
        wanted.channels[wanted.n_channels++] = extra[i];
    /*
     * Rejects that may have out-of-vocabulary tokens declare no vocabulary
     * size.
     */
    declared = ps_token_reader_schema(r->in.reader);
    if (declared->vocab_size == 0)
        wanted.vocab_size = 0;
    if (ps_schema_compare(declared, &wanted, &err) != PS_OK) {
        message_error("%s: not rejects of this input: %s", rejects_name(r),
                      err.text);
        return STATUS_DATA;
    }
    return advance(r);
}

/* True if the next reject is the sequence, with its two channels. */
static bool is_same(const rejects *r, const ps_sequence *sequence)
{
    const ps_sequence *reject = &r->next;
    const ps_schema *schema = ps_token_reader_schema(r->in.reader);
    const size_t extra_at =
        (size_t)ps_payload_bytes(schema, reject->n_tok) - REJECT_EXTRA_BYTES;

    return sequence->payload != NULL && reject->n_tok == sequence->n_tok &&
           reject->payload_bytes ==
               sequence->payload_bytes + REJECT_EXTRA_BYTES &&
           memcmp(reject->payload, sequence->payload, extra_at) == 0 &&
           memcmp(reject->payload + extra_at + REJECT_EXTRA_BYTES,
                  sequence->payload + extra_at,
                  sequence->payload_bytes - extra_at) == 0;
}

/* Reports a fault of the next reject. */
#define REJECT_FAULT(r, f, place, why)                                   \
    faults_add(f, place,                                                 \
               "record " U64 " at byte " U64 " of %s, sequence " U64 ", " \
               why, (r)->next.id, (r)->next.offset, rejects_name(r), (r)->id)

int rejects_match(rejects *r, uint64_t id, const ps_sequence *sequence,
                  faults *f, const fault_place *place, uint8_t *reason)
{
    int status = STATUS_OK;

    *reason = REJECT_NONE;
    while (status == STATUS_OK && r->more && r->id <= id) {
        if (r->id < id) {
            REJECT_FAULT(r, f, place, "is out of order");
        } else {
            *reason = r->reason;
            if (!is_same(r, sequence))
                REJECT_FAULT(r, f, place, "differs from the input");
        }
        status = advance(r);
    }
    return status;
}

void rejects_end(rejects *r, faults *f, const fault_place *place)
{
    if (r->more)
        REJECT_FAULT(r, f, place, "is beyond the end of the input");
}

void rejects_close(rejects *r)
{
    if (r->open)
        inputs_close(&r->in);
    *r = (rejects){0};
}
