/*
 * compare.c - whether packs hold what their input was.
 *
 * Ids count from 0 in each stream, sequences of the input have one number
 * through all of them: "id" is the one, "number" the other.
 *
 * SPDX-License-Identifier: MIT
 */

#include "compare.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"

#define U64 "%" PRIu64
#define U32 "%" PRIu32

/* Tells of a fault at the record that is compared. */
#define FAULT(a, ...)                                                   \
    faults_add((a)->faults, (a)->place.record, (a)->place.offset,       \
               __VA_ARGS__)

/* "record 3 at byte 40 of x.tok", of a sequence of the input. */
#define ENTRY "record " U64 " at byte " U64 " of %s"
#define ENTRY_ARGS(a, number, entry)                                    \
    number, (entry)->offset, inputs_name(&(a)->in, (entry)->file)

/* ---- Opening ---- */

/* Goes no further after a failure that was told. */
static bool go_on(against *a, int status)
{
    a->faults->status = faults_worse(a->faults->status, status);
    a->stopped = a->stopped || status != STATUS_OK;
    return !a->stopped;
}

/* The vocabulary that raw records were packed with, or a smaller one given. */
static uint32_t vocab_size(const ps_pack_info *info, const packstat_conf *conf)
{
    const uint32_t packed = info->schema.framed ? 0 : info->schema.vocab_size;
    const uint32_t given = conf->vocab_size;

    return packed == 0 || (given != 0 && given < packed) ? given : packed;
}

void compare_open(against *a, const packstat_conf *conf,
                  const ps_pack_info *info, faults *f)
{
    ps_type type =
        conf->type_given ? conf->raw_type : info->schema.token_type;

    *a = (against){.info = info,
                   .faults = f,
                   .lanes = columns_of(info),
                   .open = true,
                   .place = {0, PS_PACK_HEADER_BYTES}};
    if (!go_on(a, inputs_open(&a->in, &conf->against, type,
                              vocab_size(info, conf), conf->empty)))
        return;
    if (go_on(a, inputs_check(&a->in, &a->info->schema)) &&
        conf->rejects.n > 0)
        (void)go_on(a, rejects_in_open(&a->dropped, &conf->rejects,
                                       inputs_schema(&a->in)));
}

/* ---- Input ---- */

/* How many tokens of a sequence can be in packs. */
static uint32_t max_kept(const against *a, const ps_sequence *sequence)
{
    if (sequence->payload == NULL)
        return 0;
    return a->info->split || sequence->n_tok <= a->info->capacity
               ? sequence->n_tok
               : a->info->capacity;
}

static bool is_overlong(const against *a, const pending_entry *entry)
{
    return !a->info->split && entry->n_tok > a->info->capacity;
}

/* A sequence that need not be in a pack. */
static bool may_be_dropped(const against *a, const pending_entry *entry)
{
    return is_overlong(a, entry) || entry->outside || entry->n_tok == 0;
}

/* What a reject of it should say; of two reasons it may be either. */
static uint8_t drop_reason(const against *a, const pending_entry *entry)
{
    if (entry->n_tok == 0)
        return REASON_NONE;
    if (!is_overlong(a, entry) || entry->reason == REASON_OUT_OF_VOCAB)
        return entry->outside ? REASON_OUT_OF_VOCAB : REASON_DROPPED;
    return REASON_DROPPED;
}

static bool keep(against *a, const ps_sequence *sequence, uint8_t reason)
{
    const uint32_t kept = max_kept(a, sequence);
    const uint64_t bytes =
        kept == 0 ? 0 : ps_payload_bytes(&a->info->schema, kept);
    pending_entry *entry = pending_push(&a->pending, (size_t)bytes);

    if (entry == NULL)
        return false;
    entry->offset = sequence->offset;
    entry->file = inputs_file(&a->in);
    entry->n_tok = sequence->n_tok;
    entry->kept = kept;
    entry->reason = reason;
    entry->outside = a->in.outside;
    if (kept == 0)
        return true;
    if (kept == sequence->n_tok)
        memcpy(entry->payload, sequence->payload, (size_t)bytes);
    else
        columns_cut(&a->lanes, sequence->payload, sequence->n_tok, kept,
                    entry->payload);
    return true;
}

/* Reads one more; false if memory ran out, or with a->stopped. */
static bool read_one(against *a)
{
    const uint64_t number = a->pending.next;
    ps_sequence sequence;
    uint8_t reason = REASON_NONE;
    bool more;

    if (!go_on(a, inputs_next(&a->in, &sequence, &more)))
        return false;
    if (!more) {
        FAULT(a, "sequence " U64 " should be in the input, but %s ends "
              "before record " U64,
              number - a->base, inputs_name(&a->in, inputs_file(&a->in)),
              number);
        a->stopped = true;
        return false;
    }
    if (a->dropped.open &&
        !go_on(a, rejects_in_match(&a->dropped, number - a->base, &sequence,
                                   a->faults, &a->place, &reason)))
        return false;
    return keep(a, &sequence, reason);
}

/* ---- What has become of a sequence ---- */

static void check_reason(against *a, uint64_t number,
                         const pending_entry *entry, uint8_t right)
{
    static const char *const words[] = {
        [REASON_NONE] = "in packs whole",
        [REASON_DROPPED] = "dropped",
        [REASON_TRUNCATED] = "truncated",
        [REASON_OUT_OF_VOCAB] = "dropped for a token"};
    const uint64_t id = number - a->base;

    if (!a->dropped.open || entry->reason == right)
        return;
    if (entry->reason == REASON_NONE)
        FAULT(a, "sequence " U64 " was %s, but is not in %s: " ENTRY, id,
              words[right], dropped_name(&a->dropped),
              ENTRY_ARGS(a, number, entry));
    else
        FAULT(a, "sequence " U64 " is %s, but in %s with the reason %u: "
              ENTRY, id, words[right], dropped_name(&a->dropped),
              (unsigned)entry->reason, ENTRY_ARGS(a, number, entry));
}

/* Nothing more of it can come: counts it, or says that it is missing. */
static void settle(against *a, uint64_t number, const pending_entry *entry)
{
    ps_totals *made = &a->made;
    uint8_t reason = REASON_NONE;

    made->input_sequences++;
    made->input_tokens += entry->n_tok;
    if (entry->seen == 0 && !entry->done && may_be_dropped(a, entry)) {
        made->rejected_sequences++;
        made->rejected_tokens += entry->n_tok;
        reason = drop_reason(a, entry);
    } else if (entry->seen == 0 && !entry->done) {
        FAULT(a, "sequence " U64 " is in no record up to this: " ENTRY,
              number - a->base, ENTRY_ARGS(a, number, entry));
    } else if (entry->kept < entry->n_tok) {
        made->truncated_sequences++;
        made->truncated_tokens += entry->n_tok - entry->kept;
        reason = REASON_TRUNCATED;
    }
    check_reason(a, number, entry, reason);
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* True if `oldest` can be passed over: it is here, or need not come. */
static bool is_past(const against *a, uint64_t stop)
{
    const pending_entry *entry;

    if (a->oldest >= a->pending.next)
        return false;
    entry = pending_at(&a->pending, a->oldest);
    return entry->done || a->oldest < stop ||
           (entry->seen == 0 && may_be_dropped(a, entry));
}

/* Lets go what is done, and what can no longer come: all below `stop`. */
static void advance(against *a, uint64_t stop)
{
    pending *b = &a->pending;

    while (is_past(a, stop)) {
        a->oldest++;
        if (a->oldest < b->next)
            a->ahead -= min(a->ahead, pending_at(b, a->oldest)->pieces);
    }
    while (b->first < b->next &&
           (b->first < stop || pending_at(b, b->first)->done)) {
        settle(a, b->first, pending_at(b, b->first));
        pending_pop(b);
    }
}

/* Reads and settles all below `stop`; false as read_one. */
static bool pass(against *a, uint64_t stop)
{
    advance(a, stop);
    while (a->pending.next < stop) {
        if (!read_one(a))
            return false;
        advance(a, stop);
    }
    return true;
}

/* ---- Packs ---- */

static void tell_difference(against *a, const ps_pack *pack,
                            const ps_piece *piece,
                            const pending_entry *entry, const lane *where,
                            uint32_t element)
{
    const uint64_t number = a->base + piece->id;
    const uint32_t token = piece->seq_off + element;

    if (where->name == NULL)
        FAULT(a, "token " U32 " of sequence " U64 " is " U32 ", not " U32
              " as in " ENTRY,
              token, piece->id,
              columns_pack_token(&a->lanes, pack, piece->begin + element),
              columns_token(&a->lanes, entry->payload, token),
              ENTRY_ARGS(a, number, entry));
    else if (where->per_token)
        FAULT(a, "'%s' of token " U32 " of sequence " U64
              " is not as in " ENTRY,
              where->name, token, piece->id, ENTRY_ARGS(a, number, entry));
    else
        FAULT(a, "'%s' of sequence " U64 " is not as in " ENTRY, where->name,
              piece->id, ENTRY_ARGS(a, number, entry));
}

/* Compares a piece with the sequence that it should be of. */
static void compare(against *a, const ps_pack *pack, uint32_t i,
                    const ps_piece *piece, pending_entry *entry)
{
    const uint64_t number = a->base + piece->id;
    const lane *where;
    uint32_t element;

    if (piece->seq_len != entry->kept || entry->kept == 0) {
        FAULT(a, "sequence " U64 " has " U32 " tokens, not " U32 " as " ENTRY,
              piece->id, piece->seq_len, entry->n_tok,
              ENTRY_ARGS(a, number, entry));
        entry->done = true;
        return;
    }
    /* The audit has told of what does not lie within. */
    if (piece->seq_off > entry->kept ||
        piece->n_tok > entry->kept - piece->seq_off)
        return;
    where = columns_compare(&a->lanes, pack, i, piece, entry->payload,
                            entry->kept, &element);
    if (where != NULL)
        tell_difference(a, pack, piece, entry, where, element);
}

static void take(against *a, const ps_pack *pack, uint32_t i,
                 const ps_piece *piece)
{
    const uint64_t number = a->base + piece->id;
    pending_entry *entry;

    /* What came before, or too late: the audit has told. */
    if (number < a->pending.first)
        return;
    entry = pending_at(&a->pending, number);
    if (entry->done)
        return;
    compare(a, pack, i, piece, entry);
    entry->pieces++;
    if (number > a->oldest)
        a->ahead++;
    if (piece->n_tok < entry->kept - entry->seen)
        entry->seen += piece->n_tok;
    else
        entry->done = true;
    if (entry->done) {
        entry->seen = entry->kept;
        pending_forget(&a->pending, entry);
    }
}

/*
 * The window is a bound on what a reader that restores the order must hold
 * when the oldest sequence comes; for any other it is less.
 */
static void check_order(against *a, const ps_pack *pack)
{
    if (a->ahead <= a->info->window)
        return;
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const uint64_t id = ps_pack_piece(a->info, pack, i).id;

        if (id != a->oldest - a->base)
            continue;
        FAULT(a, "sequence " U64 " comes after " U64 " sequences or pieces "
              "with higher ids; the window allows " U32,
              id, a->ahead, a->info->window);
        return;
    }
}

/* Whether a sequence is so far ahead that the input cannot be held. */
static bool is_too_far(against *a, uint64_t id)
{
    const uint64_t first = a->pending.first - a->base;

    if (id < first || id - first <= PS_MAX_WINDOW)
        return false;
    FAULT(a, "sequence " U64 " is more than " U32 " ahead of sequence " U64
          ", which is still to come", id, PS_MAX_WINDOW, first);
    a->stopped = true;
    return true;
}

/* Reads as far as the sequences of a pack reach, and compares them. */
static bool take_all(against *a, const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(a->info, pack, i);

        if (is_too_far(a, piece.id))
            return false;
        while (a->pending.next <= a->base + piece.id)
            if (!read_one(a))
                return false;
        take(a, pack, i, &piece);
    }
    return true;
}

/* What an id of this stream is; of one out of all bounds the last number. */
static uint64_t number_of(const against *a, uint64_t id)
{
    return id <= UINT64_MAX - a->base ? a->base + id : UINT64_MAX;
}

/* Ids below it are neither in this pack nor in a later one. */
static uint64_t floor_of(const against *a, const ps_pack *pack)
{
    uint64_t floor = pack->watermark;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const uint64_t id = ps_pack_piece(a->info, pack, i).id;

        if (id < floor)
            floor = id;
    }
    return floor;
}

/* ---- Streams ---- */

static void judge_total(against *a, const char *name, uint64_t declared,
                        uint64_t made)
{
    if (declared != made)
        FAULT(a, "END: %s is " U64 ", but the input makes " U64, name,
              declared, made);
}

static bool end_stream(against *a, const ps_totals *said)
{
    const ps_totals *made = &a->made;

    if (!pass(a, said->input_sequences))
        return false;
    judge_total(a, "input_tokens", said->input_tokens, made->input_tokens);
    judge_total(a, "rejected_sequences", said->rejected_sequences,
                made->rejected_sequences);
    judge_total(a, "rejected_tokens", said->rejected_tokens,
                made->rejected_tokens);
    judge_total(a, "truncated_sequences", said->truncated_sequences,
                made->truncated_sequences);
    judge_total(a, "truncated_tokens", said->truncated_tokens,
                made->truncated_tokens);
    /* A lie is not told again for every later stream. */
    a->made = *said;
    a->base = said->input_sequences;
    a->oldest = a->base > a->pending.first ? a->base : a->pending.first;
    a->ahead = 0;
    return true;
}

static bool take_pack(against *a, const ps_pack *pack,
                      const ps_totals *totals)
{
    if (pack->stream != a->stream) {
        if (!end_stream(a, totals))
            return false;
        a->stream = pack->stream;
    }
    a->place = (fault_place){pack->index, pack->offset};
    check_order(a, pack);
    if (!pass(a, number_of(a, floor_of(a, pack))) || !take_all(a, pack) ||
        !pass(a, number_of(a, pack->watermark)))
        return false;
    a->place.record++;
    a->place.offset += a->info->record_bytes;
    return true;
}

bool compare_pack(against *a, const ps_pack *pack, const ps_totals *totals)
{
    if (!a->stopped && !take_pack(a, pack, totals))
        return a->stopped;
    return true;
}

/* After the last stream there must be nothing left. */
static void check_rest(against *a)
{
    ps_sequence sequence;
    bool more;

    if (!go_on(a, inputs_next(&a->in, &sequence, &more)))
        return;
    if (more)
        FAULT(a, "END: input_sequences is " U64 ", but %s goes on with "
              "record " U64 " at byte " U64,
              a->made.input_sequences,
              inputs_name(&a->in, inputs_file(&a->in)), sequence.id,
              sequence.offset);
    if (a->dropped.open)
        rejects_in_end(&a->dropped, a->faults, &a->place);
}

bool compare_end(against *a, const ps_totals *totals)
{
    if (!a->stopped && !end_stream(a, totals))
        return a->stopped;
    if (!a->stopped)
        check_rest(a);
    return true;
}

void compare_close(against *a)
{
    if (!a->open)
        return;
    rejects_in_close(&a->dropped);
    inputs_close(&a->in);
    pending_free(&a->pending);
    a->open = false;
}
