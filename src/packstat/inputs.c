/*
 * inputs.c - token records of several files as one stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "inputs.h"

#include "cli/files.h"
#include "cli/message.h"
#include "cli/threads.h"

uint32_t inputs_file(const inputs *in)
{
    return (uint32_t)in->opened - 1;
}

const char *inputs_name(const inputs *in, uint32_t file)
{
    return files_input_name(in->names->names[file]);
}

static int failure(const inputs *in, const ps_error *err)
{
    return message_failure(inputs_name(in, inputs_file(in)), err);
}

static int open_file(inputs *in)
{
    in->fd = files_open_input(in->names->names[in->opened++]);
    return in->fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

static uint32_t longest(const ps_schema *schema)
{
    const uint64_t fixed = ps_payload_bytes(schema, 0);
    const uint64_t per_token = ps_payload_bytes(schema, 1) - fixed;

    return (uint32_t)((PS_MAX_SEQUENCE_BYTES - fixed) / per_token);
}

int inputs_open(inputs *in, const name_list *names, ps_type raw_type,
                uint32_t vocab_size, bool empty)
{
    const ps_token_reader_options options = {.vocab_size = vocab_size,
                                             .expect_overlong = true,
                                             .expect_outside = true,
                                             .expect_empty = true,
                                             .raw_flush = !empty};
    ps_error err;
    int status;

    *in = (inputs){.names = names};
    status = open_file(in);
    if (status != STATUS_OK)
        return status;
    if (ps_token_reader_open(&in->reader, in->fd, raw_type, &options, &err) !=
        PS_OK)
        return failure(in, &err);
    in->longest = longest(inputs_schema(in));
    if (threads_available() > 1 &&
        ps_token_reader_read_ahead(in->reader, &err) != PS_OK)
        return failure(in, &err);
    return STATUS_OK;
}

const ps_schema *inputs_schema(const inputs *in)
{
    return ps_token_reader_schema(in->reader);
}

/* What the token records cannot be the input for. */
static const char *difference(const ps_schema *packs, const ps_schema *in)
{
    if (packs->framed != in->framed)
        return in->framed ? "they are framed, what was packed was raw"
                          : "they are raw, what was packed was framed";
    if (packs->token_type != in->token_type)
        return in->token_type == PS_U16 ? "their tokens are u16, not u32"
                                        : "their tokens are u32, not u16";
    if (packs->vocab_size != in->vocab_size)
        return "they declare another vocabulary";
    if (packs->n_channels != in->n_channels)
        return "they have other channels";
    return "their header differs in channels, labels, special ids or "
           "tokenizer";
}

int inputs_check(const inputs *in, const ps_schema *packs)
{
    ps_schema schema = *inputs_schema(in);

    /* Raw records say nothing of it; packstream was told. */
    if (!schema.framed && !packs->framed)
        schema.vocab_size = packs->vocab_size;
    if (ps_schema_equal(packs, &schema))
        return STATUS_OK;
    message_error("%s: not the input of these packs: %s",
                  inputs_name(in, 0), difference(packs, &schema));
    return STATUS_DATA;
}

/* At the end of a file: goes on with the next, if there is one. */
static int next_file(inputs *in)
{
    const int before = in->fd;
    ps_error err;
    int status;

    in->ended = in->opened == in->names->n;
    if (in->ended)
        return STATUS_OK;
    status = open_file(in);
    if (status == STATUS_OK &&
        ps_token_reader_append(in->reader, in->fd, &err) != PS_OK)
        status = failure(in, &err);
    files_close_input(before);
    return status;
}

/* The next sequence, whatever is odd about it. */
static ps_result read_next(inputs *in, ps_sequence *sequence, ps_error *err)
{
    ps_result r =
        ps_token_reader_next(in->reader, in->longest, sequence, err);
    bool overlong = r == PS_ERR_OVERLONG;

    if (overlong)
        r = ps_token_reader_skip(in->reader, err);
    in->outside = r == PS_ERR_RANGE;
    if (in->outside)
        r = overlong ? ps_token_reader_skip(in->reader, err)
                     : ps_token_reader_hold(in->reader, sequence, err);
    return r == PS_ERR_EMPTY ? PS_OK : r;
}

int inputs_next(inputs *in, ps_sequence *sequence, bool *more)
{
    ps_error err;
    int status = STATUS_OK;

    while (status == STATUS_OK && !in->ended) {
        ps_result r = read_next(in, sequence, &err);

        if (r == PS_OK)
            break;
        status = r == PS_END ? next_file(in) : failure(in, &err);
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
