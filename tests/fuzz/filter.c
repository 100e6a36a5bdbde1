/*
 * filter.c - fuzzing target: all of packstream in memory: token records to
 * packs and back, which must restore the input.
 *
 * The input: what to pack and how; see job.h.
 *
 * SPDX-License-Identifier: MIT
 */

#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "packs.h"

/* ------------------------------------------------------------- records in */

/* All sequences as a stream of token records. */
static void write_records(const job *j, bytes *to)
{
    ps_error err = no_error();
    input steps = j->steps;
    ps_token_writer *w;
    uint64_t id = 0;

    feed_clear();
    must(ps_token_writer_open(&w, FEED_FD, &j->schema, &err) == PS_OK);
    while (steps.left > 0) {
        unsigned step = take_u8(&steps);
        uint32_t n_tok = job_length(j, step);
        size_t size;
        unsigned char *p;

        if (step == STEP_FLUSH_RECORD)
            must(ps_token_writer_put_flush(w, &err) == PS_OK);
        if (n_tok == 0)
            continue;
        p = job_payload(j, id++, n_tok, &size);
        must(ps_token_writer_put(w, n_tok, p, &err) == PS_OK);
        free(p);
    }
    must(ps_token_writer_finish(w, &err) == PS_OK);
    ps_token_writer_free(w);
    put_bytes(to, feed_written()->data, feed_written()->size);
}

/* --------------------------------------------------------------- packing */

static ps_result drain(void *context, ps_error *err)
{
    return ps_packer_flush(context, PS_FLUSH_DRAIN, err);
}

/* Moves the next sequence from the reader to the packer, if it is ready. */
static ps_result pass_on(const job *j, ps_token_reader *r, ps_packer *p,
                         bool ready, ps_error *err)
{
    bool skips = (j->bits & JOB_SKIPS) != 0 &&
                 j->options.overlong == PS_OVERLONG_DROP &&
                 j->options.policy != PS_POLICY_CONCAT;
    uint32_t max = skips ? j->options.capacity : UINT32_MAX;
    uint64_t n = 0;
    ps_sequence s;
    ps_result result = PS_OK;

    if (ready)
        result = ps_packer_put_ready(p, r, 1, UINT64_MAX, &n, err);
    must(result == PS_OK);
    if (n > 0)
        return result;
    result = ps_token_reader_next(r, max, &s, err);
    if (result == PS_ERR_OVERLONG) {
        must(skips && s.payload == NULL);
        result = ps_packer_put(p, &s, err);
        must(result == PS_OK);
        return ps_token_reader_skip(r, err);
    }
    must(result == PS_OK);
    result = ps_packer_put(p, &s, err);
    must(result == PS_OK || (result == PS_ERR_OVERLONG &&
                             s.n_tok > j->options.capacity));
    return result;
}

/* Runs all steps; returns PS_OK or PS_ERR_OVERLONG. */
static ps_result take_steps(const job *j, ps_token_reader *r, ps_packer *p,
                            ps_error *err)
{
    input steps = j->steps;
    ps_result result = PS_OK;
    ps_sequence s;

    while (steps.left > 0 && result == PS_OK) {
        unsigned step = take_u8(&steps);

        if (job_length(j, step) > 0)
            result = pass_on(j, r, p, step % 2 == 1, err);
        else if (step == STEP_FLUSH)
            result = ps_packer_flush(p, PS_FLUSH_DECIDED, err);
        else if (step == STEP_DRAIN)
            result = ps_packer_flush(p, PS_FLUSH_DRAIN, err);
        else if (step == STEP_PUSH)
            result = ps_packer_flush(p, PS_FLUSH_NOWAIT, err);
    }
    if (result != PS_OK)
        return result;
    must(ps_token_reader_next(r, UINT32_MAX, &s, err) == PS_END);
    return ps_packer_flush(p, PS_FLUSH_FINISH, err);
}

/* Packs the records; false if a sequence was refused. */
static bool pack_all(const job *j, const bytes *records, ps_totals *totals,
                     bytes *packs)
{
    ps_token_reader_options options = {0};
    ps_error err = no_error();
    ps_token_reader *r;
    ps_packer *p;
    ps_result result;

    feed(records->data, records->size, j->manner);
    feed_clear();
    must(ps_packer_open(&p, FEED_FD, &j->schema, &j->options, &err) ==
         PS_OK);
    options.raw_flush = true;
    options.on_flush = drain;
    options.flush_context = p;
    must(ps_token_reader_open(&r, FEED_FD, j->schema.token_type, &options,
                              &err) == PS_OK);
    result = told(take_steps(j, r, p, &err), &err);
    must(result == PS_OK || result == PS_ERR_OVERLONG);
    *totals = *ps_packer_totals(p);
    must(j->options.max_delay == 0 ||
         ps_packer_delay(p) <= j->options.max_delay);
    ps_packer_free(p);
    ps_token_reader_free(r);
    put_bytes(packs, feed_written()->data, feed_written()->size);
    return result == PS_OK;
}

/* ------------------------------------------------------------ records out */

/* The expected length of a sequence in packs, 0 if it is dropped. */
static uint32_t kept_of(const job *j, uint32_t n_tok)
{
    const ps_packer_options *o = &j->options;

    if (n_tok <= o->capacity || o->policy == PS_POLICY_CONCAT ||
        o->overlong == PS_OVERLONG_SPLIT)
        return n_tok;
    return o->overlong == PS_OVERLONG_DROP ? 0 : o->capacity;
}

/* All columns, each cut to the length that was kept. */
static void check_payload(const job *j, const ps_sequence *s, uint32_t n_tok)
{
    const ps_schema *c = &j->schema;
    size_t size;
    unsigned char *p = job_payload(j, s->id, n_tok, &size);
    size_t n = s->n_tok * ps_type_bytes(c->token_type);

    must(memcmp(s->payload, p, n) == 0);
    for (uint32_t i = 0; i < c->n_channels; i++) {
        n = ps_type_bytes(c->channels[i].type);
        if (c->channels[i].kind == PS_PER_TOKEN)
            n *= s->n_tok;
        must(memcmp(s->payload + ps_payload_offset(c, i, s->n_tok),
                    p + ps_payload_offset(c, i, n_tok), n) == 0);
    }
    free(p);
}

/* The unpacker returns the packed sequences in input order. */
static void check_records(const job *j, const bytes *packs)
{
    ps_error err = no_error();
    input steps = j->steps;
    ps_pack_reader *r;
    ps_unpacker *u;
    ps_sequence s;
    uint64_t id = 0;

    feed(packs->data, packs->size, j->manner);
    must(ps_pack_reader_open(&r, FEED_FD, &err) == PS_OK);
    must(ps_unpacker_open(&u, r, PS_ORDER_INPUT, &err) == PS_OK);
    while (steps.left > 0) {
        uint32_t n_tok = job_length(j, take_u8(&steps));
        uint32_t kept = n_tok > 0 ? kept_of(j, n_tok) : 0;

        if (kept > 0) {
            must(ps_unpacker_next(u, &s, &err) == PS_OK);
            must(s.id == id && s.n_tok == kept);
            check_payload(j, &s, n_tok);
        }
        id += n_tok > 0;
    }
    must(ps_unpacker_next(u, &s, &err) == PS_END);
    ps_unpacker_free(u);
    ps_pack_reader_free(r);
}

static void check_packs(const job *j, const ps_totals *totals,
                        const bytes *packs)
{
    pack_yield y;
    pack_yield file = read_pack_file(packs->data, packs->size);

    feed(packs->data, packs->size, j->manner);
    y = read_packs();
    must(y.result == PS_END && y.faults == 0);
    must(ps_totals_balance(totals));
    must(file.result == PS_END && is_same_yield(&y, &file));
    file.totals = *totals;
    must(is_same_yield(&y, &file));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    job j = take_job(&in);
    bytes records = {0};
    bytes packs = {0};
    ps_error err = no_error();
    ps_totals totals;

    if (told(ps_packer_check(&j.schema, &j.options, &err), &err) != PS_OK)
        return 0;
    write_records(&j, &records);
    if (pack_all(&j, &records, &totals, &packs)) {
        check_packs(&j, &totals, &packs);
        check_records(&j, &packs);
    }
    free_bytes(&records);
    free_bytes(&packs);
    return 0;
}
