/*
 * pack_lengths.c - compute which sequences share a pack, from lengths alone.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "packer/options.h"

/* The assignment so far.  `order` and `ends` are the caller's arrays. */
typedef struct assignment {
    ps_engine *engine;
    uint64_t *ids;   /* sequence number by engine slot */
    uint64_t *order; /* [n] sequence numbers, pack by pack */
    uint64_t *ends;  /* end of each pack in `order` */
    uint64_t n_order;
    uint64_t n_packs;
} assignment;

static ps_result emit(assignment *a, ps_emit_mode mode, ps_error *err)
{
    ps_result r = PS_OK;
    uint32_t n = 1;

    if (mode == PS_EMIT_DUE && ps_engine_is_idle(a->engine))
        return PS_OK;
    while (r == PS_OK && n > 0) {
        const uint32_t *slots;

        r = ps_engine_decide(a->engine, mode, &slots, &n, err);
        if (r != PS_OK || n == 0)
            break;
        for (uint32_t i = 0; i < n; i++)
            a->order[a->n_order++] = a->ids[slots[i]];
        a->ends[a->n_packs++] = a->n_order;
    }
    return r;
}

/* Checks what sequence `i` uses of the budgets. */
static ps_result check_uses(const ps_pack_info *info, const uint64_t *uses,
                            uint64_t i, ps_error *err)
{
    for (uint32_t b = 0; b < info->n_budgets; b++)
        if (uses[b] > info->budgets[b].limit)
            return ps_fail(err, PS_ERR_OVERLONG,
                           "sequence %" PRIu64 " uses %" PRIu64 " of a budget "
                           "of %" PRIu64,
                           i, uses[b], info->budgets[b].limit);
    return PS_OK;
}

/* Admits the sequences in order, like ps_packer_put. */
static ps_result admit_all(const ps_settings *s, assignment *a,
                           const uint32_t *lengths, const uint64_t *uses,
                           uint64_t n, ps_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *own =
            uses == NULL ? NULL : uses + i * s->info.n_budgets;
        ps_result r;

        if (lengths[i] == 0)
            return ps_fail(err, PS_ERR_EMPTY,
                           "sequence %" PRIu64 " has no tokens", i);
        if (lengths[i] > s->info.capacity)
            return ps_fail(err, PS_ERR_OVERLONG,
                           "sequence %" PRIu64 " has %" PRIu32 " tokens, which "
                           "exceeds the capacity, %" PRIu32,
                           i, lengths[i], s->info.capacity);
        r = check_uses(&s->info, own, i, err);
        ps_engine_tick(a->engine);
        if (r == PS_OK)
            r = emit(a, PS_EMIT_DUE, err);
        if (r != PS_OK)
            return r;
        a->ids[ps_engine_admit(a->engine, ps_settings_units(s, lengths[i]),
                               own)] = i;
        r = emit(a, PS_EMIT_DUE, err);
        if (r != PS_OK)
            return r;
    }
    return emit(a, PS_EMIT_FINISH, err);
}

/*
 * A schema with a channel for each budget but that for attention, and the
 * budgets under the names of these channels, since the caller's are arbitrary.
 */
static ps_schema schema_for(const ps_packer_options *o,
                            ps_budget_option budgets[PS_MAX_BUDGETS])
{
    static const char *const names[PS_MAX_BUDGETS] = {"a", "b", "c", "d"};
    ps_schema schema = ps_schema_raw(PS_U16);

    for (uint32_t b = 0; b < o->n_budgets && b < PS_MAX_BUDGETS; b++) {
        ps_channel *c = &schema.channels[schema.n_channels];

        budgets[b] = o->budgets[b];
        if (strcmp(o->budgets[b].name, PS_ATTENTION) == 0)
            continue;
        budgets[b].name = names[b];
        schema.framed = true;
        schema.n_channels++;
        *c = (ps_channel){.type = PS_U64, .kind = PS_PER_SEQUENCE};
        (void)snprintf(c->name, sizeof c->name, "%s", names[b]);
    }
    return schema;
}

ps_result ps_pack_lengths(const uint32_t *lengths, const uint64_t *uses,
                          uint64_t n, const ps_packer_options *options,
                          uint64_t *order, uint64_t *ends, uint64_t *n_packs,
                          ps_error *err)
{
    ps_budget_option budgets[PS_MAX_BUDGETS];
    const ps_schema schema = schema_for(options, budgets);
    assignment a = {.order = order, .ends = ends};
    ps_packer_options o = *options;
    ps_engine_options engine;
    ps_histogram *expected;
    ps_settings s = {0};
    ps_result r;

    *n_packs = 0;
    if (o.policy == PS_POLICY_CONCAT)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "policy concat cuts sequences and cannot be used with "
                       "lengths alone");
    if (o.overlong != PS_OVERLONG_ERROR)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "with lengths alone, overlong must be error");
    /* Options for payloads and records must not cause errors. */
    o.budgets = budgets;
    o.pad_id = 0;
    o.max_bytes = 0;
    o.first_pack = 0;
    o.block_packs = 0;
    r = ps_settings_set(&s, &schema, &o, err);
    if (r != PS_OK)
        return r;

    r = ps_settings_expected(&s, &expected, err);
    if (r != PS_OK)
        return r;
    engine = ps_settings_engine(&s);
    engine.learn_from = expected;
    r = ps_engine_open(&a.engine, &engine, err);
    ps_histogram_free(expected);
    if (r != PS_OK)
        return r;
    a.ids = calloc(a.engine->n_slots, sizeof *a.ids);
    r = a.ids == NULL ? ps_fail_memory(err)
                      : admit_all(&s, &a, lengths, uses, n, err);
    if (r == PS_OK)
        *n_packs = a.n_packs;
    free(a.ids);
    ps_engine_free(a.engine);
    return r;
}
