/*
 * megatron.c - tokens and their index in Megatron-LM's format.
 *
 * NAME.bin contains the tokens of all sequences.  NAME.idx contains
 *
 *   u8[9] "MMIDIDX", two NUL; u64 1; u8 type of a token; u64 n; u64 m + 1
 *   i32[n] length of each sequence; i64[n] its offset, in bytes
 *   i64[m + 1] first sequence of each of m documents, and n
 *
 * Only the lengths can be written as they arrive.  The other arrays are
 * computed from the lengths at the end, one block at a time.  Until then, the
 * length of a document's first sequence is marked with NEW_DOCUMENT.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "packcat/elements.h"
#include "packcat/formats.h"

#define HEADER_BYTES 34
#define NEW_DOCUMENT (UINT32_C(1) << 31)

/* Number of lengths per block, 4 bytes each. */
#define BLOCK 4096

typedef struct idx {
    output *out;        /* NAME.idx */
    size_t token_bytes; /* 2 or 4 */
    uint64_t n;         /* number of sequences so far */
    uint64_t documents; /* number of documents so far */
} idx;

output_names megatron_names(const char *name, const ps_pack_info *info)
{
    const size_t n = strlen(name);
    output_names names = {.stem = n, .n = 2, .endings = {".bin", ".idx"}};

    (void)info;
    for (size_t i = 0; i < names.n; i++)
        if (n >= 4 && strcmp(name + n - 4, names.endings[i]) == 0)
            names.stem = n - 4;
    return names;
}

/*
 * Writes the tokens and the length of a sequence.  A length within the limits
 * does not have the bit NEW_DOCUMENT.  Megatron has no u32 type, so 32-bit
 * tokens must fit i32.
 */
static bool put_sequence(input *in, output *out, idx *to,
                         const elements *tokens, uint64_t id, bool document)
{
    unsigned char bytes[4];

    store_u32(bytes, tokens->n | (document ? NEW_DOCUMENT : 0));
    to->n++;
    to->documents += document;
    if (!output_put(to->out, bytes, sizeof bytes))
        return false;
    for (uint32_t i = 0; tokens->type == PS_U32 && i < tokens->n; i++)
        if (elements_value(tokens, i) > INT32_MAX)
            return input_fail(in, "sequence %" PRIu64 ": token %" PRIu32 " is "
                              "%" PRIu32 ", which does not fit Megatron's i32",
                              id, i, elements_value(tokens, i));
    return output_put(out, tokens->bytes, tokens->n * to->token_bytes);
}

/*
 * Reads the lengths again and writes the offsets of the sequences, or, with
 * `documents`, the first sequences of the documents.  The latter also clears
 * the marks, which are not needed afterwards.
 */
static bool put_index(idx *to, bool documents)
{
    unsigned char lengths[4 * BLOCK];
    uint64_t tokens = 0;

    for (uint64_t first = 0; first < to->n; first += BLOCK) {
        const uint64_t left = to->n - first;
        const size_t n = left < BLOCK ? (size_t)left : BLOCK;
        const off_t offset = (off_t)(HEADER_BYTES + 4 * first);

        if (!output_read(to->out, offset, lengths, 4 * n))
            return false;
        for (size_t i = 0; i < n; i++) {
            const uint32_t marked = load_u32(lengths + 4 * i);
            const uint32_t length = marked & ~NEW_DOCUMENT;

            store_u32(lengths + 4 * i, length);
            if (!documents)
                output_u64(to->out, tokens * to->token_bytes);
            else if (marked != length)
                output_u64(to->out, first + i);
            tokens += length;
        }
        if (documents && !output_patch(to->out, offset, lengths, 4 * n))
            return false;
    }
    return true;
}

void convert_megatron(input *in, output *out)
{
    unsigned char header[HEADER_BYTES] = {0};
    idx to = {.out = out + 1,
              .token_bytes = ps_type_bytes(in->first.schema.token_type)};
    const bool by_pack = in->options.order == PS_ORDER_PACK;
    ps_pack pack;
    ps_sequence sequence;
    bool good = output_put(to.out, header, sizeof header);

    /* A document is either a pack or a sequence. */
    while (good && by_pack && input_pack(in, &pack)) {
        const ps_pack_info *info = input_info(in);
        const ps_field *field = &info->fields[PS_FIELD_TOKENS];

        for (uint32_t i = 0; good && i < pack.n_seq; i++) {
            const uint64_t id = ps_pack_piece(info, &pack, i).id;
            const elements tokens = elements_in_pack(info, &pack, field, i);

            good = put_sequence(in, out, &to, &tokens, id, i == 0);
        }
    }
    while (good && !by_pack && input_sequence(in, &sequence)) {
        const elements tokens =
            elements_of(&input_info(in)->schema, &sequence, PS_TOKENS);

        good = put_sequence(in, out, &to, &tokens, sequence.id, true);
    }
    if (!good || in->failed || !output_flush(out) || !output_flush(to.out) ||
        !put_index(&to, false) || !put_index(&to, true) ||
        !output_u64(to.out, to.n) || !output_flush(to.out))
        return;

    /* Write the header last, so that no reader accepts a partial index. */
    memcpy(header, "MMIDIDX", 7);
    store_u64(header + 9, 1);
    header[17] = to.token_bytes == 2 ? 8 : 4;
    store_u64(header + 18, to.n);
    store_u64(header + 26, to.documents + 1);
    output_patch(to.out, 0, header, sizeof header);
}
