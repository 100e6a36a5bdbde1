/*
 * audit.c - the promises of a pack stream that no single record can show.
 *
 * The reader gives totals summed over the streams that have ended, so what
 * the records make is summed likewise.  What an END said is taken over once
 * it has been compared, lest a lie be told again for every later stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "audit.h"

#include <inttypes.h>

#define U64 "%" PRIu64
#define U32 "%" PRIu32

void audit_begin(audit *a, const ps_pack_info *info, faults *f)
{
    *a = (audit){0};
    a->info = info;
    a->faults = f;
    a->start = PS_PACK_HEADER_BYTES;
}

/* Where a record of this stream is, bytes. */
static uint64_t offset_of(const audit *a, uint64_t record)
{
    return a->start + record * a->info->record_bytes;
}

/* Says that sequence ids are wrong, after a fault has told how. */
#define ID_FAULT(a, record, ...)                                        \
    ((a)->doubtful = true,                                              \
     faults_add((a)->faults, record, offset_of(a, record), __VA_ARGS__))

/*
 * Compares a piece of a sequence with the one before it; the pieces so far
 * reach to token `next`.
 */
static void judge_piece(audit *a, const piece_log_entry *before,
                        const piece_log_entry *entry, uint64_t next)
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
    else if (p->seq_off > next && !a->cut)
        ID_FAULT(a, entry->record,
                 "sequence " U64 ": its tokens " U64 " to " U32
                 " are in no record",
                 p->id, next, p->seq_off - 1);
}

/* Looks at all there is of one sequence. */
static void judge(void *context, const piece_log_entry *entries, size_t n)
{
    audit *a = context;
    const ps_piece *first = &entries[0].piece;
    const ps_piece *last = &entries[n - 1].piece;
    uint64_t next = 0;

    a->sequences++;
    if (first->seq_off != 0 && !a->cut)
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
    if (next < last->seq_len && !a->cut)
        ID_FAULT(a, entries[n - 1].record,
                 "sequence " U64 ": its tokens from " U64 " to its end at "
                 U32 " are in no record",
                 last->id, next, last->seq_len);
}

/*
 * The most entries that may be ahead of the watermark.  What is still to
 * come has been in the window since before they came, and left it at most
 * `window` packs later.  One more is the beginning of a sequence that is
 * in pieces: it can have come long before.
 */
static uint64_t max_ahead(const ps_pack_info *info)
{
    return (uint64_t)info->window * info->depth + (info->split ? 1 : 0);
}

/* Makes room in the journal; false if memory ran out. */
static bool make_room(audit *a, uint64_t record)
{
    piece_log_settle(&a->piece_log, &a->watermark, judge, a);
    if (a->piece_log.n > max_ahead(a->info)) {
        ID_FAULT(a, record,
                 "%zu sequences or pieces are ahead of the watermark, " U64
                 "; the window and the depth cap allow " U64,
                 a->piece_log.n, a->watermark, max_ahead(a->info));
        a->lost = true;
        a->piece_log.n = 0;
        return true;
    }
    return a->piece_log.n < a->piece_log.room / 2 ||
           piece_log_grow(&a->piece_log);
}

static bool take_piece(audit *a, const ps_pack *pack, const ps_piece *p)
{
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
    if (!a->lost && !piece_log_has_room(&a->piece_log) &&
        !make_room(a, pack->index))
        return false;
    if (!a->lost)
        piece_log_add(&a->piece_log, p, pack->index);
    return true;
}

/* The greatest id so far must stay below END's input_sequences. */
static void note_ids(audit *a, const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        uint64_t id = ps_pack_piece(a->info, pack, i).id;

        if (id > a->greatest)
            a->greatest = id;
    }
}

/* A fault of END, which comes after the last record. */
#define END_FAULT(a, ...)                                               \
    faults_add((a)->faults, (a)->records, offset_of(a, (a)->records),   \
               "END: " __VA_ARGS__)

/* Is every sequence of the input in a record or among the rejected? */
static void judge_ids(audit *a, const ps_totals *totals)
{
    uint64_t in = totals->input_sequences - a->declared.input_sequences;
    uint64_t rejected =
        totals->rejected_sequences - a->declared.rejected_sequences;

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
}

/* Compares one of the totals with what the records make. */
static void judge_total(audit *a, const char *name, uint64_t declared,
                        uint64_t seen)
{
    if (declared != seen)
        END_FAULT(a, "%s is " U64 ", but the records make " U64, name,
                  declared, seen);
}

/* Sequences that lost tokens lost at least `min` each. */
static void judge_loss(audit *a, const char *how, uint64_t sequences,
                       uint64_t tokens, uint64_t min)
{
    if (sequences * min > tokens || (sequences == 0 && tokens != 0))
        END_FAULT(a, U64 " %s sequences cannot have lost " U64 " tokens",
                  sequences, how, tokens);
}

/* What the reader cannot compare, as it does not join pieces. */
static void judge_totals(audit *a, const ps_totals *said)
{
    const ps_totals *seen = &a->seen;
    const ps_totals *before = &a->declared;

    /* Raw records may be empty, and are rejected then. */
    judge_loss(a, "rejected",
               said->rejected_sequences - before->rejected_sequences,
               said->rejected_tokens - before->rejected_tokens,
               a->info->schema.framed ? 1 : 0);
    judge_loss(a, "truncated",
               said->truncated_sequences - before->truncated_sequences,
               said->truncated_tokens - before->truncated_tokens, 1);
    judge_total(a, "split_sequences", said->split_sequences,
                seen->split_sequences);
    judge_total(a, "extra_pieces", said->extra_pieces, seen->extra_pieces);
}

void audit_end(audit *a, const ps_totals *totals)
{
    piece_log_settle(&a->piece_log, NULL, judge, a);
    judge_ids(a, totals);
    judge_totals(a, totals);
    a->seen = *totals;
    a->declared = *totals;
}

void audit_cut(audit *a)
{
    a->cut = true;
    piece_log_settle(&a->piece_log, NULL, judge, a);
}

static void begin_stream(audit *a, const ps_pack *pack)
{
    a->stream = pack->stream;
    a->start = pack->offset - pack->index * a->info->record_bytes;
    a->records = 0;
    a->greatest = 0;
    a->watermark = 0;
    a->sequences = 0;
    a->doubtful = false;
    a->lost = false;
}

bool audit_pack(audit *a, const ps_pack *pack, const ps_totals *totals)
{
    if (pack->stream != a->stream) {
        audit_end(a, totals);
        begin_stream(a, pack);
    }
    note_ids(a, pack);
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        ps_piece piece = ps_pack_piece(a->info, pack, i);

        if (!take_piece(a, pack, &piece))
            return false;
    }
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
    piece_log_free(&a->piece_log);
}
