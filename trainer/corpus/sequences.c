/*
 * sequences.c - bert-sequences: sequences to train a BERT with, from text.
 *
 * Reads lines of token ids, a sentence each, with empty lines between
 * documents, and prints JSON Lines for tokcat(1).  A document is dealt with
 * when half a pool of others has been read after it; what does not follow is
 * drawn from the pool.  So memory has a bound, and the same text and seed
 * make the same sequences.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/documents.h"
#include "corpus/pairs.h"
#include "data/masking.h"
#include "data/rng.h"
#include "run/fail.h"
#include "run/options.h"

#define PROGRAM "bert-sequences"
#define LENGTH_MAX 65536
#define POOL_MAX 65536
#define NO_ID UINT32_MAX
#define SPECIALS 3 /* [CLS] and two [SEP] */

typedef struct conf {
    uint32_t length, vocab, cls, sep, mask, pool, max;
    double short_share, mask_share;
    uint64_t seed;
    bool unmasked;
} conf;

#define AT(member) offsetof(conf, member)

static const option_entry entries[] = {
    {"length", OPTION_U32, 2 + SPECIALS, LENGTH_MAX, AT(length),
     "most tokens of a sequence (128)"},
    {"vocab", OPTION_U32, 1, INT32_MAX, AT(vocab),
     "tokens are below N; to be given, as the three ids"},
    {"cls-id", OPTION_U32, 0, INT32_MAX, AT(cls), "the token of [CLS]"},
    {"sep-id", OPTION_U32, 0, INT32_MAX, AT(sep), "the token of [SEP]"},
    {"mask-id", OPTION_U32, 0, INT32_MAX, AT(mask), "the token of [MASK]"},
    {"short", OPTION_DOUBLE, 0, 1, AT(short_share),
     "share of documents that make shorter sequences (0.1)"},
    {"mask", OPTION_DOUBLE, 0, 1, AT(mask_share),
     "share of tokens to mask (0.15)"},
    {"most", OPTION_U32, 0, LENGTH_MAX, AT(max),
     "mask no more of a sequence; 0: no bound (0)"},
    {"unmasked", OPTION_FLAG, 0, 0, AT(unmasked),
     "mask none and print no labels: bert-train then masks"},
    {"pool", OPTION_U32, 2, POOL_MAX, AT(pool),
     "documents to hold, of up to 65536 tokens (64)"},
    {"seed", OPTION_U64, 0, 9e15, AT(seed), "of all that is drawn (1)"},
};

/* Documents, around and around. */
typedef struct pool {
    document *document;
    uint32_t size;
    uint64_t n_read;
    uint64_t n_done;
    const document *current;
} pool;

/* A sequence that is made. */
typedef struct sequence {
    int32_t *token, *label;
    uint32_t *room;
    uint32_t n;
    uint32_t second; /* where the second text begins */
} sequence;

typedef struct job {
    conf conf;
    pool pool;
    sequence sequence;
    masking masking;
    uint64_t n_sequences;
} job;

/* ---- Sequences ---- */

static void add(sequence *s, uint32_t id)
{
    s->token[s->n++] = (int32_t)id;
}

static void add_text(sequence *s, const pair_text *text, uint32_t end)
{
    memcpy(s->token + s->n, text->token, text->n * sizeof *text->token);
    s->n += text->n;
    add(s, end);
}

static void print_numbers(const char *name, const int32_t *number, uint32_t n)
{
    (void)printf("\"%s\": [", name);
    for (uint32_t i = 0; i < n; i++)
        (void)printf("%s%" PRId32, i == 0 ? "" : ", ", number[i]);
    (void)fputs("], ", stdout);
}

static void print_types(const sequence *s)
{
    (void)fputs("\"token_type_ids\": [", stdout);
    for (uint32_t i = 0; i < s->n; i++)
        (void)printf("%s%d", i == 0 ? "" : ", ", i >= s->second);
    (void)fputs("], ", stdout);
}

static void print_pair(job *j, const pair *p)
{
    const conf *c = &j->conf;
    sequence *s = &j->sequence;
    uint64_t key = draw_mix(draw_mix(c->seed, 1), j->n_sequences++);

    s->n = 0;
    add(s, c->cls);
    add_text(s, &p->first, c->sep);
    s->second = s->n;
    if (p->second.n > 0)
        add_text(s, &p->second, c->sep);
    if (!c->unmasked)
        (void)masking_apply(&j->masking, key, s->n, s->token, s->label,
                            s->room);
    (void)putchar('{');
    print_numbers("input_ids", s->token, s->n);
    print_types(s);
    if (!c->unmasked)
        print_numbers("labels", s->label, s->n);
    (void)printf("\"next_sentence_label\": %d}\n", p->label);
}

/* ---- The pool ---- */

static const document *draw_other(void *context, uint64_t *random)
{
    const pool *p = context;
    uint64_t held = p->n_read < p->size ? p->n_read : p->size;
    uint32_t own = (uint32_t)(p->current - p->document), at;

    if (held < 2)
        return NULL;
    at = draw_below(random, (uint32_t)held - 1);
    return &p->document[at < own ? at : at + 1];
}

/* Makes the sequences of the oldest document that has not been dealt with. */
static void print_document(job *j)
{
    const pair_options options = {.length = j->conf.length - SPECIALS,
                                  .short_share = j->conf.short_share};
    pool *p = &j->pool;
    uint64_t seed = draw_mix(draw_mix(j->conf.seed, 0), p->n_done);
    pairs all;
    pair each;

    p->current = &p->document[p->n_done++ % p->size];
    all = pairs_open(&options, p->current, seed);
    while (pairs_next(&all, draw_other, p, &each))
        print_pair(j, &each);
}

static ps_result read_file(job *j, FILE *file, ps_error *err)
{
    document_source source = {.file = file,
                              .vocab_size = j->conf.vocab,
                              .line = 1};
    pool *p = &j->pool;
    ps_result r;

    do {
        r = document_read(&source, &p->document[p->n_read % p->size], err);
        if (r != PS_OK)
            return r;
        p->n_read++;
        if (p->n_read - p->n_done > p->size / 2)
            print_document(j);
    } while (!ferror(stdout));
    return PS_END;
}

static int read_named(job *j, const char *name)
{
    bool named = strcmp(name, "-") != 0;
    FILE *file = named ? fopen(name, "r") : stdin;
    ps_error err;
    ps_result r;

    if (file == NULL)
        r = fail_errno(&err);
    else
        r = read_file(j, file, &err);
    if (named && file != NULL)
        (void)fclose(file);
    if (r == PS_END)
        return STATUS_OK;
    return say_failure(PROGRAM, named ? name : "stdin", &err);
}

/* ---- The program ---- */

static int check(const conf *c)
{
    const uint32_t ids[] = {c->cls, c->sep, c->mask};

    if (c->vocab == 0) {
        say(PROGRAM, "--vocab is missing");
        return STATUS_USAGE;
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] >= c->vocab) {
            say(PROGRAM, "--cls-id, --sep-id and --mask-id have to be given, "
                "below --vocab");
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

static bool open_job(job *j)
{
    const conf *c = &j->conf;
    sequence *s = &j->sequence;

    s->token = calloc(c->length, sizeof *s->token);
    s->label = calloc(c->length, sizeof *s->label);
    s->room = calloc(c->length, sizeof *s->room);
    j->pool.document = calloc(c->pool, sizeof *j->pool.document);
    if (s->token == NULL || s->label == NULL || s->room == NULL ||
        j->pool.document == NULL)
        return false;
    j->pool.size = c->pool;
    j->masking = (masking){.share = c->mask_share,
                           .max = c->max,
                           .vocab_size = c->vocab,
                           .mask_id = c->mask,
                           .special = {c->cls, c->sep},
                           .n_special = 2};
    for (uint32_t i = 0; i < c->pool; i++)
        if (!document_open(&j->pool.document[i]))
            return false;
    return true;
}

static void close_job(job *j)
{
    for (uint32_t i = 0; i < j->pool.size; i++)
        document_free(&j->pool.document[i]);
    free(j->pool.document);
    free(j->sequence.token);
    free(j->sequence.label);
    free(j->sequence.room);
}

/* A document does not go on in the next file. */
static int run(job *j, char **names, int n)
{
    int status = STATUS_OK;

    if (!open_job(j)) {
        say(PROGRAM, "no memory for the pool of documents");
        return STATUS_FAILURE;
    }
    if (n == 0)
        status = read_named(j, "-");
    for (int i = 0; i < n && status == STATUS_OK; i++)
        status = read_named(j, names[i]);
    while (status == STATUS_OK && j->pool.n_done < j->pool.n_read)
        print_document(j);
    if (status == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        say(PROGRAM, "stdout: %s", strerror(errno));
        status = STATUS_FAILURE;
    }
    return status;
}

int main(int argc, char **argv)
{
    const option_program program = {
        .name = PROGRAM,
        .usage = "--vocab=N --cls-id=N --sep-id=N --mask-id=N [OPTION]... "
                 "[FILE]...",
        .summary = "Makes sequences to train a BERT with, as JSON Lines, "
                   "from lines of token ids:\na sentence each, with empty "
                   "lines between documents.",
        .entries = entries,
        .n_entries = sizeof entries / sizeof *entries};
    job j = {.conf = {.length = 128, .cls = NO_ID, .sep = NO_ID,
                      .mask = NO_ID, .pool = 64, .short_share = 0.1,
                      .mask_share = 0.15, .seed = 1}};
    int first, status = option_parse(&program, argc, argv, &j.conf, &first);

    if (status >= 0)
        return status == STATUS_OK ? option_help(&program) : status;
    status = check(&j.conf);
    if (status == STATUS_OK)
        status = run(&j, argv + first, argc - first);
    close_job(&j);
    return status;
}
