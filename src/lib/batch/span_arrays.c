/*
 * span_arrays.c - arrays that follow from the boundaries of packs, and so are
 * not stored: positions, segments, labels, weights.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/spans.h"

/* A walk over the spans, pack by pack. */
typedef struct walk {
    const ps_spans *spans;
    uint32_t pack;  /* the next one */
    uint32_t first; /* span of this pack, */
    uint32_t seqs;  /* its first that is no sequence, */
    uint32_t end;   /* and the first of the next pack */
    uint32_t place; /* of its first sequence, */
    uint32_t next_place; /* and of the next pack's */
} walk;

static walk walk_begin(const ps_spans *spans)
{
    return (walk){.spans = spans};
}

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

/* The row behind the last token of the sequence in span `s`. */
static int32_t tokens_end(const walk *w, uint32_t s)
{
    const ps_spans *spans = w->spans;

    if (spans->lengths == NULL)
        return spans->cu[s + 1];
    return spans->cu[s] + spans->lengths[w->place + (s - w->first)];
}

/* ---------------------------------------------------------------------
 * A value for each row
 */

static void fill(int32_t begin, int32_t end, int32_t value, int32_t *to)
{
    for (int32_t row = begin; row < end; row++)
        to[row] = value;
}

/* From the end of a sequence's tokens, or of all of a ghost. */
static void fill_padding(const walk *w, uint32_t s, int32_t value,
                         int32_t *to)
{
    fill(s < w->seqs ? tokens_end(w, s) : w->spans->cu[s],
         w->spans->cu[s + 1], value, to);
}

static void count(const ps_spans *spans, uint32_t s, int32_t *to)
{
    for (int32_t row = spans->cu[s]; row < spans->cu[s + 1]; row++)
        to[row] = row - spans->cu[s];
}

void ps_spans_positions(const ps_spans *spans, ps_ghost ghost,
                        int32_t *positions)
{
    walk w = walk_begin(spans);

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.end; s++) {
            count(spans, s, positions);
            if (ghost == PS_GHOST_ZERO)
                fill_padding(&w, s, 0, positions);
        }
}

void ps_spans_segment_ids(const ps_spans *spans, int32_t *ids)
{
    walk w = walk_begin(spans);

    while (walk_next(&w))
        for (uint32_t s = w.first; s < w.end; s++) {
            if (s < w.seqs)
                fill(spans->cu[s], tokens_end(&w, s),
                     (int32_t)(s - w.first) + 1, ids);
            fill_padding(&w, s, 0, ids);
        }
}

/* Labels of the sequence in span `s`, which has a row at least. */
static void label(const walk *w, uint32_t s, bool shifted,
                  const int32_t *tokens, int32_t *labels)
{
    const int32_t begin = w->spans->cu[s];
    const int32_t end = tokens_end(w, s);

    fill(begin, w->spans->cu[s + 1], PS_NO_LABEL, labels);
    for (int32_t row = begin + 1; row < end; row++)
        labels[shifted ? row - 1 : row] = tokens[row];
}

void ps_spans_next_labels(const ps_spans *spans,
                          ps_label_convention convention,
                          const int32_t *tokens, int32_t *labels)
{
    const bool shifted = convention == PS_LABELS_SHIFTED;
    walk w = walk_begin(spans);

    while (walk_next(&w)) {
        for (uint32_t s = w.first; s < w.seqs; s++)
            label(&w, s, shifted, tokens, labels);
        for (uint32_t s = w.seqs; s < w.end; s++)
            fill_padding(&w, s, PS_NO_LABEL, labels);
    }
}

/* ---------------------------------------------------------------------
 * Rows of the sequences
 */

void ps_spans_first_rows(const ps_spans *spans, int32_t empty, int32_t *rows)
{
    walk w = walk_begin(spans);

    while (walk_next(&w)) {
        const uint32_t places = ps_spans_places(spans, w.pack - 1);

        for (uint32_t i = 0; i < places; i++)
            *rows++ = w.first + i < w.seqs ? spans->cu[w.first + i] : empty;
    }
}

/* How many tokens of the sequence in a span have a label. */
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
    walk w = walk_begin(spans);

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
    walk w = walk_begin(spans);

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

/* Those up to `end` with a label get `weight`, all others of a span 0. */
static void weigh(const ps_spans *spans, uint32_t s, int32_t end,
                  const int32_t *labels, int32_t ignore, float weight,
                  float *weights)
{
    for (int32_t row = spans->cu[s]; row < spans->cu[s + 1]; row++)
        weights[row] = row < end && labels[row] != ignore ? weight : 0;
}

/* The weight of a label of a sequence that has `m`. */
static float weight_of(uint32_t m, ps_loss loss, uint64_t n)
{
    if (m == 0 || n == 0)
        return 0;
    return (float)(1 / (loss == PS_LOSS_PER_SEQUENCE ? (double)m * (double)n
                                                     : (double)n));
}

void ps_spans_weights(const ps_spans *spans, const int32_t *labels,
                      int32_t ignore, ps_loss loss, uint64_t n,
                      float *weights)
{
    walk w = walk_begin(spans);

    while (walk_next(&w)) {
        for (uint32_t s = w.first; s < w.seqs; s++) {
            uint32_t m = labelled(&w, s, labels, ignore);

            weigh(spans, s, tokens_end(&w, s), labels, ignore,
                  weight_of(m, loss, n), weights);
        }
        for (uint32_t s = w.seqs; s < w.end; s++)
            weigh(spans, s, spans->cu[s], labels, ignore, 0, weights);
    }
}
