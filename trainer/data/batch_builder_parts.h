/*
 * batch_builder_parts.h - the members of a batch builder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_BATCH_BUILDER_PARTS_H
#define TR_DATA_BATCH_BUILDER_PARTS_H

#include "data/batch_builder.h"
#include "data/masking.h"

/* Channels read from a pack. */
enum { TOKENS, TYPES, LABELS, NSP, SOURCE, MASKS, CHANNELS = MASKS + 3 };

typedef struct channel {
    const char *name;
    ps_kind kind;
    int64_t min, end; /* range of valid values: min to end - 1 */
    int32_t without;    /* default if the channel is absent; also valid */
    const ps_field *field; /* NULL if the channel is absent */
} channel;

/* The arrays of a batch: type, name, dimension. */
#define ARRAYS(X)                     \
    X(int32_t, token, rows)           \
    X(int32_t, type, rows)            \
    X(int32_t, position, rows)        \
    X(int32_t, segment, rows)         \
    X(int32_t, place, rows)           \
    X(int32_t, label, rows)           \
    X(int32_t, mlm_row, rows)         \
    X(int32_t, mlm_label, rows)       \
    X(int32_t, mlm_seq, rows)         \
    X(real, mlm_weight, rows)         \
    X(int32_t, cls_row, rows)         \
    X(int32_t, nsp_label, rows)       \
    X(real, nsp_weight, rows)         \
    X(int32_t, source, rows)          \
    X(int32_t, cu, rows + packs + 1)  \
    X(uint32_t, n_seqs, packs)        \
    X(uint32_t, pack_row, packs)      \
    X(uint32_t, places, capacity)     \
    X(int32_t, mask, capacity)        \
    X(int64_t, wide, capacity)

struct tr_builder {
    tr_loader_options options;
    const ps_pack_info *info;
    channel channels[CHANNELS];
    tr_masking masking;
    uint32_t vocab_size;
    uint32_t capacity;
    uint32_t pad_id;
    uint32_t room;    /* capacity of the arrays, in packs */
    tr_batch_counts count;
    tr_batch_totals totals;
    ps_spans spans;   /* a view of all packs in the batch */
    tr_batch batch; /* a view of the arrays */
#define MEMBER(type, name, count) type *name;
    ARRAYS(MEMBER)
};

/* Doubles the capacity, to at least one pack.  See tr_builder_reserve. */
PS_MUST_CHECK ps_result tr_builder_grow(tr_builder *f, ps_error *err);

/* Copies a channel and checks its values.  Padding is ignored. */
PS_MUST_CHECK ps_result tr_builder_take(const tr_builder *f,
                                        const ps_pack *pack,
                                        const ps_spans *spans,
                                        const channel *c, int32_t *to,
                                        ps_error *err);

/* Sets the labels of the pack that is being added, from its channels. */
PS_MUST_CHECK ps_result tr_builder_label(const tr_builder *f,
                                         const ps_pack *pack,
                                         const ps_spans *spans, uint64_t key,
                                         ps_error *err);

/*
 * Sets the padding of the pack that is being added, because padding in the
 * stream has undefined values.
 */
void tr_builder_pad(const tr_builder *f, uint32_t n_tok);

#endif /* TR_DATA_BATCH_BUILDER_PARTS_H */
