/*
 * options.c - check options and fill in defaults.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem_bound.h"
#include "bytes.h"
#include "format/version.h"
#include "io/block.h"
#include "packer/budget.h"
#include "packer/options.h"

/* With more packs, the size in bytes could exceed 64 bits. */
#define MAX_PACKS (UINT64_MAX / PS_MAX_ROW_BYTES)

/* Blocks that can always be held: the blocks being read. */
#define MIN_BLOCKS 4

/*
 * A window of default size is full when it holds both this many sequences and
 * the tokens of this many packs.
 */
#define LEAST_WINDOW UINT32_C(1024)
#define WINDOW_PACKS 64

/* Default maximum number of sequences in a window of default size. */
#define DEFAULT_MAX_WINDOW (UINT32_C(1) << 20)

/* Offsets in encoded options. */
enum {
    AT_CAPACITY = 0,
    AT_DEPTH = 4,
    AT_WINDOW = 8,
    AT_PAD_ID = 12,
    AT_OVERLONG = 16,
    AT_ORDER = 20,
    AT_SEED = 24,
    AT_POLICY = 32, /* name, NUL-padded */
    AT_MAX_WINDOW = 60,
    AT_MAX_DELAY = 64,
    AT_MAX_BYTES = 72,
    AT_EVEN_COST = 80, /* one byte */
    AT_GROUP = 81,     /* one byte: 1 + index of the channel; 0: no groups */
    AT_TOPIC = 82,     /* the same */
    AT_ALIGN = 84,
    AT_LEARNED = 88 /* hash of the histogram; 0: none */
};
#define POLICY_BYTES (AT_MAX_WINDOW - AT_POLICY)

static uint64_t hash_of_lengths(const ps_histogram *h)
{
    unsigned char text[20]; /* hash of the previous bins, then a bin */
    uint64_t hash = 0;

    for (size_t i = 0; h != NULL && i < ps_histogram_size(h); i++) {
        store_u64(text, hash);
        store_u64(text + 8, ps_histogram_count(h, i));
        store_u32(text + 16, ps_histogram_length(h, i));
        hash = ps_hash(text, sizeof text);
    }
    return hash;
}

static uint64_t hash_of_budget(uint64_t before, const ps_budget *budget)
{
    unsigned char text[20];

    store_u64(text, before);
    store_u64(text + 8, budget->limit);
    store_u32(text + 16, budget->channel);
    return ps_hash(text, sizeof text);
}

void ps_settings_encode(const ps_settings *s,
                        unsigned char to[PS_OPTIONS_BYTES])
{
    const ps_packer_options *o = &s->options;
    const char *policy = ps_policy_name(o->policy);

    memset(to, 0, PS_OPTIONS_BYTES);
    store_u32(to + AT_CAPACITY, o->capacity);
    store_u32(to + AT_DEPTH, o->depth);
    store_u32(to + AT_WINDOW, o->window);
    store_u32(to + AT_PAD_ID, o->pad_id);
    store_u32(to + AT_OVERLONG, (uint32_t)o->overlong);
    store_u32(to + AT_ORDER, (uint32_t)o->order);
    store_u64(to + AT_SEED, o->seed);
    memcpy(to + AT_POLICY, policy, strnlen(policy, POLICY_BYTES - 1));
    store_u32(to + AT_MAX_WINDOW, o->window == 0 ? o->max_window : 0);
    store_u64(to + AT_MAX_DELAY, o->max_delay);
    store_u64(to + AT_MAX_BYTES, o->max_bytes);
    to[AT_EVEN_COST] = o->even_cost;
    to[AT_GROUP] = (unsigned char)s->group;
    to[AT_TOPIC] = (unsigned char)s->topic;
    store_u32(to + AT_ALIGN, o->align > 1 ? o->align : 0);
    store_u64(to + AT_LEARNED, s->learned);
}

ps_result ps_settings_compare(const unsigned char *then,
                              const unsigned char *now, ps_error *err)
{
    static const struct {
        const char *name;
        uint8_t at;
        uint8_t bytes;
        const char *words[4]; /* names of the values 0 to 3, if any */
    } fields[] = {
        {"capacity", AT_CAPACITY, 4, {0}},
        {"depth", AT_DEPTH, 4, {"unlimited"}},
        {"align", AT_ALIGN, 4, {"1"}},
        {"window", AT_WINDOW, 4, {"of default size"}},
        {"max_window", AT_MAX_WINDOW, 4, {0}},
        {"overlong", AT_OVERLONG, 4, {"error", "drop", "truncate", "split"}},
        {"order", AT_ORDER, 4, {"by window", "by input", "shuffled"}},
        {"seed", AT_SEED, 8, {0}},
        {"max_delay", AT_MAX_DELAY, 8, {0}},
        {"max_bytes", AT_MAX_BYTES, 8, {"unlimited"}},
        {"even_cost", AT_EVEN_COST, 1, {"off", "on"}},
        {"pad_id", AT_PAD_ID, 4, {0}},
    };

    if (memcmp(then + AT_POLICY, now + AT_POLICY, POLICY_BYTES) != 0)
        return ps_fail(err, PS_ERR_ARGUMENT, "policy %.27s, not %.27s",
                       (const char *)then + AT_POLICY,
                       (const char *)now + AT_POLICY);
    if (load_u64(then + AT_LEARNED) != load_u64(now + AT_LEARNED))
        return ps_fail(err, PS_ERR_ARGUMENT, "%s to learn from",
                       load_u64(then + AT_LEARNED) == 0 ? "no histogram"
                       : load_u64(now + AT_LEARNED) == 0
                           ? "a histogram"
                           : "a different histogram");
    if (then[AT_GROUP] != now[AT_GROUP])
        return ps_fail(err, PS_ERR_ARGUMENT, "%s",
                       then[AT_GROUP] == 0  ? "no groups"
                       : now[AT_GROUP] == 0 ? "groups"
                                            : "groups by another channel");
    if (then[AT_TOPIC] != now[AT_TOPIC])
        return ps_fail(err, PS_ERR_ARGUMENT, "%s",
                       then[AT_TOPIC] == 0  ? "no channel to pack by"
                       : now[AT_TOPIC] == 0 ? "a channel to pack by"
                                            : "another channel to pack by");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const uint64_t values[2] = {
            load_low(then + fields[i].at, fields[i].bytes),
            load_low(now + fields[i].at, fields[i].bytes)};
        char text[2][21];

        if (values[0] == values[1])
            continue;
        for (size_t k = 0; k < 2; k++) {
            const char *word =
                values[k] < 4 ? fields[i].words[values[k]] : NULL;

            if (word != NULL)
                (void)snprintf(text[k], sizeof text[k], "%s", word);
            else
                (void)snprintf(text[k], sizeof text[k], "%" PRIu64,
                               values[k]);
        }
        return ps_fail(err, PS_ERR_ARGUMENT, "%s %s, not %s", fields[i].name,
                       text[0], text[1]);
    }
    return PS_OK;
}

static ps_result check_options(const ps_schema *schema,
                               const ps_packer_options *o, ps_error *err)
{
    const ps_histogram *h = o->learn_from;
    const size_t n = h == NULL ? 0 : ps_histogram_size(h);

    if ((unsigned)o->overlong > PS_OVERLONG_SPLIT)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown policy for sequences "
                                             "longer than the capacity");
    if (ps_policy_name(o->policy) == NULL)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown packing policy");
    if (o->policy == PS_POLICY_CONCAT && o->overlong != PS_OVERLONG_ERROR)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "overlong cannot be set with policy concat, which cuts "
                       "sequences wherever a pack ends");
    if ((unsigned)o->order > PS_PACKS_SHUFFLED)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown order of packs");
    if (o->order == PS_PACKS_SHUFFLED && o->seed == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the seed to shuffle with must not be 0");
    if (o->max_delay > PS_MAX_WINDOW)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the delay must be at most %" PRIu32,
                       PS_MAX_WINDOW);
    if (o->window > PS_MAX_WINDOW || o->max_window > PS_MAX_WINDOW)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the window must be at most %" PRIu32, PS_MAX_WINDOW);
    if (o->first_pack > 0 && o->compressed)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a compressed stream must start with pack 0");
    if (o->first_pack > MAX_PACKS)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "pack %" PRIu64 " is out of range", o->first_pack);
    if (schema->token_type == PS_U16 && o->pad_id > UINT16_MAX)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "pad id %" PRIu32 " does not fit u16 tokens",
                       o->pad_id);
    if (h != NULL && n == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the histogram to learn from is empty");
    if (n > 0 && ps_histogram_length(h, n - 1) > o->capacity)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the histogram to learn from has length %" PRIu32 ", "
                       "which exceeds the capacity, %" PRIu32,
                       ps_histogram_length(h, n - 1), o->capacity);
    return PS_OK;
}

/* Finds the channel whose values are the groups. */
static ps_result find_group(ps_settings *s, const ps_schema *schema,
                            const ps_packer_options *o, ps_error *err)
{
    uint32_t i;
    ps_result r;

    s->group = 0;
    if (o->group == NULL)
        return PS_OK;
    r = ps_schema_find(schema, o->group, "to group by", &i, err);
    if (r != PS_OK)
        return r;
    if (o->policy == PS_POLICY_CONCAT)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "policy concat cuts sequences wherever a pack ends and "
                       "cannot keep groups together");
    if (o->depth != 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "depth cannot be combined with groups, which may have "
                       "more sequences");
    if (o->capacity / (o->align > 1 ? o->align : 1) > PS_MAX_DEPTH)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "with groups, the capacity must be at most %" PRIu32 " "
                       "times the alignment, since a pack has at most as many "
                       "sequences",
                       PS_MAX_DEPTH);
    s->group = i + 1;
    return PS_OK;
}

/* Finds the channel with the topics. */
static ps_result find_topic(ps_settings *s, const ps_schema *schema,
                            const ps_packer_options *o, ps_error *err)
{
    uint32_t i;
    ps_result r;

    s->topic = 0;
    if (o->by == NULL)
        return PS_OK;
    r = ps_schema_find(schema, o->by, "to pack by", &i, err);
    if (r != PS_OK)
        return r;
    if (o->policy != PS_POLICY_AUTO)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "packing by a channel needs policy auto, not %s",
                       ps_policy_name(o->policy));
    if (o->group != NULL || o->n_budgets > 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "packing by a channel cannot be combined with %s",
                       o->group != NULL ? "groups" : "budgets");
    s->topic = i + 1;
    return PS_OK;
}

/* Maximum number of sequences that fit a pack. */
static uint32_t fitting(const ps_packer_options *o)
{
    const uint32_t fit = o->capacity / o->align;

    return fit < PS_MAX_DEPTH ? fit : PS_MAX_DEPTH;
}

/* True if sequences are packed in input order: the window is the open pack. */
static bool takes_as_they_come(const ps_packer_options *o)
{
    return o->policy == PS_POLICY_NEXTFIT || o->policy == PS_POLICY_CONCAT;
}

/*
 * Maximum number of sequences in the window.  By default it has room for
 * WINDOW_PACKS packs, within the allowed maximum.
 */
static uint32_t most_sequences(const ps_packer_options *o)
{
    const uint64_t depth = o->depth == 0 ? fitting(o) : o->depth;
    const uint64_t packs = takes_as_they_come(o) ? 1 : WINDOW_PACKS;
    uint64_t max = o->max_window == 0 ? DEFAULT_MAX_WINDOW : o->max_window;

    if (o->window != 0)
        return takes_as_they_come(o) && o->window < depth ? (uint32_t)depth
                                                          : o->window;
    max = ps_mem_min(max, packs * depth);
    return (uint32_t)ps_mem_max(max, LEAST_WINDOW);
}

/* Returns the options with all defaults filled in. */
static ps_packer_options complete_options(const ps_packer_options *options)
{
    ps_packer_options o = *options;
    bool shuffled = o.order == PS_PACKS_SHUFFLED;

    if (o.align == 0)
        o.align = 1;
    if (o.policy == PS_POLICY_NONE && o.group == NULL)
        o.depth = 1;
    if (o.depth > fitting(&o))
        o.depth = fitting(&o);
    if (!shuffled)
        o.seed = 0;
    o.max_window = most_sequences(&o);
    if (o.window != 0)
        o.window = o.max_window;
    if (o.max_delay == 0)
        o.max_delay = (uint64_t)o.max_window * (shuffled ? 4 : 2);
    if (o.max_delay > PS_MAX_WINDOW)
        o.max_delay = PS_MAX_WINDOW;
    return o;
}

/* The column of a per-sequence channel. */
static const ps_payload_column *column_of(const ps_settings *s,
                                          uint32_t channel)
{
    const ps_field *fields = s->info.fields;
    const ps_payload_column *column = s->columns;

    for (uint32_t i = 0; i < s->info.n_fields; i++)
        if (fields[i].source == channel &&
            fields[i].channel.kind == PS_PER_SEQUENCE)
            while (column->per_token || column->offset < fields[i].offset)
                column++;
    return column;
}

/* Lists the columns, and finds the columns of the groups and budgets. */
static void set_columns(ps_settings *s)
{
    s->n_columns = ps_payload_columns(&s->info, s->columns);
    s->by = s->group == 0 ? NULL : column_of(s, s->group - 1);
    s->topics = s->topic == 0 ? NULL : column_of(s, s->topic - 1);
    for (uint32_t i = 0; i < s->info.n_budgets; i++) {
        const uint32_t channel = s->info.budgets[i].channel;

        s->used[i] = channel == PS_BUDGET_ATTENTION ? NULL
                                                    : column_of(s, channel);
    }
    s->lists_bytes = 0;
    for (uint32_t i = 0; i < s->info.n_fields; i++)
        if (s->info.fields[i].channel.kind == PS_LIST)
            s->lists_bytes += ps_channel_bytes(&s->info.fields[i].channel) *
                              ps_field_places(&s->info,
                                              &s->info.fields[i].channel,
                                              s->info.fields[i].source);
    s->has_uses = s->topics != NULL || s->info.n_budgets > 0;
    s->longest = ps_budget_longest(s);
    s->piece = s->longest - s->longest % s->info.align;
}

ps_result ps_settings_set(ps_settings *s, const ps_schema *schema,
                          const ps_packer_options *options, ps_error *err)
{
    const ps_packer_options *o = &s->options;
    unsigned char encoded[PS_OPTIONS_BYTES];
    uint64_t bytes;
    ps_result r = ps_schema_check(schema, err);

    if (r == PS_OK)
        r = check_options(schema, options, err);
    if (r == PS_OK)
        r = find_group(s, schema, options, err);
    if (r == PS_OK)
        r = find_topic(s, schema, options, err);
    if (r != PS_OK)
        return r;
    s->options = complete_options(options);
    s->learned = hash_of_lengths(o->learn_from);
    s->shape = ps_schema_shape(schema);
    ps_settings_encode(s, encoded);
    s->info = (ps_pack_info){
        .version_major = PS_PACK_MAJOR,
        .version_minor = PS_FORMAT_MINOR,
        .capacity = o->capacity,
        .depth = o->depth,
        /*
         * A sequence can be overtaken only by sequences that arrive while it
         * waits.  A group waits for all its records, and any number of records
         * can be rejected between them.
         */
        .max_displacement =
            s->group == 0 ? (uint32_t)o->max_delay : PS_MAX_WINDOW,
        .split =
            o->overlong == PS_OVERLONG_SPLIT || o->policy == PS_POLICY_CONCAT,
        .align = o->align,
        .group = s->group,
        .pad_id = o->pad_id,
        .schema = *schema,
        .seed = o->seed,
        .options_digest = ps_hash(encoded, sizeof encoded),
        .block_packs = o->block_packs,
        .n_packs = PS_UNKNOWN,
        .n_sequences = PS_UNKNOWN,
        .n_tokens = PS_UNKNOWN,
        .max_seqlen = PS_UNKNOWN,
        .min_fill = PS_UNKNOWN,
    };
    r = ps_budget_find(s, schema, o, err);
    for (uint32_t i = 0; r == PS_OK && i < s->info.n_budgets; i++)
        s->info.options_digest =
            hash_of_budget(s->info.options_digest, &s->info.budgets[i]);
    if (r == PS_OK)
        r = ps_layout(&s->info, err);
    if (r != PS_OK)
        return r;
    set_columns(s);
    bytes = ps_settings_item_bytes(s);
    if (o->max_bytes != 0 && bytes > o->max_bytes)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a %s of %" PRIu32 " tokens takes %" PRIu64 " "
                       "bytes of memory, but the limit is %" PRIu64,
                       s->group == 0 ? "sequence" : "group", o->capacity,
                       bytes, o->max_bytes);
    return PS_OK;
}

uint64_t ps_settings_item_bytes(const ps_settings *s)
{
    const uint64_t piece = sizeof(ps_held_piece) + s->shape.fixed;

    if (s->group == 0)
        return ps_settings_store_bytes(s, s->info.capacity, s->lists_bytes);
    /* Every sequence of the group may have only one token. */
    return round_up(s->info.capacity * (s->shape.per_token + piece) +
                        s->lists_bytes,
                    PS_STORE_CHUNK_BYTES);
}

uint64_t ps_settings_pieces(const ps_settings *s, uint64_t n)
{
    const uint64_t fit = fitting(&s->options);
    uint64_t packs = s->options.window == 0 ? LEAST_WINDOW : s->options.window;
    uint64_t pieces;

    if (s->group == 0)
        return 0;
    if (s->options.order == PS_PACKS_SHUFFLED)
        packs += PS_SHUFFLE_MAX_PACKS;
    /* Each piece has at least one token. */
    pieces = ps_mem_times(ps_mem_min(n, packs), fit);
    if (s->options.max_bytes != 0)
        pieces = ps_mem_min(pieces, s->options.max_bytes /
                                        (sizeof(ps_held_piece) +
                                         ps_shape_bytes(&s->shape, 1)));
    /* The open group is not in the window. */
    return pieces + fit;
}

uint64_t ps_packer_least_bytes(const ps_schema *schema,
                               const ps_packer_options *options)
{
    ps_packer_options o = *options;
    ps_settings s = {0};

    o.max_bytes = 0;
    return ps_settings_set(&s, schema, &o, NULL) == PS_OK
               ? ps_settings_item_bytes(&s)
               : UINT64_MAX;
}

ps_result ps_packer_check(const ps_schema *schema,
                          const ps_packer_options *options, ps_error *err)
{
    ps_settings s = {0};

    return ps_settings_set(&s, schema, options, err);
}

/* Maximum number of sequences per pack within the capacity and the window. */
static uint32_t depth_of(const ps_settings *s)
{
    const uint32_t depth = s->options.policy == PS_POLICY_NONE
                               ? 1
                               : ps_max_sequences(&s->info);

    /* All sequences of a pack were in the window at the same time. */
    return depth < s->options.max_window ? depth : s->options.max_window;
}

ps_engine_options ps_settings_engine(const ps_settings *s)
{
    const uint32_t capacity = ps_settings_units(s, s->info.capacity);
    const bool by_tokens = s->options.window == 0;
    const uint32_t packs = s->info.n_budgets == 0 ? WINDOW_PACKS
                                                  : PS_BUDGET_PACKS;
    ps_engine_options engine;

    engine = (ps_engine_options){
        .capacity = capacity,
        .depth = depth_of(s),
        .window = s->options.max_window,
        .least = by_tokens ? LEAST_WINDOW : 0,
        .enough = by_tokens ? (uint64_t)packs * capacity : 0,
        .policy = s->options.policy,
        .order = s->options.order,
        .seed = s->options.seed,
        .max_delay = s->options.max_delay,
        .even_cost = s->options.even_cost,
        .n_budgets = s->info.n_budgets,
        .by_topic = s->topic != 0,
    };
    for (uint32_t i = 0; i < s->info.n_budgets; i++)
        engine.budgets[i] = s->info.budgets[i].limit;
    return engine;
}

ps_result ps_settings_expected(const ps_settings *s, ps_histogram **expected,
                               ps_error *err)
{
    const ps_histogram *h = s->options.learn_from;
    ps_result r = PS_OK;

    *expected = NULL;
    if (h != NULL)
        r = ps_histogram_open(expected, err);
    for (size_t i = 0; r == PS_OK && h != NULL && i < ps_histogram_size(h); i++)
        r = ps_histogram_add(*expected,
                             ps_settings_units(s, ps_histogram_length(h, i)),
                             ps_histogram_count(h, i), err);
    if (r != PS_OK) {
        ps_histogram_free(*expected);
        *expected = NULL;
    }
    return r;
}

ps_output_options ps_settings_output(const ps_settings *s)
{
    return (ps_output_options){
        .threads = s->options.threads,
        .compressed = s->options.compressed,
        .level = s->options.level,
        .max_frames = s->options.max_frames,
        .write = s->options.write,
        .write_context = s->options.write_context,
    };
}

uint64_t ps_settings_chunks(const ps_settings *s, uint64_t n, uint64_t packs)
{
    const uint64_t longest = ps_settings_item_bytes(s);
    uint64_t bytes =
        ps_mem_times(packs, (uint64_t)s->shape.per_token * s->info.capacity);

    if (s->group != 0)
        bytes = ps_mem_times(packs, longest);
    /* Each payload wastes less than one chunk. */
    bytes = ps_mem_sum(
        bytes, ps_mem_times(n, ps_settings_store_bytes(s, 0, s->lists_bytes) +
                                   PS_STORE_CHUNK_BYTES));
    return ps_mem_min(ps_mem_times(n, longest), bytes);
}

/* Bytes in chunks of `n` sequences in the window. */
static uint64_t window_chunks(const ps_settings *s, uint32_t n)
{
    const uint32_t packs =
        s->options.window == 0 ? LEAST_WINDOW : s->options.window;

    /* The open pack, plus a sequence that does not fit it. */
    return ps_settings_chunks(s, n,
                              takes_as_they_come(&s->options) ? 2 : packs);
}

uint64_t ps_settings_window_bytes(const ps_settings *s)
{
    return window_chunks(s, s->options.max_window);
}

uint32_t ps_settings_max_blocks(const ps_settings *s)
{
    const uint32_t most = s->options.max_window;
    uint64_t blocks;

    if (s->options.max_bytes != 0)
        return 0;
    /* Holding the blocks of a larger default window is not faster. */
    blocks = window_chunks(s, s->options.window == 0 ? LEAST_WINDOW : most) /
             PS_BLOCK_BYTES;
    return blocks < UINT32_MAX - MIN_BLOCKS ? (uint32_t)blocks + MIN_BLOCKS
                                            : UINT32_MAX;
}
