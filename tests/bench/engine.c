/*
 * engine.c - efficiency, delay and speed of the engine alone.
 *
 *     engine [check] --capacity=N [--OPTION=VALUE]...
 *
 * draws lengths, sends them through the engine, flushes it at the end, and
 * prints a line of numbers, "-" for those not requested:
 *
 *     1  efficiency in percent
 *     2  the bound: no plan for all lengths drawn has a higher one
 *     3  efficiency of best fit decreasing on blocks as long as the window
 *     4  the most records between a sequence and its pack
 *     5  the same as a multiple of the window
 *     6  million sequences per second of processor time
 *     7  nanoseconds per pack
 *     8  packs
 *     9  the most packs emitted after one record, except at the flush
 *     10  efficiency of TRL's bfd, and
 *     11  the same with at most D sequences in a row
 *     12  efficiency of grain's best fit, with at most D
 *     13  the longest time for one record, flushes and the end excluded, in
 *        milliseconds
 *
 * Only the engine's processor time is counted, not drawing and not the
 * planner's.  Reading the clock after each record takes time, too.  With
 * `check` every pack is checked, and nothing is printed if all are sound.
 *
 *     --capacity=N --depth=N (3; 0: no cap)
 *     --window=N (1024) --sequences=N (2000000)
 *     --policy=NAME (auto) --order=window|input|shuffle --seed=N (1)
 *     --max-delay=N (twice the window, four times if shuffled) --even=1
 *     --flush-every=N (0: at the end only)
 *     --source=FILE|raw:FILE|DISTRIBUTION|lognormal|short|heavy (lognormal):
 *         a histogram, raw u32 lengths, a distribution that
 *         tests/support/lengths.h can parse, or one that depends on the
 *         capacity: a lognormal median is an eighth of it; the mean of short
 *         ones is 20
 *     --shape=NAME (random): tests/support/lengths.h; --run=N (1024): length
 *         of its runs
 *     --bound=0|1 (1) --bfd=0|1 (0) --rivals=0|1 (0) --engine=0|1 (1)
 *     --longest=0|1 (0):
 *         whether to compute these; without the engine, 1, 4 to 9 and 14 are
 *         "-"
 *     --learn-from=SOURCE (empty: none): before the first sequence the engine
 *         learns from random lengths of it: --learned=N (1000000)
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bfd-blocks.h"
#include "engine-drive.h"
#include "engine/engine.h"
#include "lengths.h"
#include "rivals.h"

/* The lengths to learn from differ from those that are packed. */
#define LEARNED_SEED 1000000

typedef struct options {
    ps_engine_options engine;
    const char *source;
    const char *learn_from; /* likewise, or NULL */
    lengths_shape shape;
    uint64_t capacity;
    uint64_t depth;
    uint64_t window;
    uint64_t sequences;
    uint64_t learned;
    uint64_t seed;
    uint64_t max_delay;
    uint64_t even;
    uint64_t flush_every;
    uint64_t longest;
    uint64_t bound;
    uint64_t bfd;
    uint64_t rivals;
    uint64_t pack;
    uint64_t run;
    bool check;
} options;

typedef struct stream {
    uint32_t *lengths;
    size_t n;
    uint64_t tokens;
} stream;

typedef struct figures {
    uint64_t packs;
    uint64_t delay;
    uint64_t burst;
    double seconds;
    double longest; /* seconds for one record */
} figures;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "engine: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static void need(ps_result r, const ps_error *err)
{
    if (r != PS_OK)
        die("failed", err->text);
}

/* ---------------------------------------------------------------------
 * The stream
 */

/* The lengths of `source`; "raw:FILE" and "FILE" are files. */
static lengths *from_file(const options *o)
{
    bool raw = strncmp(o->source, "raw:", 4) == 0;
    const char *name = o->source + (raw ? 4 : 0);
    FILE *file = fopen(name, raw ? "rb" : "r");
    lengths *l;

    if (file == NULL)
        die(name, strerror(errno));
    l = raw ? lengths_from_raw(file, o->engine.capacity)
            : lengths_from_file(file);
    (void)fclose(file);
    return l;
}

static lengths *open_source(const options *o)
{
    uint32_t capacity = o->engine.capacity;
    double mean;
    double deviation;
    lengths *l;

    if (sscanf(o->source, "lognormal:%lf:%lf", &mean, &deviation) == 2)
        l = lengths_lognormal(mean, deviation, capacity);
    else if (strcmp(o->source, "lognormal") == 0)
        l = lengths_lognormal(log(capacity / 8.0), 1, capacity);
    else if (strcmp(o->source, "short") == 0)
        l = lengths_lognormal(log(20) - 0.5, 1, capacity);
    else if (strcmp(o->source, "heavy") == 0)
        l = lengths_heavy(capacity);
    else
        l = lengths_parse(o->source, capacity);
    if (l == NULL)
        l = from_file(o);
    if (l == NULL)
        die(o->source, "there are no lengths, or no memory for them");
    if (lengths_longest(l) > capacity)
        die(o->source, "a length is above the capacity");
    if (o->run != 0)
        lengths_set_run(l, (uint32_t)o->run);
    return l;
}

static stream draw(const options *o)
{
    stream s = {.n = (size_t)o->sequences};
    lengths *l = open_source(o);

    s.lengths = malloc((s.n > 0 ? s.n : 1) * sizeof *s.lengths);
    if (s.lengths == NULL ||
        !lengths_draw(l, o->shape, o->seed, s.lengths, s.n))
        die("lengths", "out of memory");
    for (size_t i = 0; i < s.n; i++)
        s.tokens += s.lengths[i];
    lengths_free(l);
    return s;
}

/* The lengths to learn from, which the caller frees; or NULL. */
static ps_histogram *learn(const options *o)
{
    options other = *o;
    ps_histogram *h;
    stream s;
    ps_error err;

    if (o->learn_from == NULL)
        return NULL;
    other.source = o->learn_from;
    other.shape = LENGTHS_RANDOM;
    other.sequences = o->learned;
    other.seed = o->seed + LEARNED_SEED;
    s = draw(&other);
    need(lengths_histogram(s.lengths, s.n, &h, &err), &err);
    free(s.lengths);
    return h;
}

/* ---------------------------------------------------------------------
 * The engine
 */

static void take_packs(ps_engine *e, ps_emit_mode mode, figures *f)
{
    const uint32_t *slots;
    uint32_t n = 1;
    uint64_t packs = 0;
    ps_error err;

    while (n > 0) {
        need(ps_engine_decide(e, mode, &slots, &n, &err), &err);
        packs += n > 0;
    }
    f->packs += packs;
    if (mode == PS_EMIT_DUE && packs > f->burst)
        f->burst = packs;
}

/* Cuts a record where a pack is full. */
static void take_pieces(ps_engine *e, uint32_t capacity, uint32_t left,
                        figures *f)
{
    while (left > 0) {
        uint32_t room = capacity - (uint32_t)e->window.tokens;
        uint32_t n = left < room ? left : room;

        (void)ps_engine_admit(e, n, NULL);
        take_packs(e, PS_EMIT_DUE, f);
        left -= n;
    }
}

static double now(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        die("clock", strerror(errno));
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take_record(ps_engine *e, const options *o, uint32_t length,
                        figures *f)
{
    double before = o->longest ? now() : 0;
    double took;

    ps_engine_tick(e);
    take_packs(e, PS_EMIT_DUE, f);
    if (o->engine.policy == PS_POLICY_CONCAT) {
        take_pieces(e, o->engine.capacity, length, f);
    } else {
        (void)ps_engine_admit(e, length, NULL);
        take_packs(e, PS_EMIT_DUE, f);
    }
    took = o->longest ? now() - before : 0;
    f->longest = took > f->longest ? took : f->longest;
}

static figures pack(const options *o, const stream *s)
{
    figures f = {0};
    ps_engine *e;
    ps_error err;

    need(ps_engine_open(&e, &o->engine, &err), &err);
    f.seconds = -now();
    for (size_t i = 0; i < s->n; i++) {
        take_record(e, o, s->lengths[i], &f);
        if (o->flush_every > 0 && (i + 1) % o->flush_every == 0)
            take_packs(e, PS_EMIT_DRAIN, &f);
    }
    take_packs(e, PS_EMIT_FINISH, &f);
    f.seconds += now();
    f.delay = e->delay;
    ps_engine_free(e);
    return f;
}

static void check(const options *o, const stream *s)
{
    drive_figures f;

    if (!drive(&o->engine, s->lengths, s->n, 0, &f))
        die("check", f.fault);
}

/* ---------------------------------------------------------------------
 * Figures
 */

static void print_efficiency(const options *o, const stream *s, double packs)
{
    printf("%.3f\t",
           100 * (double)s->tokens / (packs * (double)o->capacity));
}

static void print_bound(const options *o, const stream *s)
{
    ps_histogram *h;
    double packs;
    ps_error err;

    need(lengths_histogram(s->lengths, s->n, &h, &err), &err);
    need(ps_plan_bound(h, o->engine.capacity, o->engine.depth, &packs, &err),
         &err);
    print_efficiency(o, s, packs);
    ps_histogram_free(h);
}

static void print_bfd(const options *o, const stream *s, size_t block,
                      uint32_t depth)
{
    uint64_t packs;
    ps_error err;

    need(bfd_blocks(s->lengths, s->n, block, o->engine.capacity, depth,
                    &packs, &err),
         &err);
    print_efficiency(o, s, (double)packs);
}

static void print_rivals(const options *o, const stream *s)
{
    print_bfd(o, s, TRL_ROWS, o->engine.capacity);
    print_bfd(o, s, TRL_ROWS, o->engine.depth);
    print_efficiency(o, s,
                     (double)grain_rows(s->lengths, s->n, o->engine.capacity,
                                        o->engine.depth));
}

static void print_none(int n)
{
    while (n-- > 0)
        printf("-\t");
}

static void print_figures(const options *o, const stream *s)
{
    figures f = {0};

    if (o->pack) {
        f = pack(o, s);
        print_efficiency(o, s, (double)f.packs);
    } else {
        print_none(1);
    }
    if (o->bound)
        print_bound(o, s);
    else
        print_none(1);
    if (o->bfd)
        print_bfd(o, s, o->engine.window, o->engine.depth);
    else
        print_none(1);
    if (o->pack)
        printf("%" PRIu64 "\t%.2f\t%.3f\t%.0f\t%" PRIu64 "\t%" PRIu64 "\t",
               f.delay, (double)f.delay / (double)o->window,
               1e-6 * (double)s->n / f.seconds,
               1e9 * f.seconds / (double)f.packs, f.packs, f.burst);
    else
        print_none(6);
    if (o->rivals)
        print_rivals(o, s);
    else
        print_none(3);
    if (o->pack && o->longest)
        printf("%.3f\n", 1e3 * f.longest);
    else
        printf("-\n");
}

/* ---------------------------------------------------------------------
 * The command line
 */

/* The value of "--name=VALUE"; NULL if it is another option. */
static const char *value_of(const char *arg, const char *name)
{
    size_t n = strlen(name);

    if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, name, n) != 0 ||
        arg[2 + n] != '=')
        return NULL;
    return arg + n + 3;
}

static bool take_number(const char *arg, options *o)
{
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {
        {"capacity", &o->capacity},   {"depth", &o->depth},
        {"window", &o->window},       {"sequences", &o->sequences},
        {"seed", &o->seed},           {"max-delay", &o->max_delay},
        {"even", &o->even},           {"bound", &o->bound},
        {"bfd", &o->bfd},             {"run", &o->run},
        {"rivals", &o->rivals},       {"engine", &o->pack},
        {"longest", &o->longest},     {"flush-every", &o->flush_every},
        {"learned", &o->learned},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const char *value = value_of(arg, numbers[i].name);
        char *end;

        if (value == NULL)
            continue;
        errno = 0;
        *numbers[i].to = strtoull(value, &end, 10);
        if (*value < '0' || *value > '9' || *end != '\0' || errno != 0)
            die(arg, "not a number");
        return true;
    }
    return false;
}

static const char *order_name(ps_pack_order order)
{
    static const char *const names[] = {
        [PS_PACKS_BY_WINDOW] = "window",
        [PS_PACKS_BY_INPUT] = "input",
        [PS_PACKS_SHUFFLED] = "shuffle",
    };

    return (unsigned)order < sizeof names / sizeof names[0] ? names[order]
                                                            : NULL;
}

static bool take_name(const char *arg, options *o)
{
    const char *policy = value_of(arg, "policy");
    const char *order = value_of(arg, "order");
    const char *shape = value_of(arg, "shape");
    const char *name;

    for (int i = 0; policy && (name = ps_policy_name((ps_policy)i)); i++)
        if (strcmp(policy, name) == 0) {
            o->engine.policy = (ps_policy)i;
            return true;
        }
    for (int i = 0; order && (name = order_name((ps_pack_order)i)); i++)
        if (strcmp(order, name) == 0) {
            o->engine.order = (ps_pack_order)i;
            return true;
        }
    for (int i = 0; shape; i++) {
        name = lengths_shape_name((lengths_shape)i);
        if (name == NULL)
            break;
        if (strcmp(shape, name) == 0) {
            o->shape = (lengths_shape)i;
            return true;
        }
    }
    return false;
}

static void judge(options *o)
{
    if (o->capacity < 1 || o->capacity > UINT32_C(1) << 20 ||
        o->window < 1 || o->window > UINT32_C(1) << 24)
        die("capacity, depth or window", "out of range");
    if (o->run > UINT32_C(1) << 20)
        die("--run", "out of range");
    if (o->sequences < 1 || o->sequences > SIZE_MAX / sizeof(uint32_t) ||
        o->learned < 1 || o->learned > SIZE_MAX / sizeof(uint32_t))
        die("--sequences", "out of range");
    if (o->depth == 0 || o->depth > o->capacity)
        o->depth = o->capacity;
    if (o->max_delay == 0)
        o->max_delay =
            (o->engine.order == PS_PACKS_SHUFFLED ? 4 : 2) * o->window;
    o->engine.capacity = (uint32_t)o->capacity;
    o->engine.depth = (uint32_t)o->depth;
    o->engine.window = (uint32_t)o->window;
    o->engine.max_delay = o->max_delay;
    o->engine.seed = o->seed;
    o->engine.even_cost = o->even != 0;
}

static options parse(int argc, char **argv)
{
    options o = {
        .source = "lognormal",
        .depth = 3,
        .window = 1024,
        .sequences = 2000000,
        .learned = 1000000,
        .seed = 1,
        .bound = 1,
        .pack = 1,
    };

    for (int i = 1; i < argc; i++) {
        const char *source = value_of(argv[i], "source");
        const char *learn_from = value_of(argv[i], "learn-from");

        if (source != NULL)
            o.source = source;
        else if (learn_from != NULL)
            o.learn_from = *learn_from == '\0' ? NULL : learn_from;
        else if (strcmp(argv[i], "check") == 0)
            o.check = true;
        else if (!take_number(argv[i], &o) && !take_name(argv[i], &o))
            die(argv[i], "unknown option or value");
    }
    judge(&o);
    return o;
}

int main(int argc, char **argv)
{
    options o = parse(argc, argv);
    stream s = draw(&o);
    ps_histogram *learned = learn(&o);

    o.engine.learn_from = learned;
    if (o.check)
        check(&o, &s);
    else
        print_figures(&o, &s);
    ps_histogram_free(learned);
    free(s.lengths);
    if (fclose(stdout) != 0)
        die("stdout", strerror(errno));
    return EXIT_SUCCESS;
}
