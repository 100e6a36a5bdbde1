/*
 * conf.c - the option table of packplan, and the names of the algorithms.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/conf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"

#define DEFAULT_BATCH 32
#define MAX_BATCH 65536
#define MAX_DEVICES (UINT32_C(1) << 20)
#define ENTRY_BYTES 64

const algorithm algorithms[ALGORITHMS] = {
    {"none", PS_PLAN_NONE, true},
    {"sorted", PS_PLAN_SORTED, true},
    {"greedy", PS_PLAN_GREEDY, false},
    {"ffd", PS_PLAN_FFD, false},
    {"bfd", PS_PLAN_BFD, false},
    {"spfhp", PS_PLAN_SPFHP, false},
    {"lpfhp", PS_PLAN_LPFHP, false},
    {"nnlshp", PS_PLAN_NNLSHP, false},
    {"ennlshp", PS_PLAN_ENNLSHP, false},
};

conf conf_new(void)
{
    conf c = {.n_algorithms = ALGORITHMS,
              .options = {.depth = CONF_NO_CAP,
                          .distribute = true,
                          .short_weight = PS_SHORT_WEIGHT,
                          .short_length = PS_SHORT_LENGTH,
                          .batch = DEFAULT_BATCH},
              .align = 1,
              .depths = {CONF_NO_CAP},
              .n_depths = 1,
              .n_devices = 12};

    for (unsigned i = 0; i < ALGORITHMS; i++)
        c.algorithms[i] = true;
    /* The devices in the figure of the paper. */
    for (unsigned i = 0; i < c.n_devices; i++)
        c.devices[i] = UINT32_C(1) << i;
    return c;
}

/* ---------------------------------------------------------------------
 * Lists and fractions
 */

/*
 * Parses digits with at most one decimal point.  Unlike strtod, accepts neither
 * a sign nor an exponent.
 */
static bool parse_decimal(const char *text, double *to)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789")
                                     : 0;
    size_t length = whole + (text[whole] == '.' ? 1 : 0) + part;

    if (whole + part == 0 || text[length] != '\0' || length >= ENTRY_BYTES)
        return false;
    *to = strtod(text, NULL);
    return true;
}

/*
 * Copies the next entry of a comma-separated list to `entry` and advances
 * *list, which is NULL after the last one.  Returns false at the end, or if an
 * entry is empty or does not fit.
 */
static bool next_entry(const char **list, char *entry, size_t size)
{
    size_t n;

    if (*list == NULL)
        return false;
    n = strcspn(*list, ",");
    if (n == 0 || n >= size)
        return false;
    memcpy(entry, *list, n);
    entry[n] = '\0';
    *list = (*list)[n] == ',' ? *list + n + 1 : NULL;
    return true;
}

/*
 * Parses numbers from 1 to `max`.  The word `unlimited`, unless it is NULL,
 * means UINT32_MAX.
 */
static bool parse_numbers(const char *list, uint32_t max,
                         const char *unlimited, uint32_t *to, unsigned *n)
{
    char entry[ENTRY_BYTES];
    uint64_t number;

    for (*n = 0; *n < CONF_LIST && next_entry(&list, entry, sizeof entry);
         ++*n)
        if (unlimited != NULL && strcmp(entry, unlimited) == 0)
            to[*n] = UINT32_MAX;
        else if (option_number(entry, 1, max, &number))
            to[*n] = (uint32_t)number;
        else
            return false;
    return list == NULL;
}

/* Parses up to `max` decimal fractions such as 4.25. */
static bool parse_decimals(const char *list, double *to, unsigned max,
                          unsigned *n)
{
    char entry[ENTRY_BYTES];

    for (*n = 0; *n < max && next_entry(&list, entry, sizeof entry); ++*n)
        if (!parse_decimal(entry, &to[*n]))
            return false;
    return list == NULL;
}

/* ---------------------------------------------------------------------
 * Options
 */

static const char *set_capacities(void *to, const char *value)
{
    conf *c = to;

    if (!parse_numbers(value, PS_MAX_CAPACITY, NULL, c->capacities,
                       &c->n_capacities))
        return "must be numbers from 1 to 16777216, separated by commas";
    for (unsigned i = 1; i < c->n_capacities; i++)
        for (unsigned k = 0; k < i; k++)
            if (c->capacities[i] == c->capacities[k])
                return "contains a capacity twice";
    c->options.capacity = c->capacities[0];
    return NULL;
}

static const char *set_depths(void *to, const char *value)
{
    conf *c = to;

    if (parse_numbers(value, UINT32_MAX - 1, "max", c->depths,
                     &c->n_depths))
        return NULL;
    return "must be numbers from 1 to 4294967294, or max, separated by commas";
}

#define ALL UINT32_MAX

static const option_word algorithm_words[] = {
    {"all", ALL},
    {"none", PS_PLAN_NONE},
    {"sorted", PS_PLAN_SORTED},
    {"greedy", PS_PLAN_GREEDY},
    {"nextfit", PS_PLAN_GREEDY}, /* its name in packstream */
    {"ffd", PS_PLAN_FFD},
    {"bfd", PS_PLAN_BFD},
    {"spfhp", PS_PLAN_SPFHP},
    {"lpfhp", PS_PLAN_LPFHP},
    {"nnlshp", PS_PLAN_NNLSHP},
    {"ennlshp", PS_PLAN_ENNLSHP},
    {NULL, 0}};

static const char *set_algorithms(void *to, const char *value)
{
    static const char why[] =
        "must be all, or some of none, sorted, greedy (or nextfit), ffd, bfd, "
        "spfhp, lpfhp, nnlshp, ennlshp, separated by commas";
    conf *c = to;
    char name[16];
    uint64_t id;

    memset(c->algorithms, 0, sizeof c->algorithms);
    c->n_algorithms = 0;
    while (next_entry(&value, name, sizeof name)) {
        if (!option_find_word(algorithm_words, name, &id))
            return why;
        for (unsigned i = 0; i < ALGORITHMS; i++)
            if (id == ALL || id == algorithms[i].id) {
                c->n_algorithms += !c->algorithms[i];
                c->algorithms[i] = true;
            }
    }
    return value == NULL ? NULL : why;
}

static const char *set_devices(void *to, const char *value)
{
    conf *c = to;

    if (parse_numbers(value, MAX_DEVICES, NULL, c->devices, &c->n_devices))
        return NULL;
    return "must be numbers from 1 to 1048576, separated by commas";
}

static const char *set_short_weight(void *to, const char *value)
{
    double *weight = to;

    if (!parse_decimal(value, weight) || !(*weight > 0 && *weight <= 1))
        return "must be greater than 0 and at most 1";
    return NULL;
}

static const char *set_overhead(void *to, const char *value)
{
    conf *c = to;

    if (parse_decimals(value, c->overheads, CONF_LIST, &c->n_overheads))
        return NULL;
    return "must be percentages such as 4.25, separated by commas";
}

static const char *set_lamb(void *to, const char *value)
{
    conf *c = to;
    unsigned n;

    if (parse_decimals(value, c->betas, 2, &n) && n == 2 && c->betas[0] < 1 &&
        c->betas[1] < 1)
        return NULL;
    return "must be two decays below 1, such as 0.9,0.999";
}

static const char *add_budget(void *to, const char *value)
{
    return budget_list_add(&((conf *)to)->budgets, value);
}

/* For shell completion; set_depths parses lists of these. */
static const option_word depth_words[] = {{"max", UINT32_MAX}, {NULL, 0}};

#define GIVEN(option) OPTION_GIVEN(conf, given[option])

static const option_entry entries[] = {
    {'L', "capacity", "LIST",
     "tokens in a pack (required); a list such as\n"
     "512,1024,2048 implies --recommend",
     OPTION_CALL(set_capacities)},
    {0, "recommend", NULL,
     "print a packstream command for each capacity, with\n"
     "the smallest window that fills packs",
     OPTION_CONSTANT(conf, what, CONF_RECOMMEND),
     OPTION_GIVEN(conf, chosen[CONF_RECOMMEND])},
    {0, "overlong", "ACTION",
     "sequences longer than a pack: error (default), drop,\n"
     "truncate or split, as in packstream",
     OPTION_WORD(conf, overlong, option_overlongs)},
    {'d', "depth", "LIST",
     "maximum number of sequences in a pack, such as\n"
     "2,3,16,max (default: max, no limit)",
     OPTION_CALL(set_depths), GIVEN(CONF_DEPTH),
     .words = depth_words},
    {'a', "algorithm", "LIST",
     "all (default), or some of none, sorted, greedy (also\n"
     "called nextfit), ffd, bfd, spfhp, lpfhp, nnlshp,\n"
     "ennlshp",
     OPTION_CALL(set_algorithms), GIVEN(CONF_ALGORITHM),
     .words = algorithm_words},
    {0, "align", "N",
     "start every sequence at a multiple of N, which\n"
     "divides the capacity (default: 1)",
     OPTION_NUMBER(conf, align, 1, PS_MAX_CAPACITY),
     .why = "must be a number that divides the capacity"},
    {0, "budget", "CHANNEL:N",
     "limit the sum of a channel in a pack, as in\n"
     "packstream, and print the lower bound (up to four)",
     OPTION_CALL(add_budget)},
    {0, "plan", NULL,
     "print the plan of one algorithm and depth, as lines\n"
     "of `count: length ...`",
     OPTION_CONSTANT(conf, what, CONF_PLAN),
     OPTION_GIVEN(conf, chosen[CONF_PLAN])},
    {0, "scaling", NULL,
     "compare the speed of unpadding and of packing on\n"
     "many devices, for one algorithm and depth",
     OPTION_CONSTANT(conf, what, CONF_SCALING),
     OPTION_GIVEN(conf, chosen[CONF_SCALING])},
    {0, "tsv", NULL, "print tab-separated values",
     OPTION_CONSTANT(conf, form, CONF_TSV),
     OPTION_GIVEN(conf, forms[CONF_TSV])},
    {0, "json", NULL, "print a JSON object",
     OPTION_CONSTANT(conf, form, CONF_JSON),
     OPTION_GIVEN(conf, forms[CONF_JSON])},
    {0, "overhead", "LIST",
     "how much longer a step takes with packing, in\n"
     "percent, for all depths or for each; adds the speed-up",
     OPTION_CALL(set_overhead), GIVEN(CONF_OVERHEAD)},
    {0, "lamb", "B1,B2", "add the decays of the LAMB optimizer for packs",
     OPTION_CALL(set_lamb), GIVEN(CONF_LAMB)},
    {0, "global-batch", "N",
     "add the steps of an epoch if all ranks together take\n"
     "N packs in a step",
     OPTION_NUMBER(conf, global_batch, 1, UINT64_MAX),
     GIVEN(CONF_GLOBAL_BATCH)},
    {0, "batch", "N",
     "sequences in a batch, for sorted and --scaling\n"
     "(default: 32)",
     OPTION_NUMBER(conf, options.batch, 1, MAX_BATCH), GIVEN(CONF_BATCH)},
    {0, "devices", "LIST",
     "numbers of devices for --scaling (default: powers of\n"
     "2 up to 2048)",
     OPTION_CALL(set_devices), GIVEN(CONF_DEVICES)},
    {0, "short-length", "N",
     "nnlshp: longest length with a lower weight (default:\n"
     "8; 0: none)",
     OPTION_NUMBER(conf, options.short_length, 0, PS_MAX_CAPACITY),
     GIVEN(CONF_SHORT_LENGTH)},
    {0, "short-weight", "X", "nnlshp: the lower weight (default: 0.09)",
     OPTION_CALL_FOR(conf, options.short_weight, set_short_weight),
     GIVEN(CONF_SHORT_WEIGHT)},
    {0, "no-distribute", NULL,
     "lpfhp: add one sequence of a length before the next\n"
     "pack is searched",
     OPTION_CONSTANT(conf, options.distribute, false),
     GIVEN(CONF_NO_DISTRIBUTE)},
    {0, "no-bound", NULL, "do not compute the lower bound",
     OPTION_FLAG(conf, no_bound), GIVEN(CONF_NO_BOUND)},
    {'q', "quiet", NULL, "do not print warnings", OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "-L LIST [OPTION]... [FILE]...",
    .summary =
        "Predicts how sequences can be packed. Reads framed token records, or\n"
        "histograms of `length count` lines as packstat --histogram prints\n"
        "them, from all FILEs together or standard input. Prints what each\n"
        "algorithm achieves, or a packstream command for each capacity.",
    .entries = entries,
};

static const char *const option_names[CONF_OPTIONS] = {
    [CONF_DEPTH] = "-d",
    [CONF_ALGORITHM] = "-a",
    [CONF_OVERHEAD] = "--overhead",
    [CONF_LAMB] = "--lamb",
    [CONF_GLOBAL_BATCH] = "--global-batch",
    [CONF_BATCH] = "--batch",
    [CONF_DEVICES] = "--devices",
    [CONF_SHORT_LENGTH] = "--short-length",
    [CONF_SHORT_WEIGHT] = "--short-weight",
    [CONF_NO_DISTRIBUTE] = "--no-distribute",
    [CONF_NO_BOUND] = "--no-bound",
};

/* Checks several capacities, and combinations with --recommend. */
static int check_capacities(conf *c)
{
    const bool others = c->chosen[CONF_PLAN] || c->chosen[CONF_SCALING];

    if (c->n_capacities == 0)
        return message_usage("missing -L N");
    for (unsigned i = 0; i < c->n_capacities; i++)
        if (c->capacities[i] % c->align != 0)
            return message_usage("--align=%" PRIu32 " does not divide the "
                                 "capacity, %" PRIu32,
                                 c->align, c->capacities[i]);
    if (c->chosen[CONF_RECOMMEND] && others)
        return message_usage("--recommend and --%s cannot be combined",
                             c->chosen[CONF_PLAN] ? "plan" : "scaling");
    if (c->n_capacities > 1 && others)
        return message_usage("--%s needs a single capacity",
                             c->chosen[CONF_PLAN] ? "plan" : "scaling");
    if (c->n_capacities > 1)
        c->what = CONF_RECOMMEND;
    for (int i = 0; c->what == CONF_RECOMMEND && i < CONF_OPTIONS; i++)
        if (c->given[i])
            return message_usage("%s cannot be used with --recommend or "
                                 "several capacities, which use the algorithm "
                                 "of packstream",
                                 option_names[i]);
    return STATUS_OK;
}

/* Checks combinations with --budget. */
static int check_budgets(conf *c)
{
    static const char *const whats[CONF_WHATS] = {
        [CONF_PLAN] = "--plan",
        [CONF_SCALING] = "--scaling",
        [CONF_RECOMMEND] = "--recommend",
    };
    const char *other = NULL;

    if (c->budgets.n == 0)
        return STATUS_OK;
    for (int i = 0; i < CONF_OPTIONS; i++)
        if (c->given[i] && i != CONF_DEPTH)
            other = option_names[i];
    for (int i = 0; i < CONF_WHATS; i++)
        if (c->chosen[i])
            other = whats[i];
    if (other != NULL)
        return message_usage("--budget and %s cannot be combined", other);
    if (c->n_capacities > 1 || c->n_depths > 1)
        return message_usage("--budget needs a single %s",
                             c->n_capacities > 1 ? "capacity" : "depth");
    c->what = CONF_BUDGETS;
    return STATUS_OK;
}

int conf_check(conf *c)
{
    int status = check_budgets(c);

    if (status == STATUS_OK)
        status = check_capacities(c);
    if (status != STATUS_OK)
        return status;
    if (c->forms[CONF_TSV] && c->forms[CONF_JSON])
        return message_usage("--tsv and --json cannot be combined");
    if (c->what == CONF_RECOMMEND || c->what == CONF_BUDGETS)
        return STATUS_OK;
    if (c->what != CONF_TABLE)
        c->no_bound = true;
    if (c->what != CONF_TABLE && (c->n_algorithms > 1 || c->n_depths > 1))
        return message_usage("--%s needs one algorithm and one depth: "
                             "use -a and -d",
                             c->what == CONF_PLAN ? "plan" : "scaling");
    if (c->n_overheads > 1 && c->n_overheads != c->n_depths)
        return message_usage("--overhead needs one value for all depths, or "
                             "one for each");
    if (c->chosen[CONF_PLAN] && c->chosen[CONF_SCALING])
        return message_usage("--plan and --scaling cannot be combined");
    if (c->what == CONF_PLAN && c->form != CONF_TEXT)
        return message_usage("--plan cannot be combined with --tsv or --json");

    for (unsigned k = 1; c->n_overheads == 1 && k < c->n_depths; k++)
        c->overheads[k] = c->overheads[0];
    return STATUS_OK;
}
