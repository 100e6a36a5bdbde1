/*
 * audit.c - check guarantees of a pack stream that involve several packs.
 *
 * The reader's totals are sums over all streams read to their end, so the
 * totals of packs are summed in the same way.  After the totals declared by an
 * END have been compared, the sums continue from the declared totals, so that a
 * wrong number is reported only for its own stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/audit.h"

#include <inttypes.h>
#include <stdlib.h>

#include <xxhash.h>

#include "files/packs.h"

enum { FIRST_CAPACITY = 4096 };

#define U64 "%" PRIu64
#define U32 "%" PRIu32

void audit_begin(audit *a, const ps_pack_info *info, faults *f)
{
    *a = (audit){0};
    a->info = info;
    a->faults = f;
}

/* Reports a fault that makes sequence ids unreliable. */
#define ID_FAULT(a, place, ...)                                         \
    ((a)->doubtful = true, faults_add((a)->faults, place, __VA_ARGS__))

/* True if sequences may be missing, because they can be in other packs. */
static bool may_lack(const audit *a)
{
    return a->cut || a->info->share;
}

/*
 * Compares a piece of a sequence with the previous piece.  `next` is the token
 * after all earlier pieces.
 */
static void judge_piece(audit *a, const logged_piece *before,
                        const logged_piece *entry, uint64_t next)
{
    const ps_piece *p = &entry->piece;

    if (p->seq_len != before->piece.seq_len)
        ID_FAULT(a, &entry->place,
                 "sequence " U64 " has " U32 " tokens here, but " U32
                 " in pack " U64,
                 p->id, p->seq_len, before->piece.seq_len,
                 before->place.number);
    else if (p->seq_off == before->piece.seq_off)
        ID_FAULT(a, &entry->place,
                 "token " U32 " of sequence " U64
                 " is repeated: it was in pack " U64,
                 p->seq_off, p->id, before->place.number);
    else if (p->seq_off < next)
        ID_FAULT(a, &entry->place,
                 "token " U32 " of sequence " U64
                 " overlaps the pieces from pack " U64 " on",
                 p->seq_off, p->id, before->place.number);
    else if (p->seq_off > next && !may_lack(a))
        ID_FAULT(a, &entry->place,
                 "sequence " U64 ": its tokens " U64 " to " U32
                 " are not in any pack",
                 p->id, next, p->seq_off - 1);
    if (entry->values != before->values)
        faults_add(a->faults, &entry->place,
                   "sequence " U64 " has different per-sequence values here "
                   "and in pack " U64,
                   p->id, before->place.number);
}

/* Checks all `n` pieces of a sequence, sorted by offset and then by pack. */
static void judge(audit *a, const logged_piece *entries, size_t n)
{
    const ps_piece *first = &entries[0].piece;
    const ps_piece *last = &entries[n - 1].piece;
    uint64_t next = 0;

    a->sequences += first->seq_off == 0;
    if (first->seq_off != 0 && !may_lack(a))
        ID_FAULT(a, &entries[0].place,
                 "sequence " U64 ": its tokens before " U32
                 " are not in any pack",
                 first->id, first->seq_off);
    for (size_t i = 0; i < n; i++) {
        const ps_piece *piece = &entries[i].piece;
        uint64_t end = (uint64_t)piece->seq_off + piece->n_tok;

        if (i > 0)
            judge_piece(a, &entries[i - 1], &entries[i], next);
        next = end > next ? end : next;
    }
    if (next < last->seq_len && !may_lack(a))
        ID_FAULT(a, &entries[n - 1].place,
                 "sequence " U64 ": its tokens from " U64 " to its end at "
                 U32 " are not in any pack",
                 last->id, next, last->seq_len);
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Compares by sequence, offset in it, pack, and position in the pack. */
static int compare(const void *a, const void *b)
{
    const logged_piece *x = a;
    const logged_piece *y = b;
    int result = order(x->piece.id, y->piece.id);

    if (result == 0)
        result = order(x->piece.seq_off, y->piece.seq_off);
    if (result == 0)
        result = order(x->place.number, y->place.number);
    if (result == 0)
        result = order(x->piece.begin, y->piece.begin);
    return result;
}

/*
 * True if `y` continues `x` and the two can be merged without losing a fault.
 */
static bool follows(const logged_piece *x, const logged_piece *y)
{
    const ps_piece *a = &x->piece;
    const ps_piece *b = &y->piece;

    return a->id == b->id && a->seq_len == b->seq_len &&
           a->seq_off <= b->seq_off && a->n_tok == b->seq_off - a->seq_off &&
           b->n_tok <= UINT32_MAX - a->n_tok && x->values == y->values;
}

/*
 * Checks every sequence below `end` (NULL: all sequences) and removes it from
 * the log.  Adjacent pieces of other sequences are merged, so that a sequence
 * of very many pieces does not fill the log.
 *
 * The log is sorted rather than hashed, because forged ids cannot make a sort
 * slow, the pieces of a sequence become adjacent, and faults are found in a
 * fixed order.
 */
static void judge_below(audit *a, const uint64_t *end)
{
    logged_piece *const log = a->log;
    size_t done = 0;
    size_t n = 0;

    if (a->n_logged == 0)
        return;
    qsort(log, a->n_logged, sizeof(*log), compare);
    while (done < a->n_logged) {
        const uint64_t id = log[done].piece.id;
        const size_t begin = done;

        if (end != NULL && id >= *end)
            break;
        while (done < a->n_logged && log[done].piece.id == id)
            done++;
        judge(a, &log[begin], done - begin);
    }

    for (size_t i = done; i < a->n_logged; i++) {
        if (n > 0 && follows(&log[n - 1], &log[i]))
            log[n - 1].piece.n_tok += log[i].piece.n_tok;
        else
            log[n++] = log[i];
    }
    a->n_logged = n;
}

/* Makes room in the log for one more piece.  Returns false if out of memory. */
static bool make_room(audit *a)
{
    /*
     * The missing sequences were already in the window when the pieces ahead of
     * the watermark arrived, and are packed at most `window` packs later.  This
     * limits the number of pieces ahead.  One more is possible, since the first
     * piece of a split sequence can be written long before the others.
     */
    const uint64_t max_ahead =
        (uint64_t)a->info->max_displacement * ps_max_sequences(a->info) +
        (a->info->split ? 1 : 0);
    const size_t capacity =
        a->log_capacity == 0 ? FIRST_CAPACITY : a->log_capacity * 2;
    logged_piece *log;

    judge_below(a, &a->watermark);
    if (a->n_logged > max_ahead) {
        ID_FAULT(a, &a->place,
                 "%zu sequences or pieces are ahead of the watermark, " U64
                 ", but the window allows " U64,
                 a->n_logged, a->watermark, max_ahead);
        a->lost = true;
        a->n_logged = 0;
        return true;
    }
    if (a->n_logged < a->log_capacity / 2)
        return true;
    if (capacity > SIZE_MAX / sizeof(*log))
        return false;
    log = realloc(a->log, capacity * sizeof(*log));
    if (log == NULL)
        return false;
    a->log = log;
    a->log_capacity = capacity;
    return true;
}

/* Hash of the per-sequence values and lists of sequence `i` of a pack. */
static uint64_t hash_values(const ps_pack_info *info, const ps_pack *pack,
                            uint32_t i)
{
    uint64_t hash = 0;

    for (uint32_t k = 0; k < info->n_fields; k++) {
        const ps_field *f = &info->fields[k];
        const size_t bytes = ps_channel_bytes(&f->channel);

        if (f->source == PS_BUILT_IN || f->channel.kind == PS_PER_TOKEN)
            continue;
        if (f->channel.kind == PS_LIST) {
            const ps_list list = ps_pack_list(info, pack, f->source, i);

            hash = XXH3_64bits_withSeed(list.elements, list.n * bytes, hash);
        } else if (info->schema.channels[f->source].kind != PS_LIST) {
            hash = XXH3_64bits_withSeed(packs_values(info, pack, f, i, 0),
                                        bytes, hash);
        }
    }
    return hash;
}

/* Adds sequence `i` of a pack to the log. */
static bool take_piece(audit *a, const ps_pack *pack, uint32_t i)
{
    const ps_piece piece = ps_pack_piece(a->info, pack, i);
    const ps_piece *p = &piece;

    if (p->id > a->greatest)
        a->greatest = p->id;
    if (p->seq_off > 0)
        a->seen.extra_pieces++;
    else if (p->n_tok < p->seq_len)
        a->seen.split_sequences++;
    a->full += p->seq_off == 0 && p->seq_len == a->info->capacity;
    if (p->n_tok > p->seq_len || p->seq_off > p->seq_len - p->n_tok)
        ID_FAULT(a, &a->place,
                 "sequence " U64 " has " U32 " tokens, but a piece of " U32
                 " at token " U32,
                 p->id, p->seq_len, p->n_tok, p->seq_off);
    if (p->id < a->watermark) {
        ID_FAULT(a, &a->place,
                 "sequence " U64 " is below " U64
                 ", the watermark of pack " U64,
                 p->id, a->watermark, a->marked_by);
        return true;
    }
    if (!a->lost && a->n_logged == a->log_capacity && !make_room(a))
        return false;
    if (!a->lost)
        a->log[a->n_logged++] = (logged_piece){
            piece, a->place,
            p->n_tok < p->seq_len ? hash_values(a->info, pack, i) : 0};
    return true;
}

#define END_FAULT(a, ...)                                               \
    faults_add((a)->faults,                                             \
               &(fault_place){.number = (a)->stream}, __VA_ARGS__)

/* Compares a declared total with the total of the packs. */
static void judge_total(audit *a, const char *name, uint64_t declared,
                        uint64_t seen)
{
    if (declared != seen)
        END_FAULT(a, "%s is " U64 ", but the packs add up to " U64, name,
                  declared, seen);
}

/*
 * Checks that truncated or rejected sequences lost at least `min` tokens each.
 * If `partial` is set, tokens can be lost even without such sequences: a share
 * can have some pieces of a split sequence, or a single token of a skipped one.
 */
static void judge_loss(audit *a, const char *how, uint64_t sequences,
                       uint64_t tokens, uint64_t min, bool partial)
{
    if (sequences * min > tokens ||
        (sequences == 0 && tokens != 0 && !partial))
        END_FAULT(a, U64 " %s sequences cannot have lost " U64 " tokens",
                  sequences, how, tokens);
}

void audit_end(audit *a, const ps_totals *totals)
{
    const ps_totals *before = &a->declared;
    uint64_t in;
    uint64_t rejected;
    uint64_t truncated;

    a->cut = totals == NULL;
    judge_below(a, NULL);
    if (a->cut)
        return;

    /* Check that every sequence of the input is in a pack or was rejected. */
    in = totals->input_sequences - before->input_sequences;
    rejected = totals->rejected_sequences - before->rejected_sequences;
    truncated = totals->truncated_sequences - before->truncated_sequences;
    if (a->packs > 0 && a->greatest >= in)
        END_FAULT(a, "there is a sequence " U64 ", but input_sequences is "
                  U64, a->greatest, in);
    else if (a->watermark > in)
        END_FAULT(a, "the watermark of pack " U64 " is " U64
                  ", but input_sequences is " U64,
                  a->marked_by, a->watermark, in);
    else if (!a->doubtful && a->sequences + rejected != in)
        END_FAULT(a, "input_sequences is " U64 ", but the packs have " U64
                  " and rejected_sequences is " U64,
                  in, a->sequences, rejected);

    /*
     * The reader does not make these checks, since it does not join pieces.
     * Raw records can be empty, and are then rejected.
     */
    judge_loss(a, "rejected", rejected,
               totals->rejected_tokens - before->rejected_tokens,
               a->info->schema.framed ? 1 : 0, a->info->share);
    judge_loss(a, "truncated", truncated,
               totals->truncated_tokens - before->truncated_tokens, 1,
               false);
    /* With groups or budgets, truncated sequences can have fewer tokens. */
    if (truncated > a->full && !a->info->share && a->info->group == 0 &&
        a->info->n_budgets == 0)
        END_FAULT(a, "truncated_sequences is " U64 ", but " U64
                  " sequences have " U32 " tokens",
                  truncated, a->full, a->info->capacity);
    judge_total(a, "split_sequences", totals->split_sequences,
                a->seen.split_sequences);
    judge_total(a, "extra_pieces", totals->extra_pieces,
                a->seen.extra_pieces);
    a->seen = *totals;
    a->declared = *totals;
}

bool audit_pack(audit *a, const ps_pack *pack, const ps_totals *totals)
{
    if (pack->stream != a->stream) {
        audit_end(a, totals);
        a->stream = pack->stream;
        a->packs = 0;
        a->greatest = 0;
        a->watermark = 0;
        a->sequences = 0;
        a->full = 0;
        a->doubtful = false;
        a->lost = false;
    }
    a->place = (fault_place){pack->index, pack->offset};
    for (uint32_t i = 0; i < pack->n_seq; i++)
        if (!take_piece(a, pack, i))
            return false;
    if (pack->watermark < a->watermark)
        ID_FAULT(a, &a->place, "its watermark falls from " U64 " to " U64,
                 a->watermark, pack->watermark);
    else if (pack->watermark > a->watermark) {
        a->watermark = pack->watermark;
        a->marked_by = pack->index;
    }
    a->packs++;
    return true;
}

void audit_free(audit *a)
{
    free(a->log);
    a->log = NULL;
}
