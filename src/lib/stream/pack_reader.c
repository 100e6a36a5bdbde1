/*
 * pack_reader.c - read and verify packs in order; open either type of stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "stream/pack_reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "bytes.h"
#include "format/block.h"
#include "format/digest.h"
#include "format/pack.h"
#include "format/pack_header.h"
#include "format/totals.h"
#include "stream/token_reader.h"

ps_result ps_pack_reader_header(ps_pack_reader *r, ps_error *err)
{
    ps_pack_place *p = &r->place;
    const unsigned char *header;
    size_t got;
    ps_result result = ps_input_peek(r->input, PS_PACK_HEADER_BYTES,
                                     &header, &got, err);

    if (result == PS_OK)
        result = ps_pack_header_read(header, got, &r->current, err);
    if (result != PS_OK)
        return result;
    p->header = p->digest = ps_pack_digest_begin(header);
    p->last = p->newest = 0;
    p->seen = (ps_totals){0};
    p->before = r->ended;
    p->index = (ps_index_seen){0};
    r->header_at = r->input->taken;
    ps_input_take(r->input, PS_PACK_HEADER_BYTES);
    return PS_OK;
}

/* Creates a reader.  Takes ownership of `input`, even on failure. */
static ps_result start(ps_pack_reader **reader, ps_input *input,
                       ps_error *err)
{
    ps_pack_reader *r = calloc(1, sizeof *r);
    ps_result result;

    *reader = NULL;
    if (r == NULL) {
        ps_input_free(input);
        return ps_fail_memory(err);
    }
    r->input = input;
    r->ranks = 1;
    result = ps_pack_reader_header(r, err);
    if (result != PS_OK) {
        ps_pack_reader_free(r);
        return result;
    }
    r->info = r->current;
    r->place.first_header = r->place.header;
    *reader = r;
    return PS_OK;
}

/*
 * Sets *depth to the depth of the streams in a complete regular file.  If
 * ps_pack_file cannot open the file, *depth is unchanged; the reader reports an
 * error when it reaches it.
 */
static ps_result depth_of_file(int fd, uint32_t *depth, ps_error *err)
{
    ps_pack_file *file;
    const ps_result r = ps_pack_file_open(&file, fd, err);

    if (r != PS_OK)
        return r == PS_ERR_MEMORY || r == PS_ERR_IO ? r : PS_OK;
    *depth = ps_pack_file_info(file)->depth;
    ps_pack_file_free(file);
    return PS_OK;
}

ps_result ps_pack_reader_open(ps_pack_reader **reader, int fd, ps_error *err)
{
    ps_input *input;
    ps_result result = ps_input_open(&input, fd, err);

    *reader = NULL;
    if (result != PS_OK)
        return result;
    input->frames.is_head = ps_is_pack_head;
    result = start(reader, input, err);
    if (result == PS_OK && (*reader)->info.depth == 0)
        result = depth_of_file(fd, &(*reader)->info.depth, err);
    if (result != PS_OK) {
        ps_pack_reader_free(*reader);
        *reader = NULL;
    }
    return result;
}

ps_result ps_open_any(int fd, ps_type raw_type, ps_pack_reader **packs,
                      ps_token_reader **tokens, ps_error *err)
{
    const ps_token_reader_options defaults = {0};
    const unsigned char *head;
    size_t got;
    ps_input *input;
    ps_result result;

    *packs = NULL;
    *tokens = NULL;
    if (raw_type != PS_U16 && raw_type != PS_U32)
        return ps_fail(err, PS_ERR_ARGUMENT, "tokens must be u16 or u32");
    result = ps_input_open(&input, fd, err);
    if (result != PS_OK)
        return result;
    input->frames.is_head = ps_is_pack_head;
    result = ps_input_peek(input, 8, &head, &got, err);
    if (result != PS_OK) {
        ps_input_free(input);
        return result;
    }
    if (got > 0 && ps_is_pack_magic_prefix(head, got))
        return start(packs, input, err);
    return ps_token_reader_start(tokens, input, raw_type, &defaults, err);
}

void ps_pack_reader_free(ps_pack_reader *r)
{
    if (r == NULL)
        return;
    ps_input_free(r->input);
    free(r);
}

/* ---- Comparing the index with the blocks read ---- */

static uint64_t entry_digest(uint64_t digest, const ps_entry *entry)
{
    unsigned char bytes[PS_ENTRY_BYTES];

    ps_entry_encode(entry, bytes);
    return XXH3_64bits_withSeed(bytes, sizeof bytes, digest);
}

static uint64_t entries_digest(const unsigned char *entries, uint32_t n)
{
    uint64_t digest = 0;

    for (uint32_t i = 0; i < n; i++, entries += PS_ENTRY_BYTES)
        digest = XXH3_64bits_withSeed(entries, PS_ENTRY_BYTES, digest);
    return digest;
}

/* Records the block of packs that starts at the next byte. */
static ps_result note_block(ps_pack_reader *r, uint64_t watermark,
                            ps_error *err)
{
    ps_index_seen *index = &r->place.index;
    const ps_entry entry = {r->input->taken - r->header_at, r->block.first,
                            watermark};

    if (index->n_blocks == PS_INDEX_UNSEEN)
        return PS_OK;
    if (index->n_blocks == PS_INDEX_BLOCKS)
        return ps_fail(err, PS_ERR_CORRUPT, "no index for the "
                       "preceding %d blocks",
                       PS_INDEX_BLOCKS);
    if (index->n_blocks++ == 0)
        index->first = entry.first;
    index->watermark = watermark;
    index->blocks = entry_digest(index->blocks, &entry);
    return PS_OK;
}

/* Checks and records an INDEX block.  All its bytes are at `bytes`. */
static ps_result check_index(ps_pack_reader *r, const unsigned char *bytes,
                             ps_error *err)
{
    const unsigned char *entries = bytes + PS_BLOCK_HEAD_BYTES;
    ps_index_seen *index = &r->place.index;
    const ps_entry part = {r->input->taken - r->header_at, index->first,
                           index->watermark};

    if (r->block.body !=
        ps_hash(entries, PS_INDEX_BYTES - PS_BLOCK_HEAD_BYTES))
        return ps_fail(err, PS_ERR_CORRUPT, "its checksum does not match");
    if (index->n_blocks == PS_INDEX_UNSEEN)
        return PS_OK;
    if (index->n_blocks != PS_INDEX_BLOCKS ||
        entries_digest(entries, PS_INDEX_BLOCKS) != index->blocks)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the index does not list the blocks before it");
    index->parts = entry_digest(index->parts, &part);
    index->n_parts++;
    index->n_blocks = 0;
    index->blocks = 0;
    return PS_OK;
}

/* Checks the index and the length of the stream in END. */
static ps_result check_end_index(const ps_pack_reader *r, const ps_end *end,
                                 ps_error *err)
{
    const ps_index_seen *index = &r->place.index;
    const uint64_t here = r->input->taken + r->block.bytes - r->header_at;

    if (index->n_blocks == PS_INDEX_UNSEEN)
        return PS_OK;
    if (end->stream_bytes != here)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream has %" PRIu64 " bytes, but END declares "
                       "%" PRIu64,
                       here, end->stream_bytes);
    if (index->n_parts != end->n_parts || index->n_blocks != end->n_blocks ||
        index->parts != entries_digest(end->entries, end->n_parts) ||
        index->blocks !=
            entries_digest(end->entries +
                               (size_t)end->n_parts * PS_ENTRY_BYTES,
                           end->n_blocks))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the index does not list the blocks before it");
    return PS_OK;
}

/* ---- Packs ---- */

/* Checks END, which starts at the next byte, against the packs read. */
static ps_result check_end(ps_pack_reader *r, ps_error *err)
{
    const unsigned char *bytes;
    ps_end end;
    size_t got;
    ps_result result =
        ps_input_peek(r->input, (size_t)r->block.bytes, &bytes, &got, err);

    if (result == PS_OK && got < r->block.bytes)
        result = ps_fail(err, PS_ERR_TRUNCATED,
                         "truncated: the stream ends after %zu of END's "
                         "%" PRIu64 " bytes",
                         got, r->block.bytes);
    if (result == PS_OK)
        result = ps_end_decode(&r->current, bytes, &r->block, &end, err);
    if (result == PS_OK)
        result = ps_totals_compare(&end.totals, &r->place.seen, err);
    if (result == PS_OK && end.digest != r->place.digest)
        result = ps_fail(err, PS_ERR_CORRUPT,
                         "the packs do not match END's digest");
    if (result == PS_OK)
        result = ps_totals_check(&r->current, &end.totals, err);
    if (result == PS_OK)
        result = check_end_index(r, &end, err);
    if (result != PS_OK)
        return ps_blame(NULL, r->input->taken, result, err);
    if (!ps_totals_add(&r->ended, &end.totals))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the totals of the streams exceed 64 bits");
    ps_input_take(r->input, (size_t)r->block.bytes);
    return PS_OK;
}

/*
 * Continues after END, where the input must end or a stream of equal geometry
 * must follow.
 */
static ps_result go_on(ps_pack_reader *r, ps_error *err)
{
    const unsigned char *head;
    size_t got;
    ps_error why;
    const uint64_t at = r->input->taken;
    ps_result result = ps_input_peek(r->input, 8, &head, &got, err);

    if (result == PS_OK)
        result = ps_seek_check_result(&r->input->frames, got == 0, err);
    if (result != PS_OK)
        return result;
    r->at_end = got == 0;
    if (r->at_end)
        return PS_END;
    if (!ps_is_pack_magic_prefix(head, got))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "extra data after END, at byte %" PRIu64 ": not a pack "
                       "stream",
                       at);
    result = ps_pack_reader_header(r, err);
    if (result == PS_OK &&
        ps_pack_info_compare(&r->current, &r->info, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream at byte %" PRIu64 " cannot be joined to the "
                       "first: %s",
                       at, why.text);
    r->place.stream++;
    if (r->current.max_displacement > r->info.max_displacement)
        r->info.max_displacement = r->current.max_displacement;
    return result;
}

/* Adds a pack to the totals to compare with END. */
static void count(ps_pack_reader *r, const ps_pack *pack)
{
    ps_pack_place *p = &r->place;
    uint64_t oldest = UINT64_MAX;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        uint64_t id = ps_seq_id(ps_pack_sequence(&r->info, pack, i));

        oldest = id < oldest ? id : oldest;
        p->newest = id > p->newest ? id : p->newest;
    }
    if (p->newest - oldest > p->seen.max_displacement)
        p->seen.max_displacement = p->newest - oldest;
    p->last = pack->checksum;
    p->digest = ps_pack_digest(p->digest, pack->checksum);
    ps_totals_add_pack(&p->seen, pack->n_seq, pack->n_tok, pack->max_seqlen);
}

ps_result ps_pack_reader_peek_head(ps_pack_reader *r, ps_block_head *head,
                                   ps_error *err)
{
    const unsigned char *bytes;
    size_t got;
    ps_result result =
        ps_input_peek(r->input, PS_BLOCK_HEAD_BYTES, &bytes, &got, err);

    if (result != PS_OK)
        return result;
    if (got < PS_BLOCK_HEAD_BYTES)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "truncated: the stream ends without END, at byte "
                       "%" PRIu64,
                       r->input->taken + got);
    result = ps_block_head_decode(&r->current, bytes, head, err);
    return result == PS_OK ? result
                           : ps_blame(NULL, r->input->taken, result, err);
}

/*
 * Reads the block whose first pack is `index`, or the head of END.  Consumes
 * any INDEX blocks before it.
 */
static ps_result read_block(ps_pack_reader *r, uint64_t index, ps_error *err)
{
    const ps_block_head *head = &r->block;
    const unsigned char *bytes;
    size_t got;
    ps_result result = ps_pack_reader_peek_head(r, &r->block, err);

    if (result != PS_OK || head->kind == PS_BLOCK_END)
        return result;
    result = ps_input_peek(r->input, (size_t)head->bytes, &bytes, &got, err);
    if (result != PS_OK)
        return result;
    if (got < head->bytes)
        result = ps_fail(err, PS_ERR_TRUNCATED,
                         "truncated: the stream ends after %zu of the "
                         "block's %" PRIu64 " bytes",
                         got, head->bytes);
    else if (head->first != index)
        result = ps_fail(err, PS_ERR_CORRUPT,
                         "it starts with pack %" PRIu64 ", not %" PRIu64 ": "
                         "packs are missing, repeated or out of order",
                         head->first, index);
    else if (head->kind == PS_BLOCK_INDEX)
        result = check_index(r, bytes, err);
    else
        result = ps_block_check(&r->current, head, bytes, err);
    if (result == PS_OK && head->kind == PS_BLOCK_PACKS)
        result = note_block(r, ps_block_watermark(&r->current, head, bytes),
                            err);
    if (result != PS_OK)
        return ps_blame(NULL, r->input->taken, result, err);
    if (head->kind == PS_BLOCK_INDEX) {
        ps_input_take(r->input, (size_t)head->bytes);
        return PS_OK;
    }
    r->bytes = bytes;
    r->next = r->next_seq = 0;
    return PS_OK;
}

ps_result ps_pack_reader_fetch(ps_pack_reader *r, uint64_t index,
                               ps_pack *pack, bool *is_pack, ps_error *err)
{
    const unsigned char *head;
    ps_block_layout l;
    ps_result result = PS_OK;

    if (r->bytes != NULL && r->next == r->block.n_packs) {
        ps_input_take(r->input, (size_t)r->block.bytes);
        r->bytes = NULL;
    }
    *is_pack = true;
    while (result == PS_OK && *is_pack && r->bytes == NULL) {
        result = read_block(r, index, err);
        *is_pack = r->block.kind != PS_BLOCK_END;
    }
    if (result != PS_OK || !*is_pack)
        return result;

    l = ps_block_layout_of(&r->current, r->block.n_packs, 0);
    head = r->bytes + l.heads + (size_t)r->next * PS_PACK_HEAD_BYTES;
    *pack = (ps_pack){
        .index = index,
        .stream = r->place.stream,
        .offset = r->input->taken,
        .row = r->bytes + PS_BLOCK_HEAD_BYTES +
               (size_t)r->next * r->current.row_bytes,
        .sequences = r->bytes + l.sequences +
                     (size_t)r->next_seq * r->current.seq_bytes,
    };
    result = ps_pack_decode(&r->current, head, pack, err);
    if (result != PS_OK)
        return ps_blame(pack, r->input->taken, result, err);
    r->next++;
    r->next_seq += pack->n_seq;
    return PS_OK;
}

ps_result ps_pack_reader_step(ps_pack_reader *r, ps_pack *pack, bool *is_pack,
                              ps_error *err)
{
    ps_result result;

    if (r->at_end)
        return PS_END;
    result = ps_pack_reader_fetch(r, r->place.seen.packs, pack, is_pack, err);
    if (result == PS_OK && *is_pack)
        count(r, pack);
    else if (result == PS_OK)
        result = check_end(r, err);
    return result != PS_OK || *is_pack ? result : go_on(r, err);
}

ps_result ps_pack_reader_next(ps_pack_reader *r, ps_pack *pack,
                              ps_error *err)
{
    bool is_pack;

    do {
        ps_result result = ps_pack_reader_step(r, pack, &is_pack, err);

        if (result != PS_OK)
            return result;
    } while (!is_pack || (ps_pack_reader_packs(r) - 1) % r->ranks != r->rank);
    return PS_OK;
}

ps_result ps_pack_reader_share(ps_pack_reader *r, uint32_t rank,
                               uint32_t ranks, ps_error *err)
{
    if (rank >= ranks)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "rank %" PRIu32 " is out of range: there are %" PRIu32
                       " ranks, numbered from 0",
                       rank, ranks);
    r->rank = rank;
    r->ranks = ranks;
    return PS_OK;
}

const ps_pack_info *ps_pack_reader_info(const ps_pack_reader *r)
{
    return &r->info;
}

const ps_pack_info *ps_pack_reader_stream(const ps_pack_reader *r)
{
    return &r->current;
}

const ps_totals *ps_pack_reader_totals(const ps_pack_reader *r)
{
    return &r->ended;
}

void ps_pack_reader_on_wait(ps_pack_reader *r, ps_wait_hook *hook,
                            void *context)
{
    ps_input_on_wait(r->input, hook, context);
}

uint64_t ps_pack_reader_offset(const ps_pack_reader *r)
{
    return r->input->taken;
}

uint64_t ps_pack_reader_digest(const ps_pack_reader *r)
{
    return r->place.digest;
}
