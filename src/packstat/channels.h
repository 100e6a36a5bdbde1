/*
 * channels.h - statistics of channels: targets of a loss, and sequences and
 * tokens per value.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_CHANNELS_H
#define PACKSTAT_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "packstat/columns.h"
#include "packstream.h"

/* Maximum number of distinct values counted separately. */
#define MAX_VALUES 1024

typedef struct value_count {
    /* in an order-preserving encoding; see channel_figures_value */
    uint64_t value;
    uint64_t sequences;
    uint64_t tokens;
} value_count;

typedef struct channel_figures {
    const ps_schema *schema;
    /* number of values that a loss does not ignore, by channel */
    uint64_t targets[PS_MAX_CHANNELS];
    bool has_targets; /* some channel has targets */
    /* per-sequence channel whose values are counted; NULL: none */
    const ps_channel *by;
    uint32_t by_index;    /* index of `by` in the schema */
    uint32_t n_values;    /* number of distinct values, at most MAX_VALUES */
    /* the first distinct values found, in ascending order */
    value_count values[MAX_VALUES];
    value_count others; /* sequences and tokens with any other value */
    uint64_t first;     /* value of the first sequence of the pack */
    uint64_t n_later;   /* sequences that are not the first of their pack */
    uint64_t n_same;    /* of them, those with the value of the first */
} channel_figures;

/* True for a number per token; a vector per token is an input, not a target. */
bool channel_has_targets(const ps_channel *channel);

/*
 * Prepares for sequences of `schema`, which must outlive `c`.  `by` is the name
 * of the channel whose values are counted, or NULL.  Returns PS_OK, or
 * PS_ERR_MAGIC if the channel does not exist.
 */
ps_result channel_figures_begin(channel_figures *c, const ps_schema *schema,
                                const char *by, ps_error *err);

/* Counts the sequences of a pack; `all` are the columns of its stream. */
void channel_figures_pack(channel_figures *c, const columns *all,
                          const ps_pack_info *info, const ps_pack *pack);

/* Counts a sequence with its payload. */
void channel_figures_sequence(channel_figures *c, const ps_sequence *s);

/* Formats a value of `channel` in `text` and returns it. */
#define VALUE_BYTES 24
const char *channel_figures_value(const ps_channel *channel, uint64_t value,
                                  char text[VALUE_BYTES]);

/*
 * Prints the keys "targets" and "by" of a JSON object; null unless `counted`.
 */
void channel_figures_json(FILE *out, const channel_figures *c, bool counted);

#endif
