/*
 * budget.c - limits on packs besides the capacity.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packer/budget.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"

/* Greatest number whose square is at most n <= PS_MAX_BUDGET. */
static uint32_t root(uint64_t n)
{
    return (uint32_t)sqrt((double)n);
}

static ps_result find_channel(const ps_schema *schema, const char *name,
                              uint32_t *channel, ps_error *err)
{
    ps_result r;

    if (strcmp(name, PS_ATTENTION) == 0) {
        *channel = PS_BUDGET_ATTENTION;
        return PS_OK;
    }
    for (uint32_t i = 0; i < schema->n_channels; i++)
        if (schema->channels[i].kind == PS_LIST &&
            strcmp(schema->channels[i].name, name) == 0) {
            *channel = i;
            return PS_OK;
        }
    r = ps_schema_find(schema, name, "for a budget", channel, err);
    if (r != PS_OK)
        return r;
    if (ps_type_is_float(schema->channels[*channel].type))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "channel '%s' has type %s, but a budget needs integers",
                       name, ps_type_name(schema->channels[*channel].type));
    return PS_OK;
}

/* Gives each list without a budget as many elements as tokens. */
static ps_result add_lists(ps_settings *s, const ps_schema *schema,
                           ps_error *err)
{
    ps_pack_info *info = &s->info;

    for (uint32_t i = 0; i < schema->n_channels; i++) {
        uint32_t k = 0;

        if (schema->channels[i].kind != PS_LIST)
            continue;
        while (k < info->n_budgets && info->budgets[k].channel != i)
            k++;
        if (k < info->n_budgets)
            continue;
        if (k == PS_MAX_BUDGETS)
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "no budget is left for the list '%s': the limit is "
                           "%d budgets",
                           schema->channels[i].name, PS_MAX_BUDGETS);
        info->budgets[info->n_budgets++] =
            (ps_budget){.channel = i, .limit = info->capacity};
    }
    return PS_OK;
}

/* Checks what cannot be combined with budgets, of which lists need one each. */
static ps_result check_combination(const ps_packer_options *o, bool has_lists,
                                   ps_error *err)
{
    const char *what = has_lists ? "lists" : "budgets";

    if (o->policy != PS_POLICY_AUTO)
        return ps_fail(err, PS_ERR_ARGUMENT, "%s need policy auto, not %s",
                       what, ps_policy_name(o->policy));
    if (o->even_cost || o->learn_from != NULL)
        return ps_fail(err, PS_ERR_ARGUMENT, "%s cannot be combined with %s",
                       what,
                       o->even_cost ? "even_cost: use a budget for attention"
                                    : "a histogram to learn from");
    return PS_OK;
}

ps_result ps_budget_find(ps_settings *s, const ps_schema *schema,
                         const ps_packer_options *o, ps_error *err)
{
    ps_result r;

    if (o->n_budgets > PS_MAX_BUDGETS)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "%" PRIu32 " budgets, but the limit is %d",
                       o->n_budgets, PS_MAX_BUDGETS);
    for (uint32_t i = 0; i < o->n_budgets; i++) {
        ps_budget *budget = &s->info.budgets[i];

        r = find_channel(schema, o->budgets[i].name, &budget->channel, err);
        if (r != PS_OK)
            return r;
        budget->limit = o->budgets[i].limit;
        if (budget->limit == 0 || budget->limit > PS_MAX_BUDGET)
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "budget '%s' must be from 1 to %" PRIu64,
                           o->budgets[i].name, PS_MAX_BUDGET);
        if (budget->channel == PS_BUDGET_ATTENTION &&
            root(budget->limit) < s->options.align)
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "budget '%s' must be at least the square of the "
                           "alignment, %" PRIu32,
                           o->budgets[i].name, s->options.align);
        for (uint32_t k = 0; k < i; k++)
            if (s->info.budgets[k].channel == budget->channel)
                return ps_fail(err, PS_ERR_ARGUMENT,
                               "budget '%s' is given twice",
                               o->budgets[i].name);
    }
    s->info.n_budgets = o->n_budgets;
    r = add_lists(s, schema, err);
    return r == PS_OK && s->info.n_budgets > 0
               ? check_combination(o, s->shape.n_lists > 0, err)
               : r;
}

static const ps_channel *channel_of(const ps_settings *s, uint32_t i)
{
    return &s->info.schema.channels[s->info.budgets[i].channel];
}

/* Type of the values that are summed: lengths, for a list. */
static ps_type type_of(const ps_settings *s, uint32_t i)
{
    return channel_of(s, i)->kind == PS_LIST ? PS_U32 : channel_of(s, i)->type;
}

/* Value of the channel of budget `i`.  A negative value is returned as huge. */
static uint64_t value_of(const ps_settings *s, const ps_sequence *sequence,
                         uint32_t i)
{
    return ps_integer_load(type_of(s, i),
                           ps_settings_at(s, sequence, s->used[i]));
}

uint32_t ps_budget_longest(const ps_settings *s)
{
    uint32_t longest = s->info.capacity;

    for (uint32_t i = 0; i < s->info.n_budgets; i++)
        if (s->info.budgets[i].channel == PS_BUDGET_ATTENTION &&
            root(s->info.budgets[i].limit) < longest)
            longest = root(s->info.budgets[i].limit);
    return longest;
}

void ps_budget_uses(const ps_settings *s, const ps_sequence *sequence,
                    uint32_t n_tok, uint64_t uses[PS_MAX_BUDGETS])
{
    for (uint32_t i = 0; i < s->info.n_budgets; i++)
        uses[i] = s->used[i] == NULL ? (uint64_t)n_tok * n_tok
                                     : value_of(s, sequence, i);
}

uint32_t ps_budget_room(const ps_settings *s, const ps_sequence *sequence,
                        const uint64_t used[PS_MAX_BUDGETS], uint32_t n_tok)
{
    uint32_t room = s->info.capacity - n_tok;

    for (uint32_t i = 0; i < s->info.n_budgets; i++) {
        const uint64_t left = s->info.budgets[i].limit - used[i];

        if (s->used[i] == NULL)
            room = root(left) < room ? root(left) : room;
        else if (value_of(s, sequence, i) > left)
            return 0;
    }
    return room;
}

bool ps_budget_allows(const ps_settings *s, const ps_sequence *sequence)
{
    static const uint64_t none[PS_MAX_BUDGETS];

    return ps_budget_room(s, sequence, none, 0) > 0;
}

ps_result ps_budget_blame(const ps_settings *s, const ps_sequence *sequence,
                          ps_error *err)
{
    const uint32_t n_tok = sequence->n_tok;

    for (uint32_t i = 0; i < s->info.n_budgets; i++) {
        char text[PS_INTEGER_BYTES];
        uint64_t value;

        if (s->used[i] == NULL || sequence->payload == NULL)
            continue;
        value = value_of(s, sequence, i);
        if (value <= s->info.budgets[i].limit)
            continue;
        ps_integer_print(type_of(s, i), value, text);
        return ps_fail(err, PS_ERR_RANGE,
                       "record %" PRIu64 " at byte %" PRIu64 ": %s %s %s, but "
                       "a pack can hold 0 to %" PRIu64,
                       sequence->id, sequence->offset, channel_of(s, i)->name,
                       channel_of(s, i)->kind == PS_LIST ? "has length" : "is",
                       text, s->info.budgets[i].limit);
    }
    if (n_tok <= s->info.capacity)
        return ps_fail(err, PS_ERR_OVERLONG,
                       "record %" PRIu64 " at byte %" PRIu64 ": %" PRIu32 " "
                       "tokens exceed %" PRIu32 ", the most that the budget "
                       "for attention allows",
                       sequence->id, sequence->offset, n_tok, s->longest);
    return ps_fail(err, PS_ERR_OVERLONG,
                   "record %" PRIu64 " at byte %" PRIu64 ": %" PRIu32 " tokens "
                   "exceed the capacity, %" PRIu32,
                   sequence->id, sequence->offset, n_tok, s->info.capacity);
}
