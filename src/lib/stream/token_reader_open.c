/*
 * token_reader_open.c - open a token reader, and move it to another file or
 * position.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "format/pack_header.h"
#include "stream/token_reader.h"

/* Upper bound on sizeof(XXH3_state_t), private to xxHash and currently 576. */
#define HASH_STATE_BYTES 1024

/* Maximum size of a peek: a record with its count, or a header. */
#define MIN_PEEK ((uint64_t)64 << 10)
#define MAX_PEEK(bytes) ((bytes) + 4 > MIN_PEEK ? (bytes) + 4 : MIN_PEEK)

ps_result ps_token_reader_header(ps_token_reader *r, ps_schema *schema,
                                 ps_error *err)
{
    const uint64_t at = r->input->taken;
    const unsigned char *head;
    size_t got;
    size_t size = PS_TOKEN_FIXED_BYTES;
    ps_result result = ps_input_peek(r->input, size, &head, &got, err);

    if (result == PS_OK && got == size) {
        result = ps_token_header_size(head, &size, err);
        if (result == PS_OK)
            result = ps_input_peek(r->input, size, &head, &got, err);
    }
    if (result != PS_OK)
        return result;
    if (got < size)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the input ends inside the header");
    result = ps_token_header_decode(head, size, schema, err);
    ps_input_take(r->input, size);
    r->seen = (ps_token_end){0};
    r->stream_at = at;
    r->stream_known = true;
    ps_length_counter_clear(&r->counter);
    return result;
}

/*
 * Detects the type of the input and reads the header, if any.  An incomplete
 * magic is treated as a truncated header, not as a raw record.
 */
static ps_result read_start(ps_token_reader *r, ps_type raw_type,
                            ps_schema *schema, bool *empty, ps_error *err)
{
    const unsigned char *head;
    const char *other;
    size_t got;
    ps_result result = ps_input_peek(r->input, 1, &head, &got, err);

    /*
     * The writer may pause after a raw record with few tokens, but not before
     * its count is complete.  Waiting for more bytes could therefore block.
     */
    if (result == PS_OK && got == 1)
        result = ps_input_peek(
            r->input, *head >= PS_RECOGNIZE_BYTES ? PS_RECOGNIZE_BYTES : 4,
            &head, &got, err);
    if (result != PS_OK)
        return result;
    *empty = got == 0;
    *schema = ps_schema_raw(raw_type);
    if (got > 0 && ps_is_token_magic_prefix(head, got))
        return ps_token_reader_header(r, schema, err);
    other = ps_recognize(head, got);
    if (other != NULL)
        return ps_fail(err, PS_ERR_MAGIC,
                       "not token records: this looks like %s", other);
    return PS_OK;
}

ps_result ps_token_reader_start(ps_token_reader **reader, ps_input *input,
                                ps_type raw_type,
                                const ps_token_reader_options *options,
                                ps_error *err)
{
    ps_token_reader *r = calloc(1, sizeof *r);
    uint32_t declared;
    bool empty;
    ps_result result = PS_OK;

    *reader = NULL;
    if (r == NULL) {
        ps_input_free(input);
        return ps_fail_memory(err);
    }
    r->input = input;
    r->options = *options;
    r->max_bytes = PS_MAX_SEQUENCE_BYTES;
    r->skip_hash = XXH3_createState();
    if (r->skip_hash == NULL)
        result = ps_fail_memory(err);
    if (result == PS_OK)
        result = read_start(r, raw_type, &r->schema, &empty, err);
    if (result != PS_OK) {
        ps_token_reader_free(r);
        return result;
    }
    r->shape = ps_schema_shape(&r->schema);
    declared = r->schema.vocab_size;
    r->vocab_size = options->vocab_size;
    if (r->vocab_size == 0 || (declared != 0 && declared < r->vocab_size))
        r->vocab_size = declared;
    *reader = r;
    return PS_OK;
}

ps_result ps_token_reader_open(ps_token_reader **reader, int fd,
                               ps_type raw_type,
                               const ps_token_reader_options *options,
                               ps_error *err)
{
    static const ps_token_reader_options defaults = {0};
    ps_input *input;
    ps_result result;

    *reader = NULL;
    if (options == NULL)
        options = &defaults;
    if (raw_type != PS_U16 && raw_type != PS_U32)
        return ps_fail(err, PS_ERR_ARGUMENT, "tokens must be u16 or u32");
    result = ps_input_open(&input, fd, err);
    if (result != PS_OK)
        return result;
    if (options->window != 0)
        input->window = options->window;
    return ps_token_reader_start(reader, input, raw_type, options, err);
}

void ps_token_reader_free(ps_token_reader *r)
{
    if (r == NULL)
        return;
    ps_input_free(r->input);
    (void)XXH3_freeState(r->skip_hash);
    ps_length_counter_clear(&r->counter);
    free(r);
}

ps_result ps_token_reader_append(ps_token_reader *r, int fd, ps_error *err)
{
    ps_schema schema;
    ps_error why;
    bool empty;
    ps_result result;

    if (!r->ended)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the previous input has not been read to its end");
    r->earlier_bytes += r->input->taken;
    r->ended = false;
    result = ps_input_reopen(r->input, fd, err);
    if (result == PS_OK)
        result = read_start(r, r->schema.token_type, &schema, &empty, err);
    if (result != PS_OK)
        return result;
    if (empty && r->schema.framed)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the input is empty: even framed records without "
                       "sequences have a header");
    if (!empty && ps_schema_compare(&schema, &r->schema, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "cannot be joined to the previous input: %s", why.text);
    return PS_OK;
}

/* ---------------------------------------------------------------------
 * Settings
 */

void ps_token_reader_set_longest(ps_token_reader *r, uint64_t bytes)
{
    r->max_bytes = ps_mem_min(bytes, PS_MAX_SEQUENCE_BYTES);
    ps_input_set_max(r->input, MAX_PEEK(r->max_bytes));
}

uint64_t ps_token_reader_memory(uint64_t longest, uint64_t window,
                                bool read_ahead)
{
    const uint64_t max_bytes = ps_mem_min(longest, PS_MAX_SEQUENCE_BYTES);

    return ps_mem_sum(ps_input_bytes(MAX_PEEK(max_bytes),
                                     window == 0 ? UINT64_MAX : window,
                                     read_ahead),
                      ps_mem_array(1, sizeof(ps_token_reader)) +
                          HASH_STATE_BYTES);
}

void ps_token_reader_check_lengths(ps_token_reader *r)
{
    r->check_lengths = true;
}

void ps_token_reader_on_wait(ps_token_reader *r, ps_wait_hook *hook,
                             void *context)
{
    ps_input_on_wait(r->input, hook, context);
}

ps_result ps_token_reader_read_ahead(ps_token_reader *r, ps_error *err)
{
    return ps_input_read_ahead(r->input, err);
}

/* ---------------------------------------------------------------------
 * Properties and position
 */

const ps_schema *ps_token_reader_schema(const ps_token_reader *r)
{
    return &r->schema;
}

int ps_token_reader_descriptor(const ps_token_reader *r)
{
    return ps_input_descriptor(r->input);
}

uint64_t ps_token_reader_offset(const ps_token_reader *r)
{
    return r->earlier_bytes + r->input->taken;
}

ps_token_mark ps_token_reader_mark(const ps_token_reader *r)
{
    return (ps_token_mark){
        .id = r->next_id,
        /* A reader cannot resume inside LENGTHS, which is consumed in parts. */
        .offset = r->input->taken - r->lengths_taken,
        .earlier_bytes = r->earlier_bytes,
        .sequences = r->seen.sequences,
        .tokens = r->seen.tokens,
        .digest = r->seen.digest,
    };
}

ps_result ps_token_reader_seek(ps_token_reader *r, const ps_token_mark *mark,
                               ps_error *err)
{
    uint64_t at = r->input->taken;
    ps_result result;

    if (r->next_id > 0 || r->ended || r->pending)
        return ps_fail(err, PS_ERR_ARGUMENT, "records have already been read");
    if (mark->offset < at)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "no record starts at byte %" PRIu64, mark->offset);
    result = ps_input_skip(r->input, mark->offset - at, err);
    if (result != PS_OK)
        return result;
    r->next_id = mark->id;
    r->earlier_bytes = mark->earlier_bytes;
    r->seen = (ps_token_end){mark->sequences, mark->tokens, mark->digest};
    r->stream_known = false;
    return PS_OK;
}
