/*
 * sequences.c - bert-sequences: BERT training sequences from text.
 *
 * Reads lines of token ids, one sentence each, with empty lines between
 * documents, and prints JSON Lines for tokcat(1).  Documents pass through a
 * pool, from which random second texts are drawn.  A document is processed once
 * half a pool of later documents has been read.  Memory is therefore bounded,
 * and the same text and seed give the same sequences.
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

#include "files/files.h"
#include "cli/message.h"
#include "cli/options.h"
#include "corpus/documents.h"
#include "corpus/pairs.h"
#include "data/error.h"
#include "data/masking.h"
#include "data/number_option.h"
#include "data/rng.h"

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

#define NUMBER(member, low, high) OPTION_NUMBER(conf, member, low, high)
#define SHARE(member) OPTION_CALL_FOR(conf, member, tr_option_share)

static const option_entry entries[] = {
    {0, "vocab", "N", "size of the vocabulary", NUMBER(vocab, 1, INT32_MAX)},
    {0, "cls-id", "N", "the token [CLS]", NUMBER(cls, 0, INT32_MAX)},
    {0, "sep-id", "N", "the token [SEP]", NUMBER(sep, 0, INT32_MAX)},
    {0, "mask-id", "N", "the token [MASK]", NUMBER(mask, 0, INT32_MAX)},
    {0, "length", "N", "maximum tokens in a sequence (default: 128)",
     NUMBER(length, 2 + SPECIALS, LENGTH_MAX)},
    {0, "short", "SHARE",
     "share of documents with shorter sequences (default: 0.1)",
     SHARE(short_share)},
    {0, "mask", "SHARE", "share of tokens to mask (default: 0.15)",
     SHARE(mask_share)},
    {0, "most", "N",
     "maximum masked tokens in a sequence; 0: no limit (default: 0)",
     NUMBER(max, 0, LENGTH_MAX)},
    {0, "unmasked", NULL,
     "do not mask or print labels: packtrain then masks",
     OPTION_FLAG(conf, unmasked)},
    {0, "pool", "N", "documents in memory, of up to 65536 tokens (default: 64)",
     NUMBER(pool, 2, POOL_MAX)},
    {0, "seed", "N", "random seed (default: 1)",
     NUMBER(seed, 0, UINT64_MAX)},
    {0},
};

/* A ring buffer of documents. */
typedef struct pool {
    document *document;
    uint32_t size;
    uint64_t n_read;
    uint64_t n_done;
    const document *current;
} pool;

/* A sequence that is being made. */
typedef struct sequence {
    int32_t *token, *label;
    uint32_t *room;
    uint32_t n;
    uint32_t second; /* index of the first token of the second text */
} sequence;

typedef struct job {
    conf conf;
    pool pool;
    sequence sequence;
    tr_masking masking;
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
    uint64_t key = tr_rng_mix(tr_rng_mix(c->seed, 1), j->n_sequences++);

    s->n = 0;
    add(s, c->cls);
    add_text(s, &p->first, c->sep);
    s->second = s->n;
    if (p->second.n > 0)
        add_text(s, &p->second, c->sep);
    if (!c->unmasked)
        (void)tr_masking_apply(&j->masking, key, s->n, s->token, s->label,
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
    at = tr_rng_below(random, (uint32_t)held - 1);
    return &p->document[at < own ? at : at + 1];
}

/* Prints the sequences of the oldest unprocessed document. */
static void print_document(job *j)
{
    const pair_options options = {.length = j->conf.length - SPECIALS,
                                  .short_share = j->conf.short_share};
    pool *p = &j->pool;
    uint64_t seed = tr_rng_mix(tr_rng_mix(j->conf.seed, 0), p->n_done);
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
        r = tr_error_errno(&err);
    else
        r = read_file(j, file, &err);
    if (named && file != NULL)
        (void)fclose(file);
    if (r == PS_END)
        return STATUS_OK;
    return message_failure(named ? name : "stdin", &err);
}

/* ---- The program ---- */

static int check(const conf *c)
{
    const uint32_t ids[] = {c->cls, c->sep, c->mask};

    if (c->vocab == 0)
        return message_usage("missing --vocab=N");
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] >= c->vocab)
            return message_usage("--cls-id, --sep-id and --mask-id are "
                                 "required and must be below --vocab");
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
    j->masking = (tr_masking){.share = c->mask_share,
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

/* Processes all files.  The end of a file also ends a document. */
static int run(job *j, const char *const *names, int n)
{
    int status = STATUS_OK;

    if (!open_job(j))
        return message_memory();
    for (int i = 0; i < n && status == STATUS_OK; i++)
        status = read_named(j, names[i]);
    while (status == STATUS_OK && j->pool.n_done < j->pool.n_read)
        print_document(j);
    if (status == STATUS_OK && !files_close_stdout())
        status = STATUS_FAILURE;
    return status;
}

int main(int argc, char **argv)
{
    const option_program program = {
        .usage = "--vocab=N --cls-id=N --sep-id=N --mask-id=N [OPTION]... "
                 "[FILE]...",
        .summary = "Print training sequences for BERT, as JSON Lines, from "
                   "lines of token ids:\none sentence per line, with an "
                   "empty line between documents.",
        .entries = entries};
    job j = {.conf = {.length = 128, .cls = NO_ID, .sep = NO_ID,
             .mask = NO_ID, .pool = 64, .short_share = 0.1,
             .mask_share = 0.15, .seed = 1}};
    option_outcome outcome;
    const char *const *names;
    int first, n, status;

    message_init(argv[0]);
    outcome = option_parse(&program, argc, argv, &j.conf, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    names = option_files(argc, argv, first, &n);
    status = check(&j.conf);
    if (status == STATUS_OK)
        status = run(&j, names, n);
    close_job(&j);
    return status;
}
