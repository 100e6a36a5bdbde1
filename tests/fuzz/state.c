/*
 * state.c - fuzzing target: the state of a packer that stops and resumes.
 *
 * The input: after which step to stop, how to change the state, then what to
 * pack and how (job.h).  Resumed from the saved state, a packer must write what
 * a single one would have written; one that starts over must verify that it
 * does so.  A changed state must be refused, unless it got a new checksum, and
 * then do no harm.
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "bytes.h"
#include "job.h"

enum { SEALED = 1, CUT = 2, MAX_CHANGES = 4 };

typedef struct change {
    size_t at; /* from the beginning, or from the end if it is odd */
    unsigned char flip;
} change;

typedef struct plan {
    unsigned stop; /* after this many steps */
    unsigned bits;
    change changes[MAX_CHANGES];
    job job;
} plan;

static plan take_plan(input *in)
{
    plan p = {.stop = take_u8(in), .bits = take_u8(in)};

    for (unsigned i = 0; i < MAX_CHANGES; i++) {
        p.changes[i].at = take_u16(in);
        p.changes[i].flip = (unsigned char)take_u8(in);
    }
    p.job = take_job(in);
    if (p.stop > p.job.steps.left)
        p.stop = (unsigned)p.job.steps.left;
    return p;
}

static ps_result put(const job *j, ps_packer *p, uint64_t id, uint32_t n_tok,
                     ps_error *err)
{
    ps_sequence s = {.id = id, .n_tok = n_tok};
    unsigned char *payload = job_payload(j, id, n_tok, &s.payload_bytes);
    ps_result result;

    s.payload = payload;
    result = told(ps_packer_put(p, &s, err), err);
    free(payload);
    return result;
}

/*
 * Runs steps up to `to`.  Steps before `again` only put sequences with an id of
 * at least `needs`.
 */
static ps_result take_steps(const job *j, ps_packer *p, unsigned again,
                            unsigned to, uint64_t needs, ps_error *err)
{
    input steps = j->steps;
    ps_result result = PS_OK;
    uint64_t id = 0;

    for (unsigned i = 0; i < to && result == PS_OK; i++) {
        unsigned step = take_u8(&steps);
        uint32_t n_tok = job_length(j, step);

        if (n_tok > 0 && (i >= again || id >= needs))
            result = put(j, p, id, n_tok, err);
        else if (i >= again && step == STEP_DRAIN)
            result = told(ps_packer_flush(p, PS_FLUSH_DRAIN, err), err);
        else if (i >= again && step == STEP_FLUSH)
            result = told(ps_packer_flush(p, PS_FLUSH_DECIDED, err), err);
        id += n_tok > 0;
    }
    return result;
}

/* The state, or nothing if it cannot be saved yet. */
static ps_result save_to(ps_packer *p, bytes *state)
{
    static const char note[] = "a note";
    ps_error err = no_error();
    unsigned char *saved;
    size_t n;
    ps_result result = told(
        ps_packer_save(p, note, sizeof note, &saved, &n, &err), &err);

    must((saved != NULL) == (result == PS_OK));
    must(result == PS_OK || ps_packer_totals(p)->packs == 0);
    if (saved != NULL)
        put_bytes(state, saved, n);
    free(saved);
    return result;
}

/*
 * Runs this many steps, and finishes if it `ends`; then saves the state, if
 * possible.  Returns the result of the first step that failed, or of saving.
 */
static ps_result pack(const job *j, unsigned steps, bool ends, bytes *packs,
                      bytes *state)
{
    ps_error err = no_error();
    ps_packer *p;
    ps_result result;

    feed_clear();
    must(ps_packer_open(&p, FEED_FD, &j->schema, &j->options, &err) ==
         PS_OK);
    result = take_steps(j, p, 0, steps, 0, &err);
    /* A prefix of a job that can be packed can be packed. */
    must(result == PS_OK || ends);
    if (result == PS_OK && ends)
        must(ps_packer_flush(p, PS_FLUSH_FINISH, &err) == PS_OK);
    if (result == PS_OK) {
        result = save_to(p, state);
        must(result == PS_OK || !ends);
    }
    ps_packer_free(p);
    put_bytes(packs, feed_written()->data, feed_written()->size);
    return result;
}

static ps_result fits(const job *j, const bytes *state)
{
    ps_error err = no_error();

    return told(ps_state_fits(state->data, state->size, &j->schema,
                              &j->options, &err),
                &err);
}

/* From the beginning to the end, to verify the state. */
static ps_result prove(const job *j, const bytes *state)
{
    ps_error err = no_error();
    ps_packer *p;
    ps_result result;

    feed_clear();
    must(ps_packer_open(&p, FEED_FD, &j->schema, &j->options, &err) ==
         PS_OK);
    result = told(ps_packer_verify_replay(p, state->data, state->size, &err),
                  &err);
    if (result == PS_OK)
        result = take_steps(j, p, 0, (unsigned)j->steps.left, 0, &err);
    if (result == PS_OK)
        result = told(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    return result;
}

/* From a state to the end; the output is appended to *packs. */
static ps_result go_on(const plan *w, const bytes *state, bytes *packs)
{
    const job *j = &w->job;
    ps_error err = no_error();
    ps_state says;
    ps_packer *p;
    ps_result result =
        told(ps_state_read(state->data, state->size, &says, &err), &err);

    feed_clear();
    if (result == PS_OK)
        result = told(ps_packer_resume(&p, FEED_FD, &j->schema, &j->options,
                                       state->data, state->size, &err),
                      &err);
    must(result != PS_OK || fits(j, state) == PS_OK);
    if (result != PS_OK)
        return result;
    result = take_steps(j, p, w->stop, (unsigned)j->steps.left,
                        says.resume_from_id, &err);
    if (result == PS_OK)
        result = told(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    put_bytes(packs, feed_written()->data, feed_written()->size);
    return result;
}

/* Changes the state; true if it differs afterwards. */
static bool tamper(const plan *w, bytes *state)
{
    bytes before = {0};
    bool changed;

    put_bytes(&before, state->data, state->size);
    for (unsigned i = 0; i < MAX_CHANGES; i++) {
        size_t at = w->changes[i].at / 2 % state->size;

        if (w->changes[i].at % 2 != 0)
            at = state->size - 1 - at;
        state->data[at] ^= w->changes[i].flip;
    }
    if ((w->bits & CUT) != 0)
        state->size -= w->bits >> 2;
    if ((w->bits & SEALED) != 0)
        store_u64(state->data + state->size - 8,
                  XXH3_64bits(state->data, state->size - 8));
    changed = before.size != state->size ||
              memcmp(before.data, state->data, state->size) != 0;
    free_bytes(&before);
    return changed;
}

/* The totals of a finished stream, and a second finish. */
static ps_result end_again(const job *j, const bytes *state)
{
    ps_packer_options options = j->options;
    ps_error err = no_error();
    ps_state says;
    ps_packer *p;
    ps_result result =
        told(ps_packer_open_ended(&p, &j->schema, &options, state->data,
                                  state->size, &err),
             &err);

    if (result != PS_OK)
        return result;
    options.first_pack = ps_packer_totals(p)->packs;
    ps_packer_free(p);
    must(ps_state_read(state->data, state->size, &says, &err) == PS_OK);
    must(says.finished && says.packs == options.first_pack);
    feed_clear();
    result = told(ps_packer_resume(&p, FEED_FD, &j->schema, &options,
                                   state->data, state->size, &err),
                  &err);
    if (result != PS_OK)
        return result;
    result = told(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    /* The header, and END with an empty index. */
    must(result != PS_OK || feed_written()->size == PS_PACK_HEADER_BYTES + 256);
    ps_packer_free(p);
    return result;
}

/* The same with the state of a finished stream. */
static void tell_again(const plan *w, bytes *end)
{
    ps_error err = no_error();
    ps_state says;
    bool may_begin_later;

    must(ps_state_read(end->data, end->size, &says, &err) == PS_OK);
    may_begin_later = says.packs > 0 && !w->job.options.compressed;
    must((end_again(&w->job, end) == PS_OK) == may_begin_later);
    if (tamper(w, end) && end_again(&w->job, end) == PS_OK)
        must((w->bits & SEALED) != 0);
}

/* A stop and a resumption, valid and not; `packs` is the expected output. */
static void stop_and_go(const plan *w, const bytes *packs)
{
    plan other = *w; /* with options that are refused */
    bytes first = {0};
    bytes rest = {0};
    bytes state = {0};
    ps_result result;

    if (pack(&w->job, w->stop, false, &first, &state) == PS_OK) {
        must(go_on(w, &state, &rest) == PS_OK);
        must(first.size + rest.size == packs->size);
        must(memcmp(first.data, packs->data, first.size) == 0);
        must(memcmp(rest.data, packs->data + first.size, rest.size) == 0);
        must(prove(&w->job, &state) == PS_OK);
        other.job.options.capacity++;
        rest.size = 0;
        must(go_on(&other, &state, &rest) == PS_ERR_ARGUMENT);
        must(fits(&other.job, &state) == PS_ERR_ARGUMENT);
        if (tamper(w, &state)) {
            result = go_on(w, &state, &rest);
            must(result != PS_OK || (w->bits & SEALED) != 0);
            result = prove(&w->job, &state);
            must(result != PS_OK || (w->bits & SEALED) != 0);
        }
    }
    free_bytes(&first);
    free_bytes(&rest);
    free_bytes(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    plan w = take_plan(&in);
    ps_error err = no_error();
    bytes packs = {0};
    bytes end = {0};

    if (told(ps_packer_check(&w.job.schema, &w.job.options, &err), &err) ==
            PS_OK &&
        pack(&w.job, (unsigned)w.job.steps.left, true, &packs, &end) ==
            PS_OK) {
        stop_and_go(&w, &packs);
        tell_again(&w, &end);
    }
    free_bytes(&packs);
    free_bytes(&end);
    return 0;
}
