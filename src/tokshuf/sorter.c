/*
 * sorter.c - external sort of records in bounded memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/sorter.h"

#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/signals.h"

/*
 * Minimum memory per run in a merge, in bytes.  Limits the number of runs that
 * can be merged at once.
 */
#define RUN_BYTES ((uint64_t)64 << 10)
#define MIN_FAN_IN 2
#define MAX_FAN_IN 65536

/* Number of records that are kept even if fewer are wanted. */
#define MIN_SAMPLE 1000

/* Memory per entry, in bytes, half of it for sorting. */
#define ENTRY_BYTES (2 * (uint64_t)sizeof(sorter_entry))

void sorter_open_kept(sorter *s, uint64_t memory, uint64_t limit)
{
    *s = (sorter){.memory = memory,
                  .limit = limit,
                  .kept = true,
                  .max_key = UINT64_MAX,
                  .files = {{.fd = -1}, {.fd = -1}}};
}

int sorter_open(sorter *s, uint64_t memory, const char *folder,
                uint64_t limit)
{
    int status;

    sorter_open_kept(s, memory, limit);
    s->kept = false;
    status = runs_open(&s->files[0], folder);
    return status == STATUS_OK ? runs_open(&s->files[1], folder) : status;
}

/* ---------------------------------------------------------------------
 * In memory
 */

static int by_place(const void *a, const void *b)
{
    const sorter_entry *x = a;
    const sorter_entry *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

/* Compares by key, and equal keys by order of arrival. */
static int by_key(const void *a, const void *b)
{
    const sorter_entry *x = a;
    const sorter_entry *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return by_place(a, b);
}

/* Sorts the entries and drops the entries beyond the limit. */
static void sort(sorter *s)
{
    if (s->n > 1)
        qsort(s->entries, s->n, sizeof *s->entries, by_key);
    if (s->n > s->limit) {
        s->n = (size_t)s->limit;
        s->max_key = s->entries[s->n - 1].key;
    }
}

static record entry_record(const sorter *s, size_t i)
{
    const sorter_entry *e = &s->entries[i];

    return (record){.key = e->key, .n_tok = e->n_tok, .bytes = e->bytes,
                    .payload = s->bytes + e->at};
}

/* Writes all entries as a run.  They must be sorted. */
static int spill(sorter *s)
{
    runs *to = &s->files[s->current];
    int status;

    if (s->n == 0)
        return STATUS_OK;
    status = runs_begin(to);

    for (size_t i = 0; status == STATUS_OK && i < s->n; i++) {
        const record one = entry_record(s, i);

        status = runs_put(to, &one);
    }
    if (status == STATUS_OK)
        status = runs_end(to);
    s->n_runs++;
    s->n = 0;
    s->used = 0;
    return status;
}

/*
 * Grows an array to at least `wanted` bytes.  Returns NULL on failure; the old
 * array is then still valid.
 */
static void *grow(void *array, size_t *size, uint64_t wanted)
{
    uint64_t more = *size < 4096 ? 4096 : *size;

    while (more < wanted)
        more *= 2;
    array = more > SIZE_MAX ? NULL : realloc(array, (size_t)more);
    if (array != NULL)
        *size = (size_t)more;
    return array;
}

/* Drops records beyond the limit.  If that frees too little, writes a run. */
static int make_room(sorter *s)
{
    const size_t n = s->n;
    uint64_t kept;

    sort(s);
    kept = s->n * ENTRY_BYTES;
    for (size_t i = 0; s->n < n && i < s->n; i++)
        kept += s->entries[i].bytes;
    if (s->n == n || kept > s->memory / 2)
        return spill(s);

    /* Compact the payloads. */
    if (s->n > 1)
        qsort(s->entries, s->n, sizeof *s->entries, by_place);
    s->used = 0;
    for (size_t i = 0; i < s->n; i++) {
        sorter_entry *e = &s->entries[i];
        const size_t bytes = e->bytes;

        memmove(s->bytes + s->used, s->bytes + e->at, bytes);
        e->at = s->used;
        s->used += bytes;
    }
    return STATUS_OK;
}

int sorter_put(sorter *s, const record *one)
{
    const size_t bytes = one->bytes;
    const bool is_full =
        s->n > 0 && s->used + bytes + (s->n + 1) * ENTRY_BYTES > s->memory;

    s->count += s->count < s->limit;
    if (s->limit == 0 || one->key > s->max_key)
        return STATUS_OK;
    /* Drop records early if few are wanted. */
    if (is_full || (s->n > MIN_SAMPLE && s->n / 2 > s->limit)) {
        const int status = make_room(s);

        if (status != STATUS_OK)
            return status;
    }

    if ((uint64_t)s->used + bytes > s->size) {
        unsigned char *more = grow(s->bytes, &s->size,
                                   (uint64_t)s->used + bytes);

        if (more == NULL)
            return message_memory();
        s->bytes = more;
    }
    if ((s->n + 1) * sizeof *s->entries > s->reserved) {
        sorter_entry *more = grow(s->entries, &s->reserved,
                                  (s->n + 1) * sizeof *s->entries);

        if (more == NULL)
            return message_memory();
        s->entries = more;
    }

    s->entries[s->n++] = (sorter_entry){one->key, s->used, one->n_tok,
                                        one->bytes};
    memcpy(s->bytes + s->used, one->payload, bytes);
    s->used += bytes;
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Merging
 */

static void free_memory(sorter *s)
{
    free(s->bytes);
    free(s->entries);
    s->bytes = NULL;
    s->entries = NULL;
    s->size = 0;
    s->reserved = 0;
}

int sorter_spill(sorter *s)
{
    sort(s);
    return spill(s);
}

/* Number of runs that can be merged at once. */
static size_t fan_in(const sorter *s)
{
    const uint64_t wanted = s->memory / RUN_BYTES;

    return wanted < MIN_FAN_IN   ? MIN_FAN_IN
           : wanted > MAX_FAN_IN ? MAX_FAN_IN
                                 : (size_t)wanted;
}

bool sorter_has_many(const sorter *s)
{
    return s->merged > 0 || s->files[s->current].n > fan_in(s);
}

int sorter_merge_some(sorter *s)
{
    runs *from = &s->files[s->current];
    runs *to = &s->files[1 - s->current];
    const size_t left = from->n - s->merged;
    const size_t n = left < fan_in(s) ? left : fan_in(s);
    int status;
    bool more = true;
    record one;

    free_memory(s);
    status = runs_merge(from, s->merged, n, s->memory);
    if (status == STATUS_OK)
        status = runs_begin(to);
    for (uint64_t i = 0; status == STATUS_OK && i < s->limit; i++) {
        if (signals_stopped() != 0)
            break;
        status = runs_next(from, &one, &more);
        if (status == STATUS_OK && !more)
            break;
        if (status == STATUS_OK)
            status = runs_put(to, &one);
    }
    runs_stop(from);
    if (status == STATUS_OK)
        status = runs_end(to);
    s->merged += n;
    if (s->merged == from->n) {
        s->merged = 0;
        s->current = 1 - s->current;
        runs_forget(from);
    }
    return status;
}

int sorter_trim(const sorter *s)
{
    return s->merged == 0 ? runs_trim(&s->files[1 - s->current]) : STATUS_OK;
}

int sorter_begin(sorter *s)
{
    runs *from = &s->files[s->current];

    free_memory(s);
    return from->n == 0 ? STATUS_OK : runs_merge(from, 0, from->n, s->memory);
}

int sorter_finish(sorter *s)
{
    int status = STATUS_OK;

    sort(s);
    if (s->n_runs == 0)
        return STATUS_OK;
    status = spill(s);
    while (status == STATUS_OK && sorter_has_many(s)) {
        status = sorter_merge_some(s);
        if (status == STATUS_OK)
            status = sorter_trim(s);
    }
    return status == STATUS_OK ? sorter_begin(s) : status;
}

int sorter_next(sorter *s, record *one, bool *more)
{
    int status;

    *more = s->given < s->count;
    if (!*more)
        return STATUS_OK;
    if (s->n_runs == 0 && !s->kept) {
        *one = entry_record(s, (size_t)s->given++);
        return STATUS_OK;
    }
    s->given++;
    status = runs_next(&s->files[s->current], one, more);
    if (status != STATUS_OK || *more)
        return status;
    message_error("temporary file: truncated by another program: records are "
                  "missing");
    return STATUS_FAILURE;
}

int sorter_clear(sorter *s)
{
    int status = STATUS_OK;

    for (int i = 0; status == STATUS_OK && s->n_runs > 0 && i < 2; i++) {
        runs_forget(&s->files[i]);
        status = runs_trim(&s->files[i]);
    }
    s->max_key = UINT64_MAX;
    s->used = 0;
    s->n = 0;
    s->n_earlier += s->n_runs;
    s->n_runs = 0;
    s->count = 0;
    s->given = 0;
    return status;
}

void sorter_close(sorter *s)
{
    free_memory(s);
    runs_close(&s->files[0]);
    runs_close(&s->files[1]);
}
