/*
 * audit.c - the promises of a pack stream that no single record can show.
 *
 * The reader gives totals summed over the streams that have ended, so what
 * the records make is summed likewise.  What an END declared becomes the new
 * base once it has been compared, so that a wrong number is reported only
 * for its own stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/audit.h"

#include <inttypes.h>
#include <stdlib.h>

#include <xxhash.h>

enum { FIRST_CAPACITY = 4096 };

#define U64 "%" PRIu64
#define U32 "%" PRIu32

void audit_begin(audit *a, const ps_pack_info *info, faults *f)
{
    *a = (audit){0};
    a->info = info;
    a->faults = f;
    a->start = PS_PACK_HEADER_BYTES;
}

/* The offset of a record of this stream, bytes. */
static uint64_t offset_of(const audit *a, uint64_t record)
{
    return a->start + record * a->info->record_bytes;
}

/* A fault that makes sequence ids doubtful. */
#define ID_FAULT(a, record, ...)                                        \
    ((a)->doubtful = true,                                              \
     faults_add((a)->faults, record, offset_of(a, record), __VA_ARGS__))

/* Whether what is in no record can be elsewhere. */
static bool may_lack(const audit *a)
{
    return a->cut || a->info->share;
}

/*
 * Compares a piece of a sequence with the one before it; the pieces so far
 * reach to token `next`.
 */
static void judge_piece(audit *a, const logged_piece *before,
                        const logged_piece *entry, uint64_t next)
{
    const ps_piece *p = &entry->piece;

    if (p->seq_len != before->piece.seq_len)
        ID_FAULT(a, entry->record,
                 "sequence " U64 " has " U32 " tokens here, " U32
                 " in record " U64,
                 p->id, p->seq_len, before->piece.seq_len, before->record);
    else if (p->seq_off == before->piece.seq_off)
        ID_FAULT(a, entry->record,
                 "token " U32 " of sequence " U64
                 " comes again; it was in record " U64,
                 p->seq_off, p->id, before->record);
    else if (p->seq_off < next)
        ID_FAULT(a, entry->record,
                 "token " U32 " of sequence " U64
                 " overlaps what came from record " U64 " on",
                 p->seq_off, p->id, before->record);
    else if (p->seq_off > next && !may_lack(a))
        ID_FAULT(a, entry->record,
                 "sequence " U64 ": its tokens " U64 " to " U32
                 " are in no record",
                 p->id, next, p->seq_off - 1);
    if (entry->values != before->values)
        faults_add(a->faults, entry->record, offset_of(a, entry->record),
                   "sequence " U64 " has other per-sequence values here than "
                   "in record " U64,
                   p->id, before->record);
}

/* Looks at all `n` pieces of a sequence, by offset and then by record. */
static void judge(audit *a, const logged_piece *entries, size_t n)
{
    const ps_piece *first = &entries[0].piece;
    const ps_piece *last = &entries[n - 1].piece;
    uint64_t next = 0;

    a->sequences += first->seq_off == 0;
    if (first->seq_off != 0 && !may_lack(a))
        ID_FAULT(a, entries[0].record,
                 "sequence " U64 ": its tokens before " U32
                 " are in no record",
                 first->id, first->seq_off);
    for (size_t i = 0; i < n; i++) {
        const ps_piece *piece = &entries[i].piece;
        uint64_t end = (uint64_t)piece->seq_off + piece->n_tok;

        if (i > 0)
            judge_piece(a, &entries[i - 1], &entries[i], next);
        next = end > next ? end : next;
    }
    if (next < last->seq_len && !may_lack(a))
        ID_FAULT(a, entries[n - 1].record,
                 "sequence " U64 ": its tokens from " U64 " to its end at "
                 U32 " are in no record",
                 last->id, next, last->seq_len);
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By sequence, offset in it, record, and place in the record. */
static int compare(const void *a, const void *b)
{
    const logged_piece *x = a;
    const logged_piece *y = b;
    int result = order(x->piece.id, y->piece.id);

    if (result == 0)
        result = order(x->piece.seq_off, y->piece.seq_off);
    if (result == 0)
        result = order(x->record, y->record);
    if (result == 0)
        result = order(x->piece.begin, y->piece.begin);
    return result;
}

/* True if `y` goes on where `x` ends, and nothing else has to be told. */
static bool follows(const logged_piece *x, const logged_piece *y)
{
    const ps_piece *a = &x->piece;
    const ps_piece *b = &y->piece;

    return a->id == b->id && a->seq_len == b->seq_len &&
           a->seq_off <= b->seq_off && a->n_tok == b->seq_off - a->seq_off &&
           b->n_tok <= UINT32_MAX - a->n_tok && x->values == y->values;
}

/*
 * Judges every sequence below `end` (NULL: every sequence) and forgets it.
 * Of the others, pieces that touch become one, so that a sequence of very
 * many pieces does not fill the log.
 *
 * Sorting, not hashing: it needs no secret to be safe from made-up ids,
 * brings the pieces of a sequence together, and judges in a fixed order.
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

/* Makes the log ready for another piece; false if memory ran out. */
static bool make_room(audit *a, uint64_t record)
{
    /*
     * What is still to come has been in the window since before the pieces
     * that are ahead of the watermark came, and left it at most `window`
     * packs later.  One more is the beginning of a sequence that is in
     * pieces: it can have come long before.
     */
    const uint64_t max_ahead =
        (uint64_t)a->info->window * a->info->depth + (a->info->split ? 1 : 0);
    const size_t capacity =
        a->log_capacity == 0 ? FIRST_CAPACITY : a->log_capacity * 2;
    logged_piece *log;

    judge_below(a, &a->watermark);
    if (a->n_logged > max_ahead) {
        ID_FAULT(a, record,
                 "%zu sequences or pieces are ahead of the watermark, " U64
                 "; the window and the depth cap allow " U64,
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

/* A hash of the per-sequence values of sequence `i` of a pack. */
static uint64_t hash_values(const ps_pack_info *info, const ps_pack *pack,
                            uint32_t i)
{
    uint64_t hash = 0;

    for (uint32_t k = 0; k < info->n_fields; k++) {
        const ps_field *f = &info->fields[k];
        const size_t bytes = ps_type_bytes(f->channel.type);

        if (f->source != PS_BUILT_IN && f->channel.kind == PS_PER_SEQUENCE)
            hash = XXH3_64bits_withSeed(
                pack->record + f->offset + i * bytes, bytes, hash);
    }
    return hash;
}

/* Takes sequence `i` of a pack. */
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
    if (p->n_tok > p->seq_len || p->seq_off > p->seq_len - p->n_tok)
        ID_FAULT(a, pack->index,
                 "sequence " U64 " has " U32 " tokens, but a piece of " U32
                 " at token " U32,
                 p->id, p->seq_len, p->n_tok, p->seq_off);
    if (p->id < a->watermark) {
        ID_FAULT(a, pack->index,
                 "sequence " U64 " is below " U64
                 ", the watermark of record " U64,
                 p->id, a->watermark, a->marked_by);
        return true;
    }
    if (!a->lost && a->n_logged == a->log_capacity &&
        !make_room(a, pack->index))
        return false;
    if (!a->lost)
        a->log[a->n_logged++] = (logged_piece){
            piece, pack->index,
            p->n_tok < p->seq_len ? hash_values(a->info, pack, i) : 0};
    return true;
}

/* A fault of END, which comes after the last record. */
#define END_FAULT(a, ...)                                               \
    faults_add((a)->faults, (a)->records, offset_of(a, (a)->records),   \
               "END: " __VA_ARGS__)

/* Compares one of the totals with what the records make. */
static void judge_total(audit *a, const char *name, uint64_t declared,
                        uint64_t seen)
{
    if (declared != seen)
        END_FAULT(a, "%s is " U64 ", but the records make " U64, name,
                  declared, seen);
}

/*
 * Sequences that lost tokens lost at least `min` each.  `pieces`: others can
 * have lost tokens, too.
 */
static void judge_loss(audit *a, const char *how, uint64_t sequences,
                       uint64_t tokens, uint64_t min, bool pieces)
{
    if (sequences * min > tokens ||
        (sequences == 0 && tokens != 0 && !pieces))
        END_FAULT(a, U64 " %s sequences cannot have lost " U64 " tokens",
                  sequences, how, tokens);
}

void audit_end(audit *a, const ps_totals *totals)
{
    const ps_totals *before = &a->declared;
    uint64_t in;
    uint64_t rejected;

    a->cut = totals == NULL;
    judge_below(a, NULL);
    if (a->cut)
        return;

    /* Every sequence of the input is in a record or among the rejected. */
    in = totals->input_sequences - before->input_sequences;
    rejected = totals->rejected_sequences - before->rejected_sequences;
    if (a->records > 0 && a->greatest >= in)
        END_FAULT(a, "there is a sequence " U64 ", but input_sequences is "
                  U64, a->greatest, in);
    else if (a->watermark > in)
        END_FAULT(a, "the watermark of record " U64 " is " U64
                  ", but input_sequences is " U64,
                  a->marked_by, a->watermark, in);
    else if (!a->doubtful && a->sequences + rejected != in)
        END_FAULT(a, "input_sequences is " U64 ", but the records hold " U64
                  " and rejected_sequences is " U64,
                  in, a->sequences, rejected);

    /*
     * What the reader cannot compare, as it does not join pieces.  Raw
     * records may be empty, and are rejected then.
     */
    judge_loss(a, "rejected", rejected,
               totals->rejected_tokens - before->rejected_tokens,
               a->info->schema.framed ? 1 : 0,
               a->info->share && a->info->split);
    judge_loss(a, "truncated",
               totals->truncated_sequences - before->truncated_sequences,
               totals->truncated_tokens - before->truncated_tokens, 1,
               false);
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
        a->start = pack->offset - pack->index * a->info->record_bytes;
        a->records = 0;
        a->greatest = 0;
        a->watermark = 0;
        a->sequences = 0;
        a->doubtful = false;
        a->lost = false;
    }
    for (uint32_t i = 0; i < pack->n_seq; i++)
        if (!take_piece(a, pack, i))
            return false;
    if (pack->watermark < a->watermark)
        ID_FAULT(a, pack->index,
                 "its watermark falls from " U64 " to " U64, a->watermark,
                 pack->watermark);
    else if (pack->watermark > a->watermark) {
        a->watermark = pack->watermark;
        a->marked_by = pack->index;
    }
    a->records++;
    return true;
}

void audit_free(audit *a)
{
    free(a->log);
    a->log = NULL;
}
