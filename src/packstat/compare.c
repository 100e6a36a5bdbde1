/*
 * compare.c - compare packs with their input.
 *
 * In this file, an "id" counts sequences from 0 in each stream, and a "number"
 * counts them through all inputs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/compare.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "files/files.h"

#define U64 "%" PRIu64
#define U32 "%" PRIu32

/* Reports a fault at the current pack, or at END. */
#define FAULT(c, ...) faults_add((c)->faults, &(c)->place, __VA_ARGS__)

/* Formats "record 3 at byte 40 of x.tok" for a sequence of the input. */
#define ENTRY "record " U64 " at byte " U64 " of %s"
#define ENTRY_ARGS(c, number, entry)                                    \
    number, (entry)->offset, inputs_name(&(c)->in, (entry)->file)

/* ---- Opening ---- */

/* Records an exit status.  Returns false if it is a failure. */
static bool go_on(comparison *c, int status)
{
    c->faults->status = faults_worse(c->faults->status, status);
    c->stopped = c->stopped || status != STATUS_OK;
    return !c->stopped;
}

void compare_open(comparison *c, const packstat_conf *conf,
                  const ps_pack_info *info, faults *f)
{
    const ps_type type =
        conf->type_given ? conf->raw_type : info->schema.token_type;
    uint32_t vocab_size = conf->vocab_size;

    *c = (comparison){.info = info,
                      .faults = f,
                      .columns = columns_of(info),
                      .open = true,
                      .place = {0, PS_PACK_HEADER_BYTES}};

    /* Use the lower of the vocabulary sizes of the packs and of --vocab. */
    if (!info->schema.framed && info->schema.vocab_size != 0 &&
        (vocab_size == 0 || vocab_size > info->schema.vocab_size))
        vocab_size = info->schema.vocab_size;

    if (info->share) {
        message_error("%s: is a share of a stream, but --against needs all "
                      "packs",
                      files_input_name(f->file));
        (void)go_on(c, STATUS_DATA);
        return;
    }
    if (go_on(c, inputs_open(&c->in, &conf->against, type, vocab_size,
                             conf->empty)) &&
        go_on(c, inputs_check(&c->in, &info->schema)) && conf->rejects.n > 0)
        (void)go_on(c, rejects_open(&c->rejects, &conf->rejects,
                                    ps_token_reader_schema(c->in.reader)));
}

/* ---- Input ---- */

static bool is_overlong(const comparison *c, const pending_entry *entry)
{
    return !c->info->split && entry->n_tok > c->info->capacity;
}

/*
 * True if a sequence may be missing from the packs.  With groups or budgets,
 * this is true for any sequence, since its group may be overlong, or the
 * sequence may exceed a budget; then only the totals can show a loss.
 */
static bool may_be_dropped(const comparison *c, const pending_entry *entry)
{
    return is_overlong(c, entry) || entry->outside || entry->n_tok == 0 ||
           c->info->group > 0 || c->info->n_budgets > 0;
}

/*
 * Reads one more sequence and appends it to the pending sequences.  Returns
 * false if out of memory, or if it has set c->stopped.
 */
static bool read_one(comparison *c)
{
    const uint64_t number = c->pending.next;
    ps_sequence sequence;
    pending_entry *entry;
    uint8_t reason = REJECT_NONE;
    uint32_t kept; /* tokens that packs can contain */
    uint64_t bytes;
    bool more;

    if (!go_on(c, inputs_next(&c->in, &sequence, &more)))
        return false;
    if (!more) {
        FAULT(c, "sequence " U64 " should be in the input, but %s ends "
              "before record " U64,
              number - c->base, inputs_name(&c->in, c->in.file), number);
        c->stopped = true;
        return false;
    }
    if (c->rejects.open &&
        !go_on(c, rejects_match(&c->rejects, number - c->base, &sequence,
                                c->faults, &c->place, &reason)))
        return false;

    kept = sequence.payload == NULL ? 0 : sequence.n_tok;
    if (!c->info->split && kept > c->info->capacity)
        kept = c->info->capacity;
    bytes = kept == 0 ? 0
                      : ps_payload_bytes(&c->info->schema, kept) +
                            ps_payload_lists(&c->info->schema, sequence.n_tok,
                                             sequence.payload);
    entry = pending_push(&c->pending, (size_t)bytes);
    if (entry == NULL)
        return false;
    entry->offset = sequence.offset;
    entry->file = c->in.file;
    entry->n_tok = sequence.n_tok;
    entry->kept = kept;
    entry->reason = reason;
    entry->outside = c->in.outside;
    if (kept > 0 && kept == sequence.n_tok)
        memcpy(entry->payload, sequence.payload, (size_t)bytes);
    else if (kept > 0)
        columns_truncate(&c->columns, sequence.payload, sequence.n_tok, kept,
                         entry->payload);
    return true;
}

/* ---- Settling a sequence ---- */

/*
 * Handles a sequence of which no more pieces can follow: counts it, or reports
 * that it is missing, and compares its reject with the packs.
 */
static void settle(comparison *c, uint64_t number, const pending_entry *entry)
{
    static const char *const words[] = {
        [REJECT_NONE] = "completely in packs",
        [REJECT_DROPPED] = "dropped",
        [REJECT_TRUNCATED] = "truncated",
        [REJECT_OUT_OF_VOCAB] = "dropped for a token"};
    const uint64_t id = number - c->base;
    const bool absent = entry->seen == 0 && !entry->done;
    ps_totals *made = &c->made;
    uint8_t reason = REJECT_NONE;

    made->input_sequences++;
    made->input_tokens += entry->n_tok;
    if (absent && may_be_dropped(c, entry)) {
        made->rejected_sequences++;
        made->rejected_tokens += entry->n_tok;
        /* If both reasons apply, either is valid. */
        if (entry->n_tok > 0)
            reason = entry->outside &&
                             (!is_overlong(c, entry) ||
                              entry->reason == REJECT_OUT_OF_VOCAB)
                         ? REJECT_OUT_OF_VOCAB
                         : REJECT_DROPPED;
    } else if (absent) {
        FAULT(c, "sequence " U64 " is not in any pack so far: " ENTRY,
              id, ENTRY_ARGS(c, number, entry));
    } else if (entry->kept < entry->n_tok) {
        made->truncated_sequences++;
        made->truncated_tokens += entry->n_tok - entry->kept;
        reason = REJECT_TRUNCATED;
    }

    if (!c->rejects.open || entry->reason == reason)
        return;
    if (entry->reason == REJECT_NONE)
        FAULT(c, "sequence " U64 " was %s, but is not in %s: " ENTRY, id,
              words[reason], rejects_name(&c->rejects),
              ENTRY_ARGS(c, number, entry));
    else
        FAULT(c, "sequence " U64 " is %s, but in %s with reason %u: "
              ENTRY, id, words[reason], rejects_name(&c->rejects),
              (unsigned)entry->reason, ENTRY_ARGS(c, number, entry));
}

/*
 * Settles sequences that are complete, and all sequences numbered below `stop`,
 * of which no more pieces can follow.
 */
static void advance(comparison *c, uint64_t stop)
{
    pending *p = &c->pending;

    /* Wait for the oldest sequence, unless it is complete or may be missing. */
    while (c->oldest < p->next) {
        const pending_entry *entry = pending_at(p, c->oldest);

        if (!entry->done && c->oldest >= stop &&
            (entry->seen > 0 || !may_be_dropped(c, entry)))
            break;
        c->oldest++;
        if (c->oldest < p->next) {
            const uint64_t pieces = pending_at(p, c->oldest)->pieces;

            c->ahead -= pieces < c->ahead ? pieces : c->ahead;
        }
    }
    while (p->first < p->next &&
           (p->first < stop || pending_at(p, p->first)->done)) {
        settle(c, p->first, pending_at(p, p->first));
        pending_pop(p);
    }
}

/* Reads and settles all sequences below `stop`.  Results as read_one. */
static bool pass(comparison *c, uint64_t stop)
{
    advance(c, stop);
    while (c->pending.next < stop) {
        if (!read_one(c))
            return false;
        advance(c, stop);
    }
    return true;
}

/* ---- Packs ---- */

/* Handles a sequence that was truncated for its group or a budget. */
static void truncate_entry(const comparison *c, const ps_piece *piece,
                           pending_entry *entry)
{
    if ((c->info->group == 0 && c->info->n_budgets == 0) ||
        c->info->split || entry->done || piece->seq_len == 0 ||
        piece->seq_len >= entry->kept)
        return;
    columns_truncate(&c->columns, entry->payload, entry->kept, piece->seq_len,
                     entry->payload);
    entry->kept = piece->seq_len;
}

/* Compares a piece with its sequence in the input. */
static void compare_piece(comparison *c, const ps_pack *pack, uint32_t i,
                          const ps_piece *piece, pending_entry *entry)
{
    const uint64_t number = c->base + piece->id;
    const column *where;
    uint32_t element;
    uint32_t token;

    if (piece->seq_len != entry->kept || entry->kept == 0) {
        FAULT(c, "sequence " U64 " has " U32 " tokens, not " U32
              " as in " ENTRY,
              piece->id, piece->seq_len, entry->n_tok,
              ENTRY_ARGS(c, number, entry));
        entry->done = true;
        return;
    }
    /* The audit has reported pieces that exceed their sequence. */
    if (piece->seq_off > entry->kept ||
        piece->n_tok > entry->kept - piece->seq_off)
        return;
    where = columns_compare(&c->columns, c->info, pack, i, piece,
                            entry->payload, entry->kept, &element);
    if (where == NULL)
        return;

    token = piece->seq_off + element;
    if (where->channel == PS_TOKENS)
        FAULT(c, "token " U32 " of sequence " U64 " is " U32 ", not " U32
              " as in " ENTRY,
              token, piece->id,
              columns_token(&c->columns, pack->row + where->field->offset,
                            piece->begin + element),
              columns_token(&c->columns, entry->payload, token),
              ENTRY_ARGS(c, number, entry));
    else if (where->field->channel.kind == PS_PER_TOKEN)
        FAULT(c, "'%s' of token " U32 " of sequence " U64
              " differs from " ENTRY,
              where->field->channel.name, token, piece->id,
              ENTRY_ARGS(c, number, entry));
    else
        FAULT(c, "'%s' of sequence " U64 " differs from " ENTRY,
              where->field->channel.name, piece->id,
              ENTRY_ARGS(c, number, entry));
}

/* Reads the input as far as the sequences of a pack, and compares them. */
static bool take_pieces(comparison *c, const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(c->info, pack, i);
        const uint64_t first = c->pending.first - c->base;
        const uint64_t number = c->base + piece.id;
        pending_entry *entry;

        /* The input between the two would be too large to hold. */
        if (piece.id >= first && piece.id - first > PS_MAX_WINDOW) {
            FAULT(c, "sequence " U64 " is more than " U32 " ahead of sequence "
                  U64 ", which is missing so far", piece.id, PS_MAX_WINDOW,
                  first);
            c->stopped = true;
            return false;
        }
        while (c->pending.next <= number)
            if (!read_one(c))
                return false;

        /* The audit has reported duplicates and late sequences. */
        if (number < c->pending.first)
            continue;
        entry = pending_at(&c->pending, number);
        if (entry->done)
            continue;
        truncate_entry(c, &piece, entry);
        compare_piece(c, pack, i, &piece, entry);
        entry->pieces++;
        if (number > c->oldest)
            c->ahead++;
        if (piece.n_tok < entry->kept - entry->seen)
            entry->seen += piece.n_tok;
        else
            entry->done = true;
        if (entry->done) {
            entry->seen = entry->kept;
            pending_release(&c->pending, entry);
        }
    }
    return true;
}

/* Number of an id in this stream, with saturation. */
static uint64_t number_of(const comparison *c, uint64_t id)
{
    return id <= UINT64_MAX - c->base ? c->base + id : UINT64_MAX;
}

/* ---- Streams ---- */

static bool end_stream(comparison *c, const ps_totals *declared)
{
    const ps_totals *made = &c->made;
    const struct {
        const char *name;
        const uint64_t *declared;
        const uint64_t *made;
    } totals[] = {
        {"input_tokens", &declared->input_tokens, &made->input_tokens},
        {"rejected_sequences", &declared->rejected_sequences,
         &made->rejected_sequences},
        {"rejected_tokens", &declared->rejected_tokens,
         &made->rejected_tokens},
        {"truncated_sequences", &declared->truncated_sequences,
         &made->truncated_sequences},
        {"truncated_tokens", &declared->truncated_tokens,
         &made->truncated_tokens},
    };

    c->place = (fault_place){.number = c->stream};
    if (!pass(c, declared->input_sequences))
        return false;
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++)
        if (*totals[i].declared != *totals[i].made)
            FAULT(c, "%s is " U64 ", but must be " U64 " for this input",
                  totals[i].name, *totals[i].declared, *totals[i].made);
    /* Continue from the declared totals, to report a wrong total only once. */
    c->made = *declared;
    c->base = declared->input_sequences;
    c->oldest = c->base > c->pending.first ? c->base : c->pending.first;
    c->ahead = 0;
    return true;
}

bool compare_pack(comparison *c, const ps_pack *pack, const ps_totals *totals)
{
    uint64_t lowest = pack->watermark;
    bool has_oldest = false;

    if (c->stopped)
        return true;
    if (pack->stream != c->stream) {
        if (!end_stream(c, totals))
            return c->stopped;
        c->stream = pack->stream;
    }
    c->place = (fault_place){pack->index, pack->offset};

    /* Ids below `lowest` are neither in this pack nor in later packs. */
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const uint64_t id = ps_pack_piece(c->info, pack, i).id;

        lowest = id < lowest ? id : lowest;
        has_oldest = has_oldest || id == c->oldest - c->base;
    }
    /*
     * A reader that restores the order holds the most sequences when the oldest
     * sequence arrives.  The window limits this number.
     */
    if (has_oldest && c->ahead > c->info->max_displacement)
        FAULT(c, "sequence " U64 " comes after " U64 " sequences or pieces "
              "with higher ids, but the window allows " U32,
              c->oldest - c->base, c->ahead, c->info->max_displacement);
    if (!pass(c, number_of(c, lowest)) || !take_pieces(c, pack) ||
        !pass(c, number_of(c, pack->watermark)))
        return c->stopped;
    return true;
}

bool compare_end(comparison *c, const ps_totals *totals)
{
    ps_sequence sequence;
    bool more;

    if (c->stopped || !end_stream(c, totals))
        return c->stopped;

    /* The input must end with the last stream. */
    if (!go_on(c, inputs_next(&c->in, &sequence, &more)))
        return true;
    if (more)
        FAULT(c, "input_sequences is " U64 ", but %s continues with "
              "record " U64 " at byte " U64,
              c->made.input_sequences,
              inputs_name(&c->in, c->in.file), sequence.id,
              sequence.offset);
    if (c->rejects.open)
        rejects_end(&c->rejects, c->faults, &c->place);
    return true;
}

void compare_close(comparison *c)
{
    if (!c->open)
        return;
    rejects_close(&c->rejects);
    inputs_close(&c->in);
    pending_free(&c->pending);
    c->open = false;
}
