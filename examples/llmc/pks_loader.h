/*
 * pks_loader.h - reads packs for llm.c, like its DataLoader.
 *
 * A batch is B packs of T tokens, with the boundaries of their sequences for
 * attention and positions that restart in each sequence.  docs/llmc.md
 * describes the changes to llm.c.  As in llm.c, an error is printed and ends
 * the program.  Compiles as C and as C++.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PKS_LOADER_H
#define PKS_LOADER_H

#include <fcntl.h>
#include <packstream.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct PksLoader {
    int process_rank;
    int num_processes;
    size_t B;
    size_t T;
    size_t num_tokens; /* in the file, padding included */
    int should_shuffle;
    /* The run's state, with the names in llm.c's checkpoints. */
    size_t current_shard_idx;  /* epoch */
    size_t current_sample_idx; /* batches returned in this epoch */

    /* The batch. */
    int *inputs;     /* [B * T] */
    int *targets;    /* [B * T], negative without a target */
    int *positions;  /* [B * T] */
    int *cu_seqlens; /* [num_seqs + 1], from 0 to B * T: sequence i consists of
                        tokens cu_seqlens[i] to cu_seqlens[i + 1] - 1 */
    int num_seqs;    /* including padding as a sequence, and empty sequences up
                        to a power of two; at most max(32, 2 * B * T) */

    /* Private. */
    const char *filename;
    int fd;
    ps_pack_file *file;
    uint64_t packs;
    uint64_t *order; /* [packs], order of the packs in this epoch */
    int *labels;     /* [T], label of each token */
    int *lengths;    /* [T + 1], used if sequences are aligned */
} PksLoader;

static inline void pks_fail_(const PksLoader *loader, const char *why)
{
    fprintf(stderr, "%s: %s\n", loader->filename, why);
    exit(EXIT_FAILURE);
}

/* Orders the packs of an epoch, the same on every process. */
static inline void pks_order_(PksLoader *loader)
{
    uint64_t state = 42 + loader->current_shard_idx;

    for (uint64_t i = 0; i < loader->packs; i++) {
        uint64_t j = i;

        if (loader->should_shuffle) { /* splitmix64 */
            uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

            z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
            z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
            j = (z ^ z >> 31) % (i + 1);
        }
        loader->order[i] = loader->order[j];
        loader->order[j] = i;
    }
}

/* Continues after `sample` batches of epoch `shard`. */
static inline void pksloader_resume(PksLoader *loader, size_t shard,
                                    size_t sample)
{
    loader->current_shard_idx = shard;
    loader->current_sample_idx = sample;
    pks_order_(loader);
}

static inline void pksloader_reset(PksLoader *loader)
{
    pksloader_resume(loader, 0, 0);
}

/* Allocates the arrays of a batch with at most max_seqs sequences. */
static inline void pks_arrays_(PksLoader *loader, size_t max_seqs)
{
    const size_t n = loader->B * loader->T, T = loader->T;

    loader->order =
        (uint64_t *)calloc(loader->packs + 1, sizeof *loader->order);
    loader->inputs = (int *)calloc(3 * n + 2 * T + 2 * max_seqs + 35,
                                   sizeof *loader->inputs);
    if (loader->order == NULL || loader->inputs == NULL)
        pks_fail_(loader, "out of memory");
    loader->targets = loader->inputs + n;
    loader->positions = loader->targets + n;
    loader->labels = loader->positions + n;
    loader->lengths = loader->labels + T;
    loader->cu_seqlens = loader->lengths + T + 1;
}

/* Boundaries and positions of rows that are one sequence each. */
static inline void pksloader_init_rows(PksLoader *loader, size_t B, size_t T)
{
    memset(loader, 0, sizeof *loader);
    loader->filename = "rows";
    loader->fd = -1;
    loader->B = B;
    loader->T = T;
    loader->num_seqs = (int)B;
    pks_arrays_(loader, B);
    for (size_t i = 0; i < B * T; i++)
        loader->positions[i] = (int)(i % T);
    for (size_t i = 0; i <= B; i++)
        loader->cu_seqlens[i] = (int)(i * T);
}

static inline void pksloader_init(PksLoader *loader, const char *filename,
                                  size_t B, size_t T, int process_rank,
                                  int num_processes, int should_shuffle)
{
    const char *const masks[] = {"loss_mask", "assistant_masks",
                                 "completion_mask"};
    const ps_pack_info *info;
    ps_error err;

    memset(loader, 0, sizeof *loader);
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->should_shuffle = should_shuffle;
    loader->filename = filename;
    loader->fd = open(filename, O_RDONLY);
    if (loader->fd < 0)
        pks_fail_(loader, "cannot open the file");
    if (ps_pack_file_open(&loader->file, loader->fd, &err) != PS_OK)
        pks_fail_(loader, err.text);
    info = ps_pack_file_info(loader->file);
    loader->packs = ps_pack_file_packs(loader->file);
    loader->num_tokens = loader->packs * T;
    if (info->capacity != T)
        pks_fail_(loader, "the capacity of its packs is not T");
    if (loader->packs < B * (size_t)num_processes)
        pks_fail_(loader, "it has fewer packs than a batch of all processes");
    if (info->schema.labels == PS_LABELS_SHIFTED)
        pks_fail_(loader, "labels are shifted; use tokcat --labels=aligned");
    for (int i = 0; i < 3; i++)
        if (ps_pack_field(info, masks[i]) != NULL)
            pks_fail_(loader, "a loss mask is not supported; use labels");
    pks_arrays_(loader, B * (ps_max_sequences(info) + (size_t)1));
    pksloader_reset(loader);
}

/* Gathers a per-token field into `to`; returns false if packs lack it. */
static inline bool pks_gather_(const PksLoader *loader, const ps_pack *pack,
                               const ps_spans *spans, const char *name,
                               int *to)
{
    const ps_pack_info *info = ps_pack_file_info(loader->file);
    const ps_field *field = ps_pack_field(info, name);
    ps_error err;

    if (field == NULL)
        return false;
    if (ps_spans_gather(spans, info, pack->row, pack->sequences, field, PS_I32,
                        to, &err) != PS_OK)
        pks_fail_(loader, err.text);
    return true;
}

/* Reads pack `i` of the file into row b of the batch. */
static inline void pks_row_(PksLoader *loader, uint64_t i, size_t b)
{
    const size_t row = b * loader->T;
    int *cu = loader->cu_seqlens + loader->num_seqs;
    const int *labels = loader->inputs + row;
    int n;
    ps_pack pack;
    ps_spans spans;
    ps_error err;

    if (ps_pack_file_read(loader->file, i, &pack, &err) != PS_OK ||
        ps_pack_view(ps_pack_file_info(loader->file), &pack, PS_VIEW_GHOST, cu,
                     loader->lengths, &spans, &err) != PS_OK)
        pks_fail_(loader, err.text);
    (void)pks_gather_(loader, &pack, &spans, "tokens", loader->inputs + row);
    if (pks_gather_(loader, &pack, &spans, "labels", loader->labels))
        labels = loader->labels;
    ps_spans_positions(&spans, PS_GHOST_COUNTS, loader->positions + row);
    ps_spans_next_labels(&spans, PS_LABELS_SHIFTED, labels,
                         loader->targets + row);
    n = (int)spans.n_spans;
    if (cu[n] == cu[n - 1])
        n--; /* the padding is empty */
    for (int s = 0; s <= n; s++)
        cu[s] += (int)row;
    loader->num_seqs += n;
}

static inline void pksloader_next_batch(PksLoader *loader)
{
    const size_t step = loader->B * (size_t)loader->num_processes;
    size_t first = loader->current_sample_idx * step;
    int n = 32;

    if (first + step > loader->packs) { /* the remainder is not used */
        pksloader_resume(loader, loader->current_shard_idx + 1, 0);
        first = 0;
    }
    first += (size_t)loader->process_rank * loader->B;
    loader->num_seqs = 0;
    for (size_t b = 0; b < loader->B; b++)
        pks_row_(loader, loader->order[first + b], b);
    while (n < loader->num_seqs)
        n *= 2;
    while (loader->num_seqs < n)
        loader->cu_seqlens[++loader->num_seqs] = (int)(loader->B * loader->T);
    loader->current_sample_idx++;
}

static inline void pksloader_free(PksLoader *loader)
{
    ps_pack_file_free(loader->file);
    if (loader->fd >= 0)
        close(loader->fd);
    free(loader->order);
    free(loader->inputs); /* and the other arrays */
    memset(loader, 0, sizeof *loader);
}

#endif
