/*
 * dropout_sites.h - number the dropout layers of the network.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_DROPOUT_SITES_H
#define BERT_DROPOUT_SITES_H

#include <stdint.h>

#define BERT_SITE_EMBEDDING 0

/* Sites within an encoder layer. */
enum { BERT_SITE_SCORES, BERT_SITE_ATTENTION, BERT_SITE_OUTPUT };

static inline uint32_t bert_dropout_site(uint32_t layer, uint32_t place)
{
    return 1 + 3 * layer + place;
}

#endif /* BERT_DROPOUT_SITES_H */
