/*
 * batch_builder_labels.c - the targets of a pack: masked tokens, or for causal
 * models the next tokens.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/batch_builder_parts.h"

#include <inttypes.h>
#include <string.h>

#include "data/error.h"
#include "data/rng.h"

/* Masks tokens.  The mask of a sequence does not depend on how it is packed. */
static void hide_tokens(const tr_builder *f, const ps_pack *pack, uint64_t key)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(f->info, pack, i);
        const uint32_t row = f->spans.n_rows + piece.begin;

        (void)tr_masking_apply(&f->masking, tr_rng_mix(key, piece.id),
                               piece.n_tok, f->token + row, f->label + row,
                               f->places);
    }
}

/* Targets in a pack that cannot all have kept their tokens by chance. */
#define MANY_TARGETS 32

/* Refuses labels of tokens that are not masked, which a model would copy. */
static ps_result check_masked(const tr_builder *f, const ps_pack *pack,
                              ps_error *err)
{
    const int32_t *const label = f->label + f->spans.n_rows;
    const int32_t *const token = f->token + f->spans.n_rows;
    uint32_t targets = 0;

    for (uint32_t i = 0; i < pack->n_tok; i++) {
        if (label[i] != PS_NO_LABEL && label[i] != token[i])
            return PS_OK;
        targets += label[i] != PS_NO_LABEL;
    }
    if (targets < MANY_TARGETS)
        return PS_OK;
    return tr_error(err, PS_ERR_ARGUMENT,
                    "pack %" PRIu64 " has labels, but no token is masked: BERT "
                    "and ModernBERT predict masked tokens, and mask them if "
                    "the stream has no labels", pack->index);
}

/* ---- Next tokens ---- */

/* Labels all tokens, except those that a loss mask excludes. */
static ps_result label_tokens(const tr_builder *f, const ps_pack *pack,
                              const ps_spans *spans, ps_error *err)
{
    int32_t *const label = f->label + f->spans.n_rows;
    ps_result r = PS_OK;

    memcpy(label, f->token + f->spans.n_rows, pack->n_tok * sizeof *label);
    for (int c = MASKS; c < CHANNELS && r == PS_OK; c++) {
        if (f->channels[c].field == NULL)
            continue;
        r = tr_builder_take(f, pack, spans, &f->channels[c], f->mask, err);
        for (uint32_t i = 0; i < pack->n_tok && r == PS_OK; i++)
            if (f->mask[i] == 0)
                label[i] = PS_NO_LABEL;
    }
    return r;
}

/* Moves each label to the token before it, within its sequence. */
static void shift(const tr_builder *f, const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(f->info, pack, i);
        int32_t *const label = f->label + f->spans.n_rows + piece.begin;

        if (piece.n_tok == 0)
            continue;
        memmove(label, label + 1, (piece.n_tok - 1) * sizeof *label);
        label[piece.n_tok - 1] = PS_NO_LABEL;
    }
}

ps_result tr_builder_label(const tr_builder *f, const ps_pack *pack,
                           const ps_spans *spans, uint64_t key, ps_error *err)
{
    const bool labelled = f->channels[LABELS].field != NULL;
    ps_result r = PS_OK;

    if (!f->options.causal && !labelled)
        hide_tokens(f, pack, key);
    if (!f->options.causal)
        return labelled ? check_masked(f, pack, err) : PS_OK;
    if (!labelled)
        r = label_tokens(f, pack, spans, err);
    if (!labelled || f->info->schema.labels != PS_LABELS_SHIFTED)
        shift(f, pack);
    return r;
}
