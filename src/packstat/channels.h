/*
 * channels.h - what the channels of sequences hold: targets of a loss, and
 * how much there is of each value.
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

/* Values of one channel that are told apart; the memory for them is fixed. */
#define MAX_VALUES 1024

typedef struct value_count {
    uint64_t value; /* rises with it: see channel_figures_value */
    uint64_t sequences;
    uint64_t tokens;
} value_count;

typedef struct channel_figures {
    const ps_schema *schema;
    /* For each per-token channel: values that a loss does not ignore. */
    uint64_t targets[PS_MAX_CHANNELS];
    bool has_targets; /* there is such a channel */
    /* Sequences and tokens by the values of one per-sequence channel. */
    const ps_channel *by; /* NULL: not asked for */
    uint32_t by_index;
    uint32_t n_values;
    value_count values[MAX_VALUES]; /* ascending: those that came first */
    value_count others;
} channel_figures;

/*
 * Makes ready for sequences of `schema`, which must outlive this; `by` names
 * the channel by whose values to count, or is NULL.
 * PS_OK; PS_ERR_MAGIC: there is no such channel.
 */
ps_result channel_figures_begin(channel_figures *c, const ps_schema *schema,
                                const char *by, ps_error *err);

/* Counts the sequences of a pack; `all` are the columns of its stream. */
void channel_figures_pack(channel_figures *c, const columns *all,
                          const ps_pack_info *info, const ps_pack *pack);

/* Counts a sequence with its payload. */
void channel_figures_sequence(channel_figures *c, const ps_sequence *s);

/* A value in words; `channel` is that of the value. */
#define VALUE_BYTES 24
const char *channel_figures_value(const ps_channel *channel, uint64_t value,
                                  char text[VALUE_BYTES]);

/* The keys "targets" and "by" of a JSON object; null where not `counted`. */
void channel_figures_json(FILE *out, const channel_figures *c, bool counted);

#endif
