/*
 * pack_reader.c - packs in, each checked before it is handed out; and which
 * kind of stream an input holds.
 *
 * SPDX-License-Identifier: MIT
 */

#include "stream/pack_reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "bytes.h"
#include "format/digest.h"
#include "format/pack_header.h"
#include "format/pack_record.h"
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
    ps_input_take(r->input, PS_PACK_HEADER_BYTES);
    return PS_OK;
}

/* The reader owns the input from now on, also after a failure. */
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

ps_result ps_pack_reader_open(ps_pack_reader **reader, int fd, ps_error *err)
{
    ps_input *input;
    ps_result result = ps_input_open(&input, fd, err);

    *reader = NULL;
    if (result != PS_OK)
        return result;
    input->frames.is_head = ps_is_pack_head;
    return start(reader, input, err);
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

/*
 * Checks END against what came before it.  Behind it is nothing, or another
 * stream whose records mean the same.
 */
static ps_result read_end(ps_pack_reader *r, const unsigned char *bytes,
                          ps_error *err)
{
    ps_totals end = {0};
    const unsigned char *head;
    size_t got;
    ps_error why;
    uint64_t at;
    uint64_t digest;
    ps_result result =
        ps_end_decode(&r->current, bytes, &end, &digest, err);

    if (result == PS_OK)
        result = ps_totals_compare(&end, &r->place.seen, err);
    if (result == PS_OK && digest != r->place.digest)
        result = ps_fail(err, PS_ERR_CORRUPT,
                         "the records do not agree with END's digest");
    if (result == PS_OK)
        result = ps_totals_check(&r->current, &end, err);
    if (result != PS_OK)
        return ps_record_blame(r->place.seen.packs,
                               r->input->taken, result, err);
    if (!ps_totals_add(&r->ended, &end))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the totals of the streams exceed 64 bits");
    ps_input_take(r->input, r->info.record_bytes);

    at = r->input->taken;
    result = ps_input_peek(r->input, 8, &head, &got, err);
    if (result == PS_OK)
        result = ps_seek_check_result(&r->input->frames, got == 0, err);
    if (result != PS_OK)
        return result;
    r->at_end = got == 0;
    if (r->at_end)
        return PS_END;
    if (!ps_is_pack_magic_prefix(head, got))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "something other than a pack stream follows END at "
                       "byte %" PRIu64,
                       at);
    result = ps_pack_reader_header(r, err);
    if (result == PS_OK &&
        ps_pack_info_compare(&r->current, &r->info, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream that starts at byte %" PRIu64
                       " cannot follow the first: %s",
                       at, why.text);
    r->place.stream++;
    if (r->current.window > r->info.window)
        r->info.window = r->current.window;
    return result;
}

void ps_pack_reader_count(ps_pack_reader *r, const ps_pack *pack)
{
    ps_pack_place *p = &r->place;
    uint64_t oldest = UINT64_MAX;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        uint64_t id = ps_pack_piece(&r->info, pack, i).id;

        oldest = id < oldest ? id : oldest;
        p->newest = id > p->newest ? id : p->newest;
    }
    if (p->newest - oldest > p->seen.max_displacement)
        p->seen.max_displacement = p->newest - oldest;
    p->last = load_u64(pack->record);
    p->digest = ps_pack_digest(p->digest, pack->record);
    ps_totals_add_pack(&p->seen, pack->n_seq, pack->n_tok, pack->max_seqlen);
}

ps_result ps_pack_reader_peek(ps_pack_reader *r, uint64_t index,
                              const unsigned char **bytes, bool *is_end,
                              ps_error *err)
{
    const uint32_t size = r->info.record_bytes;
    size_t got;
    ps_result result = ps_input_peek(r->input, size, bytes, &got, err);

    if (result != PS_OK)
        return result;
    if (got == 0)
        result = ps_fail(err, PS_ERR_TRUNCATED,
                         "the stream ends without END");
    else if (got < size)
        result = ps_fail(err, PS_ERR_TRUNCATED,
                         "the stream ends after %zu of its %" PRIu32
                         " bytes",
                         got, size);
    else
        result = ps_record_check(&r->info, *bytes, is_end, err);
    if (result != PS_OK)
        return ps_record_blame(index, r->input->taken, result,
                               err);
    return PS_OK;
}

ps_result ps_pack_reader_step(ps_pack_reader *r, ps_pack *pack, bool *is_pack,
                              ps_error *err)
{
    const unsigned char *bytes;
    bool is_end;
    ps_result result;

    if (r->at_end)
        return PS_END;
    result = ps_pack_reader_peek(r, r->place.seen.packs, &bytes, &is_end,
                                 err);
    if (result != PS_OK)
        return result;
    *is_pack = !is_end;
    if (is_end)
        return read_end(r, bytes, err);

    result = ps_record_decode(&r->info, bytes, pack, err);
    if (result == PS_OK && pack->index != r->place.seen.packs)
        result = ps_fail(err, PS_ERR_CORRUPT,
                         "its index is %" PRIu64
                         ": records are missing, repeated or out of order",
                         pack->index);
    if (result != PS_OK)
        return ps_record_blame(r->place.seen.packs,
                               r->input->taken, result, err);
    pack->stream = r->place.stream;
    pack->offset = r->input->taken;
    ps_pack_reader_count(r, pack);
    ps_input_take(r->input, r->info.record_bytes);
    return PS_OK;
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
                       "rank %" PRIu32 " is not one of %" PRIu32
                       ", which count from 0",
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
