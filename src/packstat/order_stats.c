/*
 * order_stats.c - whether the lengths of sequences hang on where they are.
 *
 * Sums about the mean are merged pack by pack (Chan, Golub and LeVeque
 * 1983), as plain sums of squares would lose their digits on long files.
 *
 * SPDX-License-Identifier: MIT
 */

#include "order_stats.h"

#include <math.h>

/* The squares of a pack's lengths about their mean. */
static double spread(const ps_pack_info *info, const ps_pack *pack,
                     double mean)
{
    double sum = 0;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        double d = ps_pack_piece(info, pack, i).n_tok - mean;

        sum += d * d;
    }
    return sum;
}

/* All sequences of a pack are in one place. */
static void add_sequences(order *o, double n, double mean, double squares)
{
    double all = o->sequences + n;
    double weight = o->sequences * n / all;
    double place = o->packs - o->mean_place;
    double length = mean - o->mean_length;

    o->places_squared += weight * place * place;
    o->lengths_squared += weight * length * length + squares;
    o->products += weight * place * length;
    o->mean_place += place * n / all;
    o->mean_length += length * n / all;
    o->sequences = all;
}

static void add_mean(order *o, double mean)
{
    double above;

    if (o->packs == 0)
        o->first = mean;
    above = mean - o->first;
    o->sum += above;
    o->squared += above * above;
    o->lagged += above * o->last;
    o->last = above;
}

void order_add(order *o, const ps_pack_info *info, const ps_pack *pack)
{
    double mean = (double)pack->n_tok / (double)pack->n_seq;

    add_sequences(o, pack->n_seq, mean, spread(info, pack, mean));
    add_mean(o, mean);
    o->packs++;
}

bool order_by_place(const order *o, double *correlation)
{
    double scale = sqrt(o->places_squared) * sqrt(o->lengths_squared);

    if (scale <= 0)
        return false;
    *correlation = o->products / scale;
    return true;
}

/*
 * With m the mean of all, the products of neighbours about m add up to
 * lagged - m * (sum - first) - m * (sum - last) + (n - 1) * m * m, where the
 * first is 0.
 */
bool order_by_neighbour(const order *o, double *correlation)
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
