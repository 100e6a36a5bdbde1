/*
 * framed.c - fuzzing target: framed token records.
 *
 * The input: how to read (tokens.h), then the stream, which gets new checksums
 * if requested.  A stream that can be read to its end is written again, and
 * must read the same.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokens.h"

enum { AT_STREAM = TOKEN_WAY_BYTES };

/* Copies the records to a writer, except empty ones, which it counts. */
static ps_result copy_records(ps_token_reader *r, ps_token_writer *w,
                              uint64_t *empty)
{
    ps_error err = no_error();
    ps_sequence s;
    ps_result result;

    do {
        result = ps_token_reader_next(r, UINT32_MAX, &s, &err);
        if (result == PS_ERR_RANGE)
            result = ps_token_reader_hold(r, &s, &err);
        if (result == PS_ERR_EMPTY) {
            (*empty)++;
            result = PS_OK;
        } else if (result == PS_OK) {
            must(ps_token_writer_put(w, s.n_tok, s.payload, &err) == PS_OK);
        }
    } while (result == PS_OK);
    return result;
}

/*
 * Writes an intact stream once more, without its flush records; returns how
 * many records were empty and so are missing, too.
 */
static uint64_t write_again(const token_way *way, const unsigned char *data,
                            size_t n)
{
    const ps_token_reader_options options = {.window = WINDOW,
                                             .raw_flush = way->flushes};
    uint64_t empty = 0;
    ps_error err = no_error();
    ps_token_reader *r;
    ps_token_writer *w;

    feed(data, n, FEED_WHOLE);
    feed_clear();
    must(ps_token_reader_open(&r, FEED_FD, way->raw_type, &options, &err) ==
         PS_OK);
    must(ps_token_writer_open(&w, FEED_FD, ps_token_reader_schema(r),
                              &err) == PS_OK);
    must(copy_records(r, w, &empty) == PS_END);
    must(ps_token_writer_finish(w, &err) == PS_OK);
    ps_token_writer_free(w);
    ps_token_reader_free(r);
    return empty;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    token_way way = take_token_way(&in);
    bytes stream = {0};
    token_yield y;
    token_yield again;

    put_bytes(&stream, in.at, in.left);
    if (way.sealed)
        seal_tokens(stream.data, stream.size);
    y = read_tokens_twice(&way, stream.data, stream.size);
    if (y.result == PS_END) {
        uint64_t empty = write_again(&way, stream.data, stream.size);

        feed(feed_written()->data, feed_written()->size, way.manner);
        again = read_tokens(&way);
        must(again.result == PS_END);
        must(again.sequences + empty == y.sequences &&
             again.tokens == y.tokens);
    }
    free_bytes(&stream);
    return 0;
}

const size_t places[][2] = {
    {0, AT_STREAM},
    {AT_STREAM + 8, AT_STREAM + 128},
    {AT_STREAM + 128, AT_STREAM + 128 + 5 * 64},
    {AT_STREAM + 128, 0},
    {AT_STREAM + 128, 0}};
const size_t n_places = sizeof places / sizeof places[0];
