/*
 * megatron.c - tokens and their index as Megatron-LM reads them.
 *
 * NAME.bin is the tokens, one sequence behind the other.  NAME.idx is
 *
 *   u8[9] "MMIDIDX", two NUL; u64 1; u8 type of a token; u64 n; u64 m + 1
 *   i32[n] length of each sequence; i64[n] where it begins, in bytes
 *   i64[m + 1] the first sequence of each of m documents, and n
 *
 * of which only the lengths can be written as they come.  The others are
 * made of them in the end, a block at a time; until then the length of a
 * sequence that begins a document has a mark in it.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "elements.h"
#include "formats.h"

#define HEADER_BYTES 34
#define NEW_DOCUMENT (UINT32_C(1) << 31)

/* Lengths in a block, of 4 bytes each. */
#define BLOCK 4096

typedef struct idx {
    output *out;
    size_t token_bytes;
    uint64_t n;
    uint64_t documents;
    uint64_t done; /* tokens, or sequences, of the blocks before */
} idx;

output_names megatron_names(const char *name, const ps_pack_info *info)
{
    static const char *const endings[] = {".bin", ".idx"};
    output_names names = {.stem = strlen(name),
                          .n = 2,
                          .endings = {".bin", ".idx"}};

    (void)info;
    for (size_t i = 0; i < names.n; i++)
        if (strlen(name) >= 4 &&
            strcmp(name + strlen(name) - 4, endings[i]) == 0)
            names.stem = strlen(name) - 4;
    return names;
}

/* No sequence within the limits is long enough to look marked. */
static bool put_length(idx *to, uint32_t n_tok, bool document)
{
    unsigned char bytes[4];

    store_u32(bytes, n_tok | (document ? NEW_DOCUMENT : 0));
    to->n++;
    to->documents += document;
    return output_put(to->out, bytes, sizeof bytes);
}

/* Megatron has no u32 tokens, but i32 ones. */
static bool check_tokens(input *in, const elements *tokens, uint64_t id)
{
    uint32_t i = 0;

    if (tokens->type != PS_U32)
        return true;
    while (i < tokens->n && elements_value(tokens, i) <= INT32_MAX)
        i++;
    if (i < tokens->n)
        input_blame(in, "sequence %" PRIu64 ": token %" PRIu32 " of it is %"
                    PRIu32 ", more than Megatron's i32 holds",
                    id, i, elements_value(tokens, i));
    return i == tokens->n;
}

static bool put_tokens(input *in, output *out, const elements *tokens,
                       uint64_t id)
{
    return check_tokens(in, tokens, id) &&
           output_put(out, tokens->bytes,
                      tokens->n * ps_type_bytes(tokens->type));
}

static bool put_piece(input *in, output *out, const ps_pack *pack,
                      const ps_piece *piece)
{
    const ps_pack_info *info = input_info(in);
    const ps_field *field = &info->fields[info->tokens_field];
    const ps_type type = field->channel.type;
    const elements tokens = {
        .type = type,
        .n = piece->n_tok,
        .bytes = pack->record + field->offset +
                 piece->begin * ps_type_bytes(type)};

    return put_tokens(in, out, &tokens, piece->id);
}

/* A document per pack. */
static bool put_packs(input *in, output *out, idx *to)
{
    ps_pack pack;

    while (input_pack(in, &pack)) {
        for (uint32_t i = 0; i < pack.n_seq; i++) {
            const ps_piece piece = ps_pack_piece(input_info(in), &pack, i);

            if (!put_length(to, piece.n_tok, i == 0) ||
                !put_piece(in, out, &pack, &piece))
                return false;
        }
    }
    return !in->failed;
}

/* A document per sequence. */
static bool put_sequences(input *in, output *out, idx *to)
{
    ps_sequence sequence;

    while (input_sequence(in, &sequence)) {
        const elements tokens =
            elements_of(&input_info(in)->schema, &sequence, PS_TOKENS);

        if (!put_length(to, sequence.n_tok, true) ||
            !put_tokens(in, out, &tokens, sequence.id))
            return false;
    }
    return !in->failed;
}

/*
 * What is made of a block of lengths, of which the first is that of sequence
 * `first`: a number for each, or for some.
 */
typedef bool use_block(idx *to, unsigned char *lengths, uint64_t first,
                       uint32_t n);

static bool put_number(output *out, uint64_t number)
{
    unsigned char bytes[8];

    store_u64(bytes, number);
    return output_put(out, bytes, sizeof bytes);
}

static bool put_offsets(idx *to, unsigned char *lengths, uint64_t first,
                        uint32_t n)
{
    (void)first;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t length = load_u32(lengths + 4 * i) & ~NEW_DOCUMENT;

        if (!put_number(to->out, to->done * to->token_bytes))
            return false;
        to->done += length;
    }
    return true;
}

static off_t place_of(uint64_t sequence)
{
    return (off_t)(HEADER_BYTES + 4 * sequence);
}

/* Nobody needs the marks after this. */
static bool put_documents(idx *to, unsigned char *lengths, uint64_t first,
                          uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        unsigned char *const p = lengths + 4 * i;
        const uint32_t length = load_u32(p);

        store_u32(p, length & ~NEW_DOCUMENT);
        if ((length & NEW_DOCUMENT) != 0 && !put_number(to->out, first + i))
            return false;
    }
    return output_patch(to->out, place_of(first), lengths, 4 * (size_t)n);
}

static bool use_lengths(idx *to, use_block *use)
{
    unsigned char lengths[4 * BLOCK];

    for (uint64_t first = 0; first < to->n; first += BLOCK) {
        const uint64_t left = to->n - first;
        const uint32_t n = left < BLOCK ? (uint32_t)left : BLOCK;

        if (!output_get(to->out, place_of(first), lengths, 4 * (size_t)n) ||
            !use(to, lengths, first, n))
            return false;
    }
    return true;
}

static bool put_header(idx *to)
{
    unsigned char header[HEADER_BYTES] = "MMIDIDX";

    store_u64(header + 9, 1);
    header[17] = to->token_bytes == 2 ? 8 : 4;
    store_u64(header + 18, to->n);
    store_u64(header + 26, to->documents + 1);
    return output_patch(to->out, 0, header, sizeof header);
}

static bool finish_index(idx *to)
{
    return output_flush(to->out) && use_lengths(to, put_offsets) &&
           use_lengths(to, put_documents) && put_number(to->out, to->n) &&
           output_flush(to->out) && put_header(to);
}

void convert_megatron(input *in, output *out)
{
    static const unsigned char nothing[HEADER_BYTES] = {0};
    idx to = {.out = out + 1,
                .token_bytes = ps_type_bytes(in->first.schema.token_type)};
    bool whole = output_put(to.out, nothing, sizeof nothing);

    if (whole && in->options.order == PS_ORDER_PACK)
        whole = put_packs(in, out, &to);
    else if (whole)
        whole = put_sequences(in, out, &to);
    if (whole && output_flush(out))
        (void)finish_index(&to);
}
