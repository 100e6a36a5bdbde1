/*
 * totals.c - maintain and check ps_totals.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/totals.h"

#include <inttypes.h>

#include "base/error.h"
#include "bytes.h"

/* The members in the order of their encoding. */
#define TOTALS_U64(X, t, digest)                                        \
    X((t)->packs)                                                       \
    X((t)->sequences)                                                   \
    X((t)->tokens)                                                      \
    X(digest)                                                           \
    X((t)->input_sequences)                                             \
    X((t)->input_tokens)                                                \
    X((t)->rejected_sequences)                                          \
    X((t)->rejected_tokens)                                             \
    X((t)->truncated_sequences)                                         \
    X((t)->truncated_tokens)                                            \
    X((t)->split_sequences)                                             \
    X((t)->extra_pieces)                                                \
    X((t)->max_displacement)
#define TOTALS_U32(X, t)                                                \
    X((t)->max_seqlen)                                                  \
    X((t)->max_depth)                                                   \
    X((t)->min_fill)

#define COUNT_8(field) +8
#define COUNT_4(field) +4
_Static_assert(0 TOTALS_U64(COUNT_8, 0, 0) TOTALS_U32(COUNT_4, 0) ==
                   PS_TOTALS_BYTES,
               "every number has its place");

void ps_totals_encode(const ps_totals *totals, uint64_t digest,
                      unsigned char to[PS_TOTALS_BYTES])
{
#define STORE_U64(field)                                                \
    store_u64(to, field);                                               \
    to += 8;
#define STORE_U32(field)                                                \
    store_u32(to, field);                                               \
    to += 4;
    TOTALS_U64(STORE_U64, totals, digest)
    TOTALS_U32(STORE_U32, totals)
#undef STORE_U64
#undef STORE_U32
}

void ps_totals_decode(const unsigned char from[PS_TOTALS_BYTES],
                      ps_totals *totals, uint64_t *digest)
{
#define LOAD_U64(field)                                                 \
    field = load_u64(from);                                             \
    from += 8;
#define LOAD_U32(field)                                                 \
    field = load_u32(from);                                             \
    from += 4;
    TOTALS_U64(LOAD_U64, totals, *digest)
    TOTALS_U32(LOAD_U32, totals)
#undef LOAD_U64
#undef LOAD_U32
}

/* Adds `n` to *sum.  Returns false on overflow, possible with a bad END. */
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

const char *ps_reject_name(ps_reject reason)
{
    static const char *const names[PS_REJECTS] = {
        [PS_REJECT_OVERLONG] = "overlong",
        [PS_REJECT_EMPTY] = "empty",
        [PS_REJECT_OUT_OF_VOCAB] = "out_of_vocab",
    };

    return (unsigned)reason < PS_REJECTS ? names[reason] : NULL;
}

uint64_t ps_lower_bound(uint64_t tokens, uint32_t capacity)
{
    if (capacity == 0)
        return 0;
    return tokens / capacity + (tokens % capacity != 0);
}

void ps_totals_add_pack(ps_totals *t, uint32_t n_seq, uint32_t n_tok,
                        uint32_t max_seqlen)
{
    if (t->packs == 0 || n_tok < t->min_fill)
        t->min_fill = n_tok;
    if (n_seq > t->max_depth)
        t->max_depth = n_seq;
    if (max_seqlen > t->max_seqlen)
        t->max_seqlen = max_seqlen;
    t->packs++;
    t->sequences += n_seq;
    t->tokens += n_tok;
}

bool ps_totals_add(ps_totals *t, const ps_totals *other)
{
    if (other->packs > 0 &&
        (t->packs == 0 || other->min_fill < t->min_fill))
        t->min_fill = other->min_fill;
    if (other->max_depth > t->max_depth)
        t->max_depth = other->max_depth;
    if (other->max_seqlen > t->max_seqlen)
        t->max_seqlen = other->max_seqlen;
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

/* A number declared by END or the header, and its actual value. */
typedef struct total {
    const char *name;
    uint64_t declared;
    uint64_t seen;
} total;

static ps_result compare(const char *who, const total *totals, size_t n,
                         ps_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (totals[i].declared != totals[i].seen)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "%s declares %s as %" PRIu64 ", but it is %" PRIu64,
                           who, totals[i].name, totals[i].declared,
                           totals[i].seen);
    return PS_OK;
}

ps_result ps_totals_compare(const ps_totals *end, const ps_totals *seen,
                            ps_error *err)
{
    const total totals[] = {
        {"packs", end->packs, seen->packs},
        {"sequences", end->sequences, seen->sequences},
        {"tokens", end->tokens, seen->tokens},
        {"max_seqlen", end->max_seqlen, seen->max_seqlen},
        {"max_depth", end->max_depth, seen->max_depth},
        {"min_fill", end->min_fill, seen->min_fill},
        {"max_displacement", end->max_displacement, seen->max_displacement},
    };

    return compare("END", totals, sizeof totals / sizeof totals[0], err);
}

ps_result ps_totals_check(const ps_pack_info *info, const ps_totals *end,
                          ps_error *err)
{
    total totals[] = {
        {"n_packs", info->n_packs, end->packs},
        {"n_sequences", info->n_sequences, end->sequences},
        {"n_tokens", info->n_tokens, end->tokens},
        {"max_seqlen", info->max_seqlen, end->max_seqlen},
        {"min_fill", info->min_fill, end->min_fill},
    };
    const size_t n = sizeof totals / sizeof totals[0];

    if (!ps_totals_balance(end))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END does not account for every input sequence");
    if (end->max_depth > ps_max_sequences(info))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END declares a pack of %" PRIu32 " sequences, but the "
                       "depth is %" PRIu32,
                       end->max_depth, ps_max_sequences(info));
    /* An unknown count matches any value. */
    for (size_t i = 0; i < n; i++)
        if (totals[i].declared == PS_UNKNOWN)
            totals[i].declared = totals[i].seen;
    return compare("the header", totals, n, err);
}
