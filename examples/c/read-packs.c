/*
 * read-packs.c - a minimal reader: reads packs and prints how many there were
 * and how fast they arrived.
 *
 *     read-packs [-s PACKS] [-r RANK/RANKS] [FILE]
 *
 * Without a file it reads standard input.  By default it accesses packs in
 * place, one at a time; with -s it reads batches of PACKS packs, ready to be
 * copied to a device.  -r reads the share of one of several ranks.
 *
 * To compile it: cc read-packs.c $(pkg-config --cflags --libs libpackstream)
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>
#include <inttypes.h>
#include <packstream.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct settings {
    uint32_t packs; /* in a batch; 0: no batches */
    uint32_t rank;
    uint32_t ranks;
    const char *file;
} settings;

typedef struct counts {
    uint64_t packs;
    uint64_t sequences;
    uint64_t tokens;
    uint64_t batches;
    uint32_t longest; /* span, padding included */
} counts;

/* The input of a training step. */
static void step(counts *c, const ps_spans *spans, uint64_t tokens)
{
    c->packs += spans->n_packs;
    c->sequences += spans->n_seq;
    c->tokens += tokens;
    c->batches++;
    if (spans->max_seqlen > c->longest)
        c->longest = spans->max_seqlen;
}

/* Pack by pack: no tokens are copied. */
static ps_result read_packs(ps_pack_reader *reader, const settings *s,
                            counts *c, ps_error *err)
{
    const ps_pack_info *info = ps_pack_reader_info(reader);
    /* A pack has no more sequences than tokens. */
    int32_t *cu = calloc((size_t)info->capacity + 2, sizeof *cu);
    int32_t *lengths = calloc((size_t)info->capacity + 1, sizeof *lengths);
    ps_result r = ps_pack_reader_share(reader, s->rank, s->ranks, err);

    if (cu == NULL || lengths == NULL) {
        fputs("read-packs: out of memory\n", stderr);
        exit(1);
    }
    while (r == PS_OK) {
        ps_pack pack;
        ps_spans spans;

        r = ps_pack_reader_next(reader, &pack, err);
        if (r == PS_OK)
            r = ps_pack_view(info, &pack, PS_VIEW_GHOST, cu, lengths, &spans,
                             err);
        if (r == PS_OK)
            step(c, &spans, pack.n_tok);
    }
    free(cu);
    free(lengths);
    return r;
}

/* Batch by batch, each in one buffer. */
static ps_result read_batches(ps_pack_reader *reader, const settings *s,
                              counts *c, ps_error *err)
{
    const ps_loader_options options = {.packs = s->packs,
                                       .rank = s->rank,
                                       .ranks = s->ranks,
                                       .view = PS_VIEW_GHOST};
    ps_loader *loader;
    ps_result r = ps_loader_open(&loader, reader, &options, err);

    while (r == PS_OK) {
        ps_batch batch;

        r = ps_loader_next(loader, &batch, err);
        if (r == PS_OK)
            step(c, &batch.spans, batch.n_tok);
    }
    ps_loader_free(loader);
    return r;
}

static double seconds(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int report(const counts *c, double took)
{
    printf("%" PRIu64 " packs, %" PRIu64 " sequences, %" PRIu64
           " tokens in %" PRIu64 " steps, longest span %" PRIu32 "\n",
           c->packs, c->sequences, c->tokens, c->batches, c->longest);
    printf("%.0f packs, %.0f sequences, %.0f tokens a second\n",
           (double)c->packs / took, (double)c->sequences / took,
           (double)c->tokens / took);
    return fclose(stdout) == 0 ? 0 : 1;
}

/* Parses digits followed by `end`, and advances *text; strtoull takes more. */
static int parse_number(const char **text, char end, uint32_t *number)
{
    unsigned long long n;
    char *rest;

    if (**text < '0' || **text > '9')
        return 0;
    errno = 0;
    n = strtoull(*text, &rest, 10);
    if (errno != 0 || n > UINT32_MAX || *rest != end)
        return 0;
    *text = rest;
    *number = (uint32_t)n;
    return 1;
}

static int parse_packs(const char *text, settings *s)
{
    return parse_number(&text, '\0', &s->packs) && s->packs > 0;
}

/* "2/8", the third of eight, as two numbers. */
static int parse_rank(const char *text, settings *s)
{
    if (!parse_number(&text, '/', &s->rank))
        return 0;
    text++;
    return parse_number(&text, '\0', &s->ranks) && s->rank < s->ranks;
}

static int parse(int argc, char **argv, settings *s)
{
    int option;

    *s = (settings){.ranks = 1};
    while ((option = getopt(argc, argv, "s:r:")) != -1) {
        if (option == 's' && parse_packs(optarg, s))
            continue;
        if (option == 'r' && parse_rank(optarg, s))
            continue;
        return 0;
    }
    s->file = argv[optind];
    return argc - optind <= 1;
}

int main(int argc, char **argv)
{
    const double start = seconds();
    settings s;
    counts c = {0};
    ps_pack_reader *reader;
    ps_error err;
    ps_result r;

    if (!parse(argc, argv, &s)) {
        fputs("usage: read-packs [-s PACKS] [-r RANK/RANKS] [FILE]\n",
              stderr);
        return 64;
    }
    if (s.file != NULL && freopen(s.file, "rb", stdin) == NULL) {
        perror(s.file);
        return 1;
    }
    r = ps_pack_reader_open(&reader, STDIN_FILENO, &err);
    if (r == PS_OK)
        r = (s.packs > 0 ? read_batches : read_packs)(reader, &s, &c, &err);
    ps_pack_reader_free(reader);
    if (r != PS_END) {
        fprintf(stderr, "read-packs: %s\n", err.text);
        return r == PS_ERR_IO || r == PS_ERR_MEMORY ? 1 : 65;
    }
    return report(&c, seconds() - start);
}
