/*
 * algorithms.c - the algorithms by name.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/algorithms.h"

#include <string.h>

static const struct {
    const char *name;
    ps_algorithm algorithm;
} table[ALGORITHMS] = {
    {"none", PS_PLAN_NONE},     {"sorted", PS_PLAN_SORTED},
    {"greedy", PS_PLAN_GREEDY}, {"ffd", PS_PLAN_FFD},
    {"bfd", PS_PLAN_BFD},       {"spfhp", PS_PLAN_SPFHP},
    {"lpfhp", PS_PLAN_LPFHP},   {"nnlshp", PS_PLAN_NNLSHP},
    {"ennlshp", PS_PLAN_ENNLSHP},
};

ps_algorithm algorithm_at(unsigned i)
{
    return table[i].algorithm;
}

const char *algorithm_name(ps_algorithm algorithm)
{
    unsigned i = 0;

    while (i < ALGORITHMS - 1 && table[i].algorithm != algorithm)
        i++;
    return table[i].name;
}

bool algorithm_find(const char *name, ps_algorithm *algorithm)
{
    for (unsigned i = 0; i < ALGORITHMS; i++)
        if (strcmp(name, table[i].name) == 0) {
            *algorithm = table[i].algorithm;
            return true;
        }
    return false;
}

bool algorithm_is_flat(ps_algorithm algorithm)
{
    return algorithm == PS_PLAN_NONE || algorithm == PS_PLAN_SORTED;
}
