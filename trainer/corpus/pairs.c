/*
 * pairs.c - make sentence pairs for next-sentence prediction.
 *
 * SPDX-License-Identifier: MIT
 */
#include "corpus/pairs.h"

#include "data/rng.h"

pairs pairs_open(const pair_options *options, const document *of,
                 uint64_t seed)
{
    pairs p = {.options = *options,
               .of = of,
               .random = seed,
               .target = options->length};

    if (tr_rng_chance(&p.random, options->short_share))
        p.target = 2 + tr_rng_below(&p.random, options->length - 1);
    return p;
}

static pair_text text_of(const document *d, uint32_t first, uint32_t count)
{
    return (pair_text){.token = d->token + d->begin[first],
                       .n = document_tokens(d, first, count)};
}

/* Number of sentences with at least `tokens` tokens, or all that are left. */
static uint32_t sentences_for(const document *d, uint32_t first,
                              uint32_t tokens)
{
    uint32_t count = 1;

    while (first + count < d->n_sentences &&
           document_tokens(d, first, count) < tokens)
        count++;
    return count;
}

static pair_text from_elsewhere(pairs *p, const document *other,
                                uint32_t used)
{
    uint32_t tokens = used < p->target ? p->target - used : 1;
    uint32_t first = tr_rng_below(&p->random, other->n_sentences);

    return text_of(other, first, sentences_for(other, first, tokens));
}

/* Drops tokens from the start or end of the longer text. */
static void shorten(pairs *p, pair *to)
{
    while (to->first.n + to->second.n > p->options.length) {
        pair_text *t = to->first.n > to->second.n ? &to->first : &to->second;

        if (tr_rng_chance(&p->random, 0.5))
            t->token++;
        t->n--;
    }
}

bool pairs_next(pairs *p, pair_other *other, void *context, pair *to)
{
    uint32_t count, first = 1;
    const document *elsewhere;

    if (p->next >= p->of->n_sentences)
        return false;
    count = sentences_for(p->of, p->next, p->target);
    if (count > 1)
        first = 1 + tr_rng_below(&p->random, count - 1);
    *to = (pair){.first = text_of(p->of, p->next, first), .label = -1};
    elsewhere = other(context, &p->random);
    if (elsewhere != NULL && (count == 1 || tr_rng_chance(&p->random, 0.5))) {
        to->second = from_elsewhere(p, elsewhere, to->first.n);
        to->label = 1;
        /* Unused sentences start the next pair. */
        count = first;
    } else if (count > 1) {
        to->second = text_of(p->of, p->next + first, count - first);
        to->label = 0;
    }
    p->next += count;
    shorten(p, to);
    return true;
}
