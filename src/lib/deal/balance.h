/*
 * balance.h - sequences in packs, and the packs of ranks, while they are made
 * even.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_DEAL_BALANCE_H
#define LIB_DEAL_BALANCE_H

#include "packstream.h"

/* A sequence. */
typedef struct ps_share_item {
    uint64_t cost;
    uint32_t length; /* aligned, tokens */
    uint32_t id;     /* number of the sequence */
    uint32_t pack;
    uint32_t next; /* while packs are made: the next item of the pack */
} ps_share_item;

typedef struct ps_share_pack {
    uint64_t cost;
    uint32_t room;  /* unused tokens */
    uint32_t n;     /* sequences */
    uint32_t first; /* its shortest item while packs are made; its number */
} ps_share_pack;

/* All sequences and packs of a step. */
typedef struct ps_shares {
    uint32_t ranks;
    uint32_t n;       /* sequences */
    uint32_t n_packs; /* a multiple of `ranks` */
    uint64_t cost;    /* of all sequences */
    ps_share_item *items; /* [n], longest first */
    ps_share_pack *packs;
    uint32_t *rank_of; /* [n_packs] */
} ps_shares;

/*
 * Moves and swaps sequences between packs of different ranks, as long as that
 * lowers the cost of the costliest rank and no pack exceeds the capacity or
 * becomes empty.  Changes the order of the items.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_shares_even(ps_shares *shares, ps_error *err);

#endif
