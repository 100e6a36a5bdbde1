/*
 * conf.c - the options of packplan.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/conf.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "packplan/lists.h"

#define DEFAULT_DEPTH 16
#define DEFAULT_BATCH 32
#define MAX_BATCH 65536
#define MAX_DEVICES (UINT32_C(1) << 20)

conf conf_new(void)
{
    conf c = {.options = {.depth = DEFAULT_DEPTH,
                          .distribute = true,
                          .short_weight = PS_SHORT_WEIGHT,
                          .short_length = PS_SHORT_LENGTH,
                          .batch = DEFAULT_BATCH},
              .align = 1,
              .depths = {DEFAULT_DEPTH},
              .n_depths = 1,
              .n_devices = 12};

    /* As far as the paper's figure goes. */
    for (unsigned i = 0; i < c.n_devices; i++)
        c.devices[i] = UINT32_C(1) << i;
    return c;
}

static const char *set_capacity(void *to, const char *value)
{
    uint64_t number;

    if (!option_number(value, 1, PS_MAX_CAPACITY, &number))
        return "must be a number from 1 to 16777216";
    ((conf *)to)->options.capacity = (uint32_t)number;
    return NULL;
}

static const char *set_align(void *to, const char *value)
{
    uint64_t number;

    if (!option_number(value, 1, PS_MAX_CAPACITY, &number))
        return "must be a number that divides the capacity";
    ((conf *)to)->align = (uint32_t)number;
    return NULL;
}

static const char *set_depths(void *to, const char *value)
{
    conf *c = to;

    if (list_numbers(value, UINT32_MAX - 1, "max", c->depths, CONF_LIST,
                     &c->n_depths))
        return NULL;
    return "must be numbers from 1 on, or max, with commas between them";
}

static bool choose(conf *c, const char *name)
{
    bool all = strcmp(name, "all") == 0;
    ps_algorithm wanted;

    if (!all && !algorithm_find(name, &wanted))
        return false;
    for (unsigned i = 0; i < ALGORITHMS; i++)
        if ((all || algorithm_at(i) == wanted) && !c->algorithms[i]) {
            c->algorithms[i] = true;
            c->n_algorithms++;
        }
    return true;
}

static const char *set_algorithms(void *to, const char *value)
{
    static const char why[] =
        "must be all, or some of none, sorted, greedy, ffd, bfd, spfhp, "
        "lpfhp, nnlshp, ennlshp, with commas between them";
    conf *c = to;
    char name[16];

    memset(c->algorithms, 0, sizeof c->algorithms);
    c->n_algorithms = 0;
    while (list_next(&value, name, sizeof name))
        if (!choose(c, name))
            return why;
    return value == NULL ? NULL : why;
}

static const char *set_batch(void *to, const char *value)
{
    uint64_t number;

    if (!option_number(value, 1, MAX_BATCH, &number))
        return "must be a number from 1 to 65536";
    ((conf *)to)->options.batch = (uint32_t)number;
    return NULL;
}

static const char *set_devices(void *to, const char *value)
{
    conf *c = to;

    if (list_numbers(value, MAX_DEVICES, NULL, c->devices, CONF_LIST,
                     &c->n_devices))
        return NULL;
    return "must be numbers from 1 to 1048576 with commas between them";
}

static const char *set_short_length(void *to, const char *value)
{
    uint64_t number;

    if (!option_number(value, 0, PS_MAX_CAPACITY, &number))
        return "must be a number from 0 to 16777216";
    ((conf *)to)->options.short_length = (uint32_t)number;
    return NULL;
}

static const char *set_short_weight(void *to, const char *value)
{
    double *weight = &((conf *)to)->options.short_weight;

    if (!decimal_parse(value, weight) || !(*weight > 0 && *weight <= 1))
        return "must be above 0 and at most 1";
    return NULL;
}

static const char *set_no_distribute(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->options.distribute = false;
    return NULL;
}

static const char *set_overhead(void *to, const char *value)
{
    conf *c = to;

    if (list_decimals(value, c->overheads, CONF_LIST, &c->n_overheads))
        return NULL;
    return "must be per cents such as 4.25 with commas between them";
}

static const char *set_lamb(void *to, const char *value)
{
    conf *c = to;
    unsigned n;

    c->betas_given = true;
    if (list_decimals(value, c->betas, 2, &n) && n == 2 && c->betas[0] < 1 &&
        c->betas[1] < 1)
        return NULL;
    return "must be two decays below 1, such as 0.9,0.999";
}

static const char *set_what(conf *c, conf_what what)
{
    c->chosen[what] = true;
    c->what = what;
    return NULL;
}

static const char *set_plan(void *to, const char *value)
{
    (void)value;
    return set_what(to, CONF_PLAN);
}

static const char *set_scaling(void *to, const char *value)
{
    (void)value;
    return set_what(to, CONF_SCALING);
}

static const char *set_form(conf *c, conf_form form)
{
    c->forms[form] = true;
    c->form = form;
    return NULL;
}

static const char *set_tsv(void *to, const char *value)
{
    (void)value;
    return set_form(to, CONF_TSV);
}

static const char *set_json(void *to, const char *value)
{
    (void)value;
    return set_form(to, CONF_JSON);
}

static const char *set_no_bound(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->no_bound = true;
    return NULL;
}

static const char *set_quiet(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->quiet = true;
    return NULL;
}

static const option_entry entries[] = {
    {'L', "capacity", OPTION_VALUE, "N", "tokens in a pack (required)",
     set_capacity},
    {'d', "depth", OPTION_VALUE, "LIST",
     "most sequences in a pack, such as 2,3,16,max\n"
     "(default: 16)",
     set_depths},
    {'a', "algorithm", OPTION_VALUE, "LIST",
     "all (default), or some of none, sorted, greedy,\n"
     "ffd, bfd, spfhp, lpfhp, nnlshp, ennlshp",
     set_algorithms},
    {0, "align", OPTION_VALUE, "N",
     "sequences begin at multiples of N in a pack; N\n"
     "divides the capacity (default: 1)",
     set_align},
    {0, "plan", OPTION_FLAG, NULL,
     "print the plan, a `count: length ...` line for\n"
     "each strategy; for one algorithm and depth",
     set_plan},
    {0, "scaling", OPTION_FLAG, NULL,
     "print what un-padding gains on many devices, and\n"
     "packing; for one algorithm and depth",
     set_scaling},
    {0, "tsv", OPTION_FLAG, NULL, "print values with tabs between them",
     set_tsv},
    {0, "json", OPTION_FLAG, NULL, "print a JSON object", set_json},
    {0, "overhead", OPTION_VALUE, "LIST",
     "per cent that a step takes longer with packing, for\n"
     "all depths or for each: shows the realised speed-up",
     set_overhead},
    {0, "lamb", OPTION_VALUE, "B1,B2",
     "shows what to make of the decays of LAMB", set_lamb},
    {0, "batch", OPTION_VALUE, "N",
     "sequences in a batch, for sorted and --scaling\n"
     "(default: 32)",
     set_batch},
    {0, "devices", OPTION_VALUE, "LIST",
     "devices for --scaling (default: 1,2,4 to 2048)", set_devices},
    {0, "short-length", OPTION_VALUE, "N",
     "lengths up to N weigh less in nnlshp (default: 8)",
     set_short_length},
    {0, "short-weight", OPTION_VALUE, "X",
     "what they weigh (default: 0.09)", set_short_weight},
    {0, "no-distribute", OPTION_FLAG, NULL,
     "lpfhp: add a length to a pack once at a time",
     set_no_distribute},
    {0, "no-bound", OPTION_FLAG, NULL,
     "do not work out how few packs are possible", set_no_bound},
    {'q', "quiet", OPTION_FLAG, NULL, "no warnings", set_quiet},
    {0},
};

const option_program conf_program = {
    .usage = "-L N [OPTION]... [FILE]...",
    .summary =
        "Plans the packing of sequences from the histogram of their\n"
        "lengths: `length count` lines, as packstat --histogram prints\n"
        "them, from the FILEs together or from stdin.  Shows what each\n"
        "algorithm makes of it.",
    .entries = entries,
};

static int check_forms(const conf *c)
{
    if (c->chosen[CONF_PLAN] && c->chosen[CONF_SCALING])
        return message_usage("--plan and --scaling exclude each other");
    if (c->forms[CONF_TSV] && c->forms[CONF_JSON])
        return message_usage("--tsv and --json exclude each other");
    if (c->what == CONF_PLAN && c->form != CONF_TEXT)
        return message_usage("--plan has no other form than text");
    return STATUS_OK;
}

int conf_check(conf *c)
{
    if (c->options.capacity == 0)
        return message_usage("the capacity is missing: give -L N");
    if (c->options.capacity % c->align != 0)
        return message_usage("--align: %" PRIu32 " does not divide the "
                             "capacity, %" PRIu32,
                             c->align, c->options.capacity);
    if (c->n_algorithms == 0)
        (void)choose(c, "all");
    if (c->what != CONF_TABLE)
        c->no_bound = true;
    if (c->what != CONF_TABLE && (c->n_algorithms > 1 || c->n_depths > 1))
        return message_usage("--%s is for one algorithm and one depth: "
                             "give -a and -d",
                             c->what == CONF_PLAN ? "plan" : "scaling");
    if (c->n_overheads > 1 && c->n_overheads != c->n_depths)
        return message_usage("--overhead: give one for all depths, or as "
                             "many as depths");
    return check_forms(c);
}

double conf_overhead(const conf *c, unsigned i)
{
    if (c->n_overheads == 0)
        return 0;
    return c->overheads[c->n_overheads == 1 ? 0 : i];
}
