/*
 * token_writer.c - write token records, raw or framed.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "bytes.h"
#include "format/digest.h"
#include "format/schema.h"
#include "format/token_header.h"
#include "io/output.h"
#include "stream/length_counter.h"

struct ps_token_writer {
    ps_output *output;
    bool framed;
    bool finished;
    bool counts; /* LENGTHS will be written */
    ps_shape shape;
    ps_token_end end; /* totals and digest so far */
    uint64_t bytes;   /* size of the stream, including buffered bytes */
    ps_length_counter lengths;
    unsigned char *record; /* LENGTHS, for ps_token_writer_lengths; owned */
};

ps_result ps_token_writer_resume(ps_token_writer **writer, int fd,
                                 const ps_schema *schema,
                                 const ps_token_mark *mark, ps_error *err)
{
    const ps_output_options plain = {.written = mark->offset};
    unsigned char header[PS_TOKEN_HEADER_MAX];
    ps_token_writer *w;
    size_t n;
    ps_result r = ps_schema_check(schema, err);

    *writer = NULL;
    if (r != PS_OK)
        return r;
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return ps_fail_memory(err);
    w->framed = schema->framed;
    w->shape = ps_schema_shape(schema);
    w->end = (ps_token_end){mark->sequences, mark->tokens, mark->digest};
    w->bytes = mark->offset;
    r = ps_output_open(&w->output, fd, &plain, err);
    if (r == PS_OK && w->framed && mark->offset == 0) {
        n = ps_token_header_encode(schema, header);
        w->bytes = n;
        r = ps_output_put(w->output, header, n, err);
    }
    if (r != PS_OK) {
        ps_token_writer_free(w);
        return r;
    }
    *writer = w;
    return PS_OK;
}

ps_result ps_token_writer_open(ps_token_writer **writer, int fd,
                               const ps_schema *schema, ps_error *err)
{
    const ps_token_mark start = {0};
    const ps_result r =
        ps_token_writer_resume(writer, fd, schema, &start, err);

    if (r == PS_OK)
        (*writer)->counts = (*writer)->framed;
    return r;
}

ps_token_mark ps_token_writer_mark(const ps_token_writer *w)
{
    return (ps_token_mark){
        .id = w->end.sequences,
        .offset = ps_output_written(w->output),
        .sequences = w->end.sequences,
        .tokens = w->end.tokens,
        .digest = w->end.digest,
    };
}

ps_result ps_token_writer_lengths(ps_token_writer *w,
                                  const unsigned char **record, size_t *n,
                                  ps_error *err)
{
    const bool counted = w->counts && !w->lengths.full;
    unsigned char *larger;

    *n = counted ? PS_LENGTHS_BYTES(w->lengths.n) : 0;
    *record = NULL;
    if (!counted)
        return PS_OK;
    larger = realloc(w->record, *n);
    if (larger == NULL)
        return ps_fail_memory(err);
    w->record = larger;
    ps_length_counter_encode(&w->lengths, w->bytes, w->record);
    *record = w->record;
    return PS_OK;
}

ps_result ps_token_writer_set_lengths(ps_token_writer *w, const void *record,
                                      size_t n, ps_error *err)
{
    const unsigned char *entry = record;
    ps_lengths l;
    ps_result r;

    if (n == 0 || !w->framed)
        return PS_OK;
    r = ps_lengths_decode(&l, record, n, err);
    if (r == PS_OK)
        r = ps_lengths_compare(&l, w->end.sequences, w->end.tokens, err);
    if (r == PS_OK && l.stream_bytes != w->bytes)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "it declares %" PRIu64 " bytes before it, but there are "
                    "%" PRIu64,
                    l.stream_bytes, w->bytes);
    entry += PS_LENGTHS_HEAD_BYTES;
    for (uint32_t i = 0; r == PS_OK && i < l.n; i++) {
        r = ps_length_counter_add(&w->lengths, ps_lengths_length(entry),
                                  ps_lengths_count(entry), err);
        entry += PS_LENGTHS_ENTRY_BYTES;
    }
    w->counts = r == PS_OK;
    return ps_lengths_blame(r, w->bytes, err);
}

ps_result ps_token_writer_put(ps_token_writer *w, uint32_t n_tok,
                              const void *payload, ps_error *err)
{
    uint64_t bytes;
    unsigned char count[4];
    ps_result r = PS_OK;

    if (w->finished || n_tok == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       w->finished ? "the stream has ended"
                                   : "a sequence must have tokens");
    bytes = ps_shape_all(&w->shape, n_tok, payload);
    if (bytes > PS_MAX_SEQUENCE_BYTES)
        return ps_fail(err, PS_ERR_LIMIT,
                       "a sequence has %" PRIu64 " bytes, but the limit is "
                       "%" PRIu32,
                       bytes, PS_MAX_SEQUENCE_BYTES);
    if (w->counts)
        r = ps_length_counter_add_one(&w->lengths, n_tok, err);
    if (r != PS_OK)
        return r;
    store_u32(count, n_tok);
    if (w->framed)
        w->end.digest = ps_token_digest(w->end.digest, n_tok,
                                        ps_hash(payload, (size_t)bytes));
    w->end.sequences++;
    w->end.tokens += n_tok;
    w->bytes += sizeof count + bytes;
    r = ps_output_put(w->output, count, sizeof count, err);
    if (r != PS_OK)
        return r;
    return ps_output_put(w->output, payload, (size_t)bytes, err);
}

/* In a raw stream, a flush record is only a count of 0. */
ps_result ps_token_writer_put_flush(ps_token_writer *w, ps_error *err)
{
    unsigned char record[PS_TOKEN_CONTROL_BYTES] = {0};
    size_t n = w->framed ? sizeof record : 4;
    ps_result r;

    if (w->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    store_u32(record + 4, PS_TOKEN_FLUSH_KIND);
    if (w->framed)
        w->end.digest = ps_token_digest(w->end.digest, 0,
                                        ps_hash(record + 4, n - 4));
    w->bytes += n;
    r = ps_output_put(w->output, record, n, err);
    return r == PS_OK ? ps_output_flush(w->output, err) : r;
}

ps_result ps_token_writer_flush(ps_token_writer *w, ps_error *err)
{
    return ps_output_flush(w->output, err);
}

ps_result ps_token_writer_finish(ps_token_writer *w, ps_error *err)
{
    unsigned char end[PS_TOKEN_END_BYTES];
    const unsigned char *record;
    size_t n;
    ps_result r;

    if (w->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    r = ps_token_writer_lengths(w, &record, &n, err);
    w->finished = true;
    w->counts = false;
    if (r == PS_OK && n > 0)
        r = ps_output_put(w->output, record, n, err);
    if (r == PS_OK && w->framed) {
        ps_token_end_encode(&w->end, end);
        r = ps_output_put(w->output, end, sizeof end, err);
    }
    return r == PS_OK ? ps_output_finish(w->output, err) : r;
}

void ps_token_writer_free(ps_token_writer *w)
{
    if (w == NULL)
        return;
    ps_output_free(w->output);
    ps_length_counter_clear(&w->lengths);
    free(w->record);
    free(w);
}
