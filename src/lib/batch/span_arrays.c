/*
 * span_arrays.c - arrays derived from the boundaries of packs and therefore not
 * stored: positions, segments, labels, weights.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/spans.h"

/* Iterator over the packs of a view. */
typedef struct walk {
    const ps_spans *spans;
    uint32_t pack;       /* next pack */
    uint32_t first;      /* first span of the current pack */
    uint32_t seqs;       /* end of the spans of its sequences */
    uint32_t end;        /* end of all its spans */
    uint32_t place;      /* index of its first sequence or slot */
    uint32_t next_place; /* index of the next pack's first sequence or slot */
} walk;

/* Advances to the next pack.  Returns false after the last pack. */
static bool walk_next(walk *w)
{
    if (w->pack == w->spans->n_packs)
        return false;
    w->first = w->end;
    w->seqs = w->first + w->spans->n_seqs[w->pack];
    w->end = w->first + ps_spans_of(w->spans, w->pack);
    w->place = w->next_place;
    w->next_place += ps_spans_places(w->spans, w->pack);
    w->pack++;
    return true;
}

/* Row after the last token of span `s`.  A ghost has no tokens. */
static int32_t tokens_end(const walk *w, uint32_t s)
{
    const ps_spans *spans = w->spans;

    if (s >= w->seqs)
        return spans->cu[s];
    if (spans->lengths == NULL)
        return spans->cu[s + 1];
    return spans->cu[s] + spans->lengths[w->place + (s - w->first)];
}

/* ---------------------------------------------------------------------
 * One value per row
 */

static void fill(int32_t begin, int32_t end, int32_t value, int32_t *to)
{
    for (int32_t row = begin; row < end; row++)
        to[row] = value;
}

void ps_spans_positions(const ps_spans *spans, ps_ghost ghost,
                        int32_t *positions)
{
    walk w = {.spans = spans};

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.end; s++) {
            for (int32_t row = spans->cu[s]; row < spans->cu[s + 1]; row++)
                positions[row] = row - spans->cu[s];
            if (ghost == PS_GHOST_ZERO)
                fill(tokens_end(&w, s), spans->cu[s + 1], 0, positions);
        }
}

void ps_spans_segment_ids(const ps_spans *spans, int32_t *ids)
{
    walk w = {.spans = spans};

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.end; s++) {
            const int32_t end = tokens_end(&w, s);

            fill(spans->cu[s], end, (int32_t)(s - w.first) + 1, ids);
            fill(end, spans->cu[s + 1], 0, ids);
        }
}

void ps_spans_next_labels(const ps_spans *spans,
                          ps_label_convention convention,
                          const int32_t *tokens, int32_t *labels)
{
    const bool shifted = convention == PS_LABELS_SHIFTED;
    walk w = {.spans = spans};

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.end; s++) {
            const int32_t begin = spans->cu[s];
            const int32_t end = tokens_end(&w, s);

            fill(begin, spans->cu[s + 1], PS_NO_LABEL, labels);
            for (int32_t row = begin + 1; row < end; row++)
                labels[shifted ? row - 1 : row] = tokens[row];
        }
}

/* ---------------------------------------------------------------------
 * Rows of sequences
 */

void ps_spans_first_rows(const ps_spans *spans, int32_t empty, int32_t *rows)
{
    walk w = {.spans = spans};

    while (walk_next(&w)) {
        const uint32_t places = ps_spans_places(spans, w.pack - 1);

        for (uint32_t i = 0; i < places; i++)
            *rows++ = w.first + i < w.seqs ? spans->cu[w.first + i] : empty;
    }
}

/* Number of tokens in a span that have a label. */
static uint32_t labelled(const walk *w, uint32_t s, const int32_t *labels,
                         int32_t ignore)
{
    const int32_t end = tokens_end(w, s);
    uint32_t n = 0;

    for (int32_t row = w->spans->cu[s]; row < end; row++)
        n += labels[row] != ignore;
    return n;
}

ps_targets ps_spans_targets(const ps_spans *spans, const int32_t *labels,
                            int32_t ignore)
{
    ps_targets targets = {0};
    walk w = {.spans = spans};

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.seqs; s++) {
            uint32_t n = labelled(&w, s, labels, ignore);

            targets.tokens += n;
            targets.sequences += n > 0;
        }
    return targets;
}

uint32_t ps_spans_target_rows(const ps_spans *spans, const int32_t *labels,
                              int32_t ignore, int32_t *rows,
                              int32_t *sequences)
{
    uint32_t n = 0;
    int32_t sequence = 0;
    walk w = {.spans = spans};

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.seqs; s++, sequence++)
            for (int32_t row = spans->cu[s]; row < tokens_end(&w, s); row++) {
                if (labels[row] == ignore)
                    continue;
                if (sequences != NULL)
                    sequences[n] = sequence;
                rows[n++] = row;
            }
    return n;
}

/* ---------------------------------------------------------------------
 * Weights
 */

void ps_spans_weights(const ps_spans *spans, const int32_t *labels,
                      int32_t ignore, ps_loss loss, uint64_t n,
                      float *weights)
{
    walk w = {.spans = spans};

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.end; s++) {
            const uint32_t m = labelled(&w, s, labels, ignore);
            const double parts = loss == PS_LOSS_PER_SEQUENCE
                                     ? (double)m * (double)n
                                     : (double)n;
            const float weight = m == 0 || n == 0 ? 0 : (float)(1 / parts);
            const int32_t end = tokens_end(&w, s);

            for (int32_t row = spans->cu[s]; row < spans->cu[s + 1]; row++) {
                const bool counts = row < end && labels[row] != ignore;

                weights[row] = counts ? weight : 0;
            }
        }
}
