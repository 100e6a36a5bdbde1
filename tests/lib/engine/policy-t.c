/*
 * policy-t.c - the choices of the policies: the simple ones against their
 * rules in naive form, the planned ones against the plan.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan-naive.h"

#include "plan/window_plan.h"
#include "policy-harness.h"

/* ---- bestfit ---- */

static uint32_t longest_fit(const stand *s, const bool *used, uint32_t room)
{
    uint32_t best = MAX_SLOTS;

    for (uint32_t i = 0; i < s->n; i++)
        if (!used[i] && s->list[i].length <= room &&
            (best == MAX_SLOTS ||
             s->list[i].length > s->list[best].length))
            best = i;
    return best;
}

/* The oldest, then repeatedly the longest that fits. */
static void expect_bestfit(stand *s)
{
    uint32_t wanted[MAX_SLOTS];
    bool used[MAX_SLOTS] = {false};
    uint32_t room = s->is.capacity;
    uint32_t n = 0;

    for (uint32_t i = 0; i < MAX_SLOTS && n < s->is.depth;
         i = longest_fit(s, used, room)) {
        used[i] = true;
        wanted[n++] = s->list[i].length;
        room -= s->list[i].length;
    }
    choose(s, false);
    assert_pack(s, wanted, n);
}

static void run_bestfit(const ps_policy_calls *calls,
                        const ps_policy_setup *setup, uint32_t flavour)
{
    uint64_t random = seed_of(setup);
    stand s;

    open_stand(&s, calls, setup);
    for (int pack = 0; pack < 8; pack++) {
        while (s.n < setup->window_size) {
            admit(&s, draw(setup->capacity, &random, flavour));
            assert_false(is_ready(&s));
        }
        expect_bestfit(&s);
    }
    while (s.n > 0)
        expect_bestfit(&s);
    close_stand(&s);
}

/* ---- nextfit, concat, none ---- */

/* A pack that takes sequences in order until one does not fit. */
typedef struct open_pack {
    uint32_t lengths[MAX_SLOTS + 1];
    uint32_t n;
    uint32_t sum;
} open_pack;

static void expect_open(stand *s, open_pack *p)
{
    assert_true(is_ready(s));
    choose(s, false);
    assert_pack(s, p->lengths, p->n);
    *p = (open_pack){0};
}

/* A pack leaves when it is full, or when the next does not fit. */
static void run_nextfit(const ps_policy_calls *calls,
                        const ps_policy_setup *setup, uint32_t flavour)
{
    uint64_t random = seed_of(setup);
    open_pack p = {0};
    stand s;

    open_stand(&s, calls, setup);
    for (int i = 0; i < 100; i++) {
        uint32_t length = draw(setup->capacity, &random, flavour);

        if (setup->policy == PS_POLICY_CONCAT &&
            length > setup->capacity - p.sum)
            length = setup->capacity - p.sum;
        if (s.n == setup->window_size)
            break; /* the engine would not wait */
        admit(&s, length);
        if (length > setup->capacity - p.sum)
            expect_open(&s, &p);
        p.lengths[p.n++] = length;
        p.sum += length;
        if (p.sum == setup->capacity || p.n == setup->depth)
            expect_open(&s, &p);
        assert_false(is_ready(&s));
    }
    if (s.n > 0) {
        choose(&s, true);
        assert_pack(&s, p.lengths, p.n);
    }
    assert_int_equal(s.n, 0);
    close_stand(&s);
}

/* ---- The planned ones ---- */

/* The plan for the sequences in a window, with the options of the paper. */
static ps_plan *plan_for(const stand *s, ps_algorithm algorithm)
{
    ps_plan_options o = plan_options(s->is.capacity, s->is.depth);
    ps_histogram *h = open_histogram();
    ps_plan *plan;
    ps_error err;

    for (uint32_t i = 0; i < s->n; i++)
        add_lengths(h, s->list[i].length, 1);
    if (algorithm == PS_PLAN_NNLSHP)
        assert_ok(ps_plan_window(&plan, h, PS_EFFORT_MEDIUM, &o, &err), &err);
    else
        assert_ok(ps_plan_make(&plan, h, algorithm, &o, &err), &err);
    ps_histogram_free(h);
    return plan;
}

/*
 * Planned packs leave in the plan's order.  Those less full than the mean stay,
 * except at a flush.
 */
static void expect_plan(stand *s, ps_algorithm algorithm, bool flush)
{
    ps_plan *plan = plan_for(s, algorithm);
    uint64_t tokens = s->is.window->tokens;
    uint64_t enough = flush ? 0 : tokens / ps_plan_packs(plan);
    const uint32_t *lengths;
    uint32_t n;

    for (size_t i = 0; i < ps_plan_strategies(plan); i++) {
        uint64_t times = ps_plan_strategy(plan, i, &lengths, &n);
        uint64_t sum = 0;

        for (uint32_t k = 0; k < n; k++)
            sum += lengths[k];
        for (uint64_t k = 0; sum >= enough && k < times; k++) {
            choose(s, flush);
            assert_pack(s, lengths, n);
            if (!flush && s->n < s->is.window_size)
                admit(s, 1 + (uint32_t)(s->now * 7 % s->is.capacity));
        }
    }
    ps_plan_free(plan);
}

static void run_planned(const ps_policy_calls *calls,
                        const ps_policy_setup *setup, uint32_t flavour)
{
    uint64_t random = seed_of(setup);
    ps_algorithm algorithm = setup->policy == PS_POLICY_SPFHP
                                 ? PS_PLAN_SPFHP
                                 : PS_PLAN_NNLSHP;
    stand s;

    if (setup->capacity % 2 == 0)
        return;
    open_stand(&s, calls, setup);
    for (int plan = 0; plan < 3; plan++) {
        while (s.n < setup->window_size)
            admit(&s, draw(setup->capacity, &random, flavour));
        assert_false(is_ready(&s));
        expect_plan(&s, algorithm, false);
    }
    expect_plan(&s, algorithm, true);
    assert_int_equal(s.n, 0);
    close_stand(&s);
}

/*
 * Overdue sequences, or in input order the oldest, leave next; a full-length
 * sequence may leave before them.
 */
static void run_oldest(const ps_policy_calls *calls,
                       const ps_policy_setup *setup, uint32_t flavour)
{
    uint64_t random = seed_of(setup);
    stand s;

    open_stand(&s, calls, setup);
    for (int pack = 0; pack < 20; pack++) {
        uint64_t oldest;

        while (s.n < setup->window_size)
            admit(&s, draw(setup->capacity, &random, flavour));
        oldest = s.list[0].time;
        choose(&s, false);
        if (setup->in_order || (s.now - oldest >= setup->max_delay &&
                                s.pack[0] < setup->capacity))
            assert_true(s.pack_oldest == oldest);
    }
    while (s.n > 0)
        choose(&s, true);
    close_stand(&s);
}

/* Each rule above, for the policies it applies to. */
static void test_rules(void **state)
{
    static const struct {
        policy_run *run;
        const ps_policy_calls *calls;
        ps_policy_setup setup;
    } cases[] = {
        {run_bestfit, &ps_policy_simple_calls, {.policy = PS_POLICY_BESTFIT}},
        {run_nextfit, &ps_policy_simple_calls, {.policy = PS_POLICY_NEXTFIT}},
        {run_nextfit, &ps_policy_simple_calls, {.policy = PS_POLICY_CONCAT}},
        {run_planned, &ps_policy_plan_calls, {.policy = PS_POLICY_SPFHP}},
        {run_planned, &ps_policy_plan_calls, {.policy = PS_POLICY_NNLSHP}},
        {run_oldest, &ps_policy_plan_calls,
         {.policy = PS_POLICY_SPFHP, .in_order = true}},
        {run_oldest, &ps_policy_plan_calls,
         {.policy = PS_POLICY_SPFHP, .max_delay = 20}},
        {run_oldest, &ps_policy_auto_calls, {.in_order = true}},
        {run_oldest, &ps_policy_auto_calls, {.max_delay = 20}},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        run_all(cases[i].run, cases[i].calls, cases[i].setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
    };

    return run_as_tap("policy", tests, NULL);
}
