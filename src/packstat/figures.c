/*
 * figures.c - statistics collected while reading a stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/figures.h"

#include <inttypes.h>
#include <math.h>

bool histogram_add_count(histogram *h, uint32_t value, uint64_t count)
{
    ps_error err;

    if (h->all == NULL && ps_histogram_open(&h->all, &err) != PS_OK)
        return false;
    return ps_histogram_add(h->all, value, count, &err) == PS_OK;
}

bool histogram_add(histogram *h, uint32_t value)
{
    if (value >= HISTOGRAM_SMALL)
        return histogram_add_count(h, value, 1);
    h->small[value]++;
    return true;
}

bool histogram_finish(histogram *h)
{
    ps_error err;

    if (h->all == NULL && ps_histogram_open(&h->all, &err) != PS_OK)
        return false;
    for (uint32_t value = 1; value < HISTOGRAM_SMALL; value++) {
        if (h->small[value] != 0 &&
            !histogram_add_count(h, value, h->small[value]))
            return false;
        h->small[value] = 0;
    }
    return true;
}

void histogram_free(histogram *h)
{
    ps_histogram_free(h->all);
    h->all = NULL;
}

void histogram_json(FILE *out, const char *key, const histogram *h,
                    bool counted)
{
    fprintf(out, ", \"%s\": %s", key, counted ? "[" : "null");
    for (size_t i = 0; counted && i < ps_histogram_size(h->all); i++)
        fprintf(out, "%s[%" PRIu32 ", %" PRIu64 "]", i == 0 ? "" : ", ",
                ps_histogram_length(h->all, i), ps_histogram_count(h->all, i));
    if (counted)
        putc(']', out);
}

void stream_parts_add(stream_parts *p, uint32_t tokens)
{
    if (p->n > 0 && p->packs[p->n - 1] >> p->shift == 0) {
        p->packs[p->n - 1]++;
        p->tokens[p->n - 1] += tokens;
        return;
    }
    if (p->n == MAX_PARTS) {
        p->n /= 2;
        p->shift++;
        for (unsigned i = 0; i < p->n; i++) {
            p->packs[i] = p->packs[2 * i] + p->packs[2 * i + 1];
            p->tokens[i] = p->tokens[2 * i] + p->tokens[2 * i + 1];
        }
    }
    p->packs[p->n] = 1;
    p->tokens[p->n++] = tokens;
}

void stream_parts_json(FILE *out, const stream_parts *p, bool counted)
{
    fprintf(out, ", \"parts\": %s", counted ? "[" : "null");
    for (unsigned i = 0; counted && i < p->n; i++)
        fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", i == 0 ? "" : ", ",
                p->packs[i], p->tokens[i]);
    if (counted)
        putc(']', out);
}

/*
 * Merges sums of squares about the mean, pack by pack (Chan, Golub and LeVeque
 * 1983), since plain sums of squares would lose precision on long files.
 */
void order_stats_add(order_stats *o, const ps_pack_info *info,
                     const ps_pack *pack)
{
    const double n = pack->n_seq;
    const double mean = (double)pack->n_tok / (double)pack->n_seq;
    const double all = o->sequences + n;
    const double weight = o->sequences * n / all;
    const double place = o->packs - o->mean_place;
    const double length = mean - o->mean_length;
    double squares = 0; /* sum of squares of the lengths about their mean */
    double above;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        double d = ps_pack_piece(info, pack, i).n_tok - mean;

        squares += d * d;
    }

    /* All sequences of a pack have the same position. */
    o->places_squared += weight * place * place;
    o->lengths_squared += weight * length * length + squares;
    o->products += weight * place * length;
    o->mean_place += place * n / all;
    o->mean_length += length * n / all;
    o->sequences = all;

    if (o->packs == 0)
        o->first = mean;
    above = mean - o->first;
    o->sum += above;
    o->squared += above * above;
    o->lagged += above * o->last;
    o->last = above;
    o->packs++;
}

bool order_stats_place(const order_stats *o, double *correlation)
{
    double scale = sqrt(o->places_squared) * sqrt(o->lengths_squared);

    if (scale <= 0)
        return false;
    *correlation = o->products / scale;
    return true;
}

/*
 * If m is the mean of all packs, the sum of products of neighbours about m is
 * lagged - m * (sum - first) - m * (sum - last) + (n - 1) * m * m, where first
 * is 0.
 */
bool order_stats_neighbour(const order_stats *o, double *correlation)
{
    double m = o->packs > 0 ? o->sum / o->packs : 0;
    double squared = o->squared - m * o->sum;
    double lagged =
        o->lagged - m * (2 * o->sum - o->last) + (o->packs - 1) * m * m;

    if (o->packs < 2 || squared <= 0)
        return false;
    *correlation = lagged / squared;
    return true;
}
