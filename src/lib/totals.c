/*
 * totals.c - keeping ps_totals, and what follows from them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "totals.h"

/* *sum += n; false if it does not fit.  END is made by others. */
static bool add(uint64_t *sum, uint64_t n)
{
    *sum += n;
    return *sum >= n;
}

bool ps_totals_balance(const ps_totals *t)
{
    uint64_t sequences = t->sequences;
    uint64_t tokens = t->tokens;

    if (t->extra_pieces > sequences)
        return false;
    sequences -= t->extra_pieces;
    return add(&sequences, t->rejected_sequences) &&
           add(&tokens, t->rejected_tokens) &&
           add(&tokens, t->truncated_tokens) &&
           sequences == t->input_sequences && tokens == t->input_tokens;
}

uint64_t ps_lower_bound(uint64_t tokens, uint32_t capacity)
{
    if (capacity == 0)
        return 0;
    return tokens / capacity + (tokens % capacity != 0);
}

static void raise(uint32_t *most, uint32_t value)
{
    if (value > *most)
        *most = value;
}

static void lower(uint32_t *least, bool first, uint32_t value)
{
    if (first || value < *least)
        *least = value;
}

void ps_totals_add_pack(ps_totals *t, uint32_t n_seq, uint32_t n_tok,
                        uint32_t max_seqlen)
{
    lower(&t->min_fill, t->packs == 0, n_tok);
    raise(&t->max_depth, n_seq);
    raise(&t->max_seqlen, max_seqlen);
    t->packs++;
    t->sequences += n_seq;
    t->tokens += n_tok;
}

bool ps_totals_add(ps_totals *t, const ps_totals *other)
{
    if (other->packs > 0)
        lower(&t->min_fill, t->packs == 0, other->min_fill);
    raise(&t->max_depth, other->max_depth);
    raise(&t->max_seqlen, other->max_seqlen);
    if (other->max_displacement > t->max_displacement)
        t->max_displacement = other->max_displacement;
    return add(&t->packs, other->packs) &&
           add(&t->sequences, other->sequences) &&
           add(&t->tokens, other->tokens) &&
           add(&t->input_sequences, other->input_sequences) &&
           add(&t->input_tokens, other->input_tokens) &&
           add(&t->rejected_sequences, other->rejected_sequences) &&
           add(&t->rejected_tokens, other->rejected_tokens) &&
           add(&t->truncated_sequences, other->truncated_sequences) &&
           add(&t->truncated_tokens, other->truncated_tokens) &&
           add(&t->split_sequences, other->split_sequences) &&
           add(&t->extra_pieces, other->extra_pieces);
}
