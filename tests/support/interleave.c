/*
 * interleave.c - runs every interleaving of threads.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include "interleave.h"

#undef malloc
#undef calloc
#undef free

#include <ucontext.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAX_THREADS 4
#define MAX_WAKEUPS 32
#define STACK_BYTES 16384
#define ARENA_BYTES 32768
#define MAX_EVENTS 512

/*
 * A thread's registers are on its stack, at most this far below the frame of
 * `rest`: __builtin_unwind_init saves them there.
 */
#define SAVED_BYTES 256

typedef enum thread_state {
    READY,
    LOCKS, /* the mutex `what`, which is `mutex` as well */
    WAITS, /* for the condition `what`, without `mutex` */
    JOINS, /* the thread `what` */
    UNTIL, /* is_so(what) */
    ENDED
} thread_state;

typedef struct thread {
    ucontext_t context;
    void *(*run)(void *);
    void *argument;
    const char *live; /* the stack is in use from here to its end */
    thread_state state;
    const void *what;
    pthread_mutex_t *mutex;
    bool (*is_so)(const void *);
} thread;

typedef struct event {
    int thread;
    const char *doing;
    const char *place; /* or NULL */
} event;

/* The state that choices change. */
static struct world {
    thread threads[MAX_THREADS];
    int n_threads;
    int current;
    unsigned options; /* choices that `current` asks for, or 0 */
    unsigned chosen;
    const char *failure;
    int n_events;
    size_t used;
    event events[MAX_EVENTS];
    _Alignas(16) char arena[ARENA_BYTES];
    _Alignas(16) char stacks[MAX_THREADS][STACK_BYTES];
} world;

/* Shared by all runs. */
static struct {
    void (*run)(void);
    bool spurious;
    const char *without; /* the wakeup that is left out, or NULL */
    ucontext_t context;
    const char *wakeups[MAX_WAKEUPS];
    int n_wakeups;
    uint64_t states; /* distinct states with more than one choice */
} scheduler;

/* ---- What threads call ---- */

/* Switches to the scheduler until this thread is chosen. */
__attribute__((noinline)) static void rest(void)
{
    thread *t = &world.threads[world.current];

    __builtin_unwind_init();
    t->live = (const char *)__builtin_frame_address(0) - SAVED_BYTES;
    (void)swapcontext(&t->context, &scheduler.context);
}

static void rest_as(thread_state state, const void *what)
{
    thread *t = &world.threads[world.current];

    t->state = state;
    t->what = what;
    rest();
}

static void note(const char *doing, const char *place)
{
    if (world.n_events < MAX_EVENTS)
        world.events[world.n_events++] =
            (event){world.current, doing, place};
}

void *interleave_alloc(size_t n)
{
    char *p = world.arena + world.used;

    n = (n + 15) / 16 * 16;
    if (n > ARENA_BYTES - world.used) {
        interleave_check(false, "the arena is too small");
        return NULL;
    }
    world.used += n;
    return memset(p, 0, n);
}

unsigned interleave_choose(unsigned n)
{
    if (n < 2)
        return 0;
    world.options = n;
    rest();
    return world.chosen;
}

void interleave_step(const char *doing)
{
    note(doing, NULL);
    rest_as(READY, NULL);
}

void interleave_until(bool (*is_so)(const void *), const void *what,
                      const char *doing)
{
    note(doing, NULL);
    world.threads[world.current].is_so = is_so;
    rest_as(UNTIL, what);
}

void interleave_check(bool is_so, const char *failure)
{
    if (is_so)
        return;
    world.failure = failure;
    rest();
}

/* ---- Threads ---- */

static void begin_thread(void)
{
    thread *t = &world.threads[world.current];

    (void)t->run(t->argument);
    note("ends", NULL);
    rest_as(ENDED, NULL);
}

ps_result interleave_start(pthread_t *id, void *(*run)(void *),
                           void *argument, ps_error *err)
{
    const int n = world.n_threads;
    thread *t = &world.threads[n];

    (void)err;
    interleave_check(n < MAX_THREADS, "too many threads");
    world.n_threads++;
    t->run = run;
    t->argument = argument;
    t->state = READY;
    (void)getcontext(&t->context);
    t->context.uc_stack.ss_sp = world.stacks[n];
    t->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&t->context, begin_thread, 0);
    t->live = world.stacks[n] + STACK_BYTES - SAVED_BYTES;
    if (id != NULL)
        *id = (pthread_t)n;
    return PS_OK;
}

int interleave_join(pthread_t id, void **result)
{
    (void)result;
    note("joins", NULL);
    rest_as(JOINS, &world.threads[(int)id]);
    return 0;
}

/* ---- Locks: the first byte is 1 if the lock is taken ---- */

static bool is_taken(const void *mutex)
{
    return *(const char *)mutex != 0;
}

int interleave_lock(pthread_mutex_t *mutex, const char *place)
{
    note("locks", place);
    world.threads[world.current].mutex = mutex;
    rest_as(LOCKS, mutex);
    return 0;
}

int interleave_unlock(pthread_mutex_t *mutex)
{
    interleave_check(is_taken(mutex), "a lock that is free is given back");
    *(char *)mutex = 0;
    return 0;
}

int interleave_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                    const char *place)
{
    note("waits", place);
    (void)interleave_unlock(mutex);
    world.threads[world.current].mutex = mutex;
    rest_as(WAITS, cond);
    return 0;
}

/* A thread that was woken has to take the lock before it continues. */
static void stop_waiting(thread *t)
{
    t->state = LOCKS;
    t->what = t->mutex;
}

static void remember_wakeup(const char *place)
{
    for (int i = 0; i < scheduler.n_wakeups; i++)
        if (strcmp(scheduler.wakeups[i], place) == 0)
            return;
    if (scheduler.n_wakeups < MAX_WAKEUPS)
        scheduler.wakeups[scheduler.n_wakeups++] = place;
}

bool interleave_wakes(const char *place)
{
    remember_wakeup(place);
    note("wakes", place);
    rest_as(READY, NULL);
    return scheduler.without == NULL ||
           strcmp(place, scheduler.without) != 0;
}

int interleave_wake(pthread_cond_t *cond, bool all, const char *place)
{
    thread *waiting[MAX_THREADS];
    unsigned n = 0;

    if (!interleave_wakes(place))
        return 0;
    for (int i = 0; i < world.n_threads; i++)
        if (world.threads[i].state == WAITS && world.threads[i].what == cond)
            waiting[n++] = &world.threads[i];
    if (all)
        for (unsigned i = 0; i < n; i++)
            stop_waiting(waiting[i]);
    else if (n > 0)
        stop_waiting(waiting[interleave_choose(n)]);
    return 0;
}

/* ---- The scheduler ---- */

static bool can_run(const thread *t)
{
    switch (t->state) {
    case READY:
        return true;
    case LOCKS:
        return !is_taken(t->what);
    case WAITS:
        return scheduler.spurious;
    case JOINS:
        return ((const thread *)t->what)->state == ENDED;
    case UNTIL:
        return t->is_so(t->what);
    case ENDED:
        break;
    }
    return false;
}

/* Number of choices in the current state. */
static unsigned count_ways(void)
{
    unsigned n = 0;

    if (world.options > 0)
        return world.options;
    for (int i = 0; i < world.n_threads; i++)
        n += can_run(&world.threads[i]);
    return n;
}

static bool have_ended(void)
{
    for (int i = 0; i < world.n_threads; i++)
        if (world.threads[i].state != ENDED)
            return false;
    return true;
}

/* Takes a choice, and runs up to the next one. */
static void go(unsigned way)
{
    thread *t;
    int i = 0;

    if (world.options > 0) {
        world.chosen = way;
        world.options = 0;
        t = &world.threads[world.current];
    } else {
        for (;; i++)
            if (can_run(&world.threads[i]) && way-- == 0)
                break;
        t = &world.threads[i];
        world.current = i;
        if (t->state == WAITS) {
            stop_waiting(t);
            return;
        }
        if (t->state == LOCKS)
            *(char *)t->mutex = 1;
        t->state = READY;
    }
    (void)swapcontext(&scheduler.context, &t->context);
}

/* A digest of the state that later steps depend on. */
static uint64_t digest(void)
{
    XXH3_state_t hash;

    (void)XXH3_64bits_reset(&hash);
    (void)XXH3_64bits_update(&hash, world.arena, world.used);
    for (int i = 0; i < world.n_threads; i++) {
        const thread *t = &world.threads[i];
        const char *end = world.stacks[i] + STACK_BYTES;
        const bool has_stack = t->state != ENDED;
        const uint64_t about[] = {
            (uint64_t)t->state, (uintptr_t)t->what,
            has_stack ? (uintptr_t)t->live : 0,
            world.options == 0 ? 0 : world.options + 1,
            world.options == 0 ? 0 : (uint64_t)world.current};

        (void)XXH3_64bits_update(&hash, about, sizeof about);
        if (has_stack)
            (void)XXH3_64bits_update(&hash, t->live, (size_t)(end - t->live));
    }
    return XXH3_64bits_digest(&hash);
}

/* ---- Visited states: a table of digests ---- */

typedef struct table {
    uint64_t *entries; /* 0: none */
    size_t size;       /* a power of 2 */
    size_t n;
} table;

static bool insert(table *t, uint64_t digest);

static void grow(table *t)
{
    table old = *t;

    t->size = old.size == 0 ? 1 << 16 : 2 * old.size;
    t->entries = calloc(t->size, sizeof *t->entries);
    t->n = 0;
    if (t->entries == NULL)
        abort();
    for (size_t i = 0; i < old.size; i++)
        if (old.entries[i] != 0)
            (void)insert(t, old.entries[i]);
    free(old.entries);
}

/* False if it was in the table already. */
static bool insert(table *t, uint64_t digest)
{
    size_t i;

    if (2 * t->n >= t->size)
        grow(t);
    digest += digest == 0;
    i = (size_t)digest & (t->size - 1);
    for (; t->entries[i] != 0; i = (i + 1) & (t->size - 1))
        if (t->entries[i] == digest)
            return false;
    t->entries[i] = digest;
    t->n++;
    return true;
}

/* ---- The search ---- */

typedef struct branch {
    struct world *world; /* as it was */
    unsigned next;       /* choice to take */
    unsigned ways;
} branch;

typedef struct search {
    branch *branches;
    size_t n;
    size_t size;
} search;

/* Copies the parts in use; one of `to` and `from` is `world`. */
static void copy(struct world *to, const struct world *from)
{
    memcpy(to, from, offsetof(struct world, events));
    memcpy(to->events, from->events, sizeof(event) * (size_t)from->n_events);
    memcpy(to->arena, from->arena, from->used);
    for (int i = 0; i < from->n_threads; i++) {
        const size_t dead =
            (size_t)(from->threads[i].live - world.stacks[i]);

        memcpy(to->stacks[i] + dead, from->stacks[i] + dead,
               STACK_BYTES - dead);
    }
}

static void push(search *s, unsigned ways)
{
    branch *b;

    if (s->n == s->size) {
        s->size = s->size == 0 ? 64 : 2 * s->size;
        s->branches = realloc(s->branches, s->size * sizeof *s->branches);
        if (s->branches == NULL)
            abort();
        for (size_t i = s->n; i < s->size; i++)
            s->branches[i].world = NULL;
    }
    b = &s->branches[s->n++];
    if (b->world == NULL)
        b->world = malloc(sizeof world);
    if (b->world == NULL)
        abort();
    copy(b->world, &world);
    b->next = 1;
    b->ways = ways;
}

/* Back to the last choice with an alternative left; false without one. */
static bool go_back(search *s)
{
    while (s->n > 0 && s->branches[s->n - 1].next ==
                           s->branches[s->n - 1].ways)
        s->n--;
    if (s->n == 0)
        return false;
    copy(&world, s->branches[s->n - 1].world);
    go(s->branches[s->n - 1].next++);
    return true;
}

static void *run_scenario(void *context)
{
    (void)context;
    scheduler.run();
    return NULL;
}

/* The steps before a failure: thread numbers and actions. */
static void print_trace(void)
{
    for (int i = 0; i < world.n_events; i++) {
        const event *e = &world.events[i];
        const char *file = e->place == NULL ? "" : strrchr(e->place, '/');

        print_message("# %d %s%s\n", e->thread, e->doing,
                      file == NULL ? e->place : file);
    }
}

/* Searches until a check fails; NULL if none does. */
static const char *explore(void)
{
    search s = {0};
    table seen = {0};
    const char *failure = NULL;
    bool more = true;

    memset(&world, 0, sizeof world);
    (void)interleave_start(NULL, run_scenario, NULL, NULL);
    while (more) {
        const unsigned ways = count_ways();

        if (world.failure != NULL)
            failure = world.failure;
        else if (ways == 0 && !have_ended())
            failure = "all threads wait for each other";
        if (failure != NULL)
            break;
        if (ways == 1) {
            go(0);
        } else if (ways > 1 && insert(&seen, digest())) {
            scheduler.states++;
            push(&s, ways);
            go(0);
        } else {
            more = go_back(&s);
        }
    }
    for (size_t i = 0; i < s.size; i++)
        free(s.branches[i].world);
    free(s.branches);
    free(seen.entries);
    return failure;
}

/* ---- Suites ---- */

/* The sanitizers do not support switching stacks by hand. */
static void skip_if_sanitized(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifdef SANITIZED
    print_message("# the sanitizer has stacks of its own\n");
    skip();
#endif
}

static void explore_all(const interleave_suite *suite, bool spurious)
{
    skip_if_sanitized();
    scheduler.run = suite->run;
    scheduler.spurious = spurious;
    scheduler.without = NULL;
    scheduler.states = 0;
    for (size_t i = 0; i < suite->n; i++) {
        const char *failure;

        if (!suite->set(i, spurious))
            continue;
        failure = explore();
        if (failure != NULL) {
            print_trace();
            fail_msg("scenario %zu: %s", i, failure);
        }
    }
    print_message("# %llu states\n", (unsigned long long)scheduler.states);
}

static void test_right(void **state)
{
    explore_all(*state, false);
}

static void test_spurious(void **state)
{
    explore_all(*state, true);
}

/* Leaving out any wakeup must be detected. */
static void test_lost(void **state)
{
    const interleave_suite *suite = *state;

    skip_if_sanitized();
    scheduler.run = suite->run;
    scheduler.spurious = false;
    assert_int_not_equal(scheduler.n_wakeups, 0);
    for (int k = 0; k < scheduler.n_wakeups; k++) {
        const char *failure = NULL;

        scheduler.without = scheduler.wakeups[k];
        for (size_t i = 0; failure == NULL && i < suite->n; i++)
            if (suite->set(i, false))
                failure = explore();
        print_message("# without %s: %s\n",
                      strrchr(scheduler.without, '/') + 1,
                      failure == NULL ? "all goes well" : failure);
        assert_non_null(failure);
    }
}

int interleave_main(const char *name, interleave_suite *suite)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_right, suite),
        cmocka_unit_test_prestate(test_spurious, suite),
        cmocka_unit_test_prestate(test_lost, suite),
    };

    return run_as_tap(name, tests, NULL);
}
