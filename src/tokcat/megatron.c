/*
 * megatron.c - indexed datasets of Megatron-LM.  NAME.bin contains tokens, and
 * NAME.idx the positions of sequences and documents.
 *
 * The index:
 *
 *   0   9 bytes "MMIDIDX\0\0"
 *   9   u64 version, 1
 *   17  u8 type of the tokens
 *   18  u64 S, number of sequences
 *   26  u64 D, number of documents plus one
 *   34  i32[S] lengths in tokens, i64[S] offsets in NAME.bin in bytes,
 *       i64[D] first sequence of each document, then S, and optionally
 *       i8[S] modes
 *
 * Each array is read through its own input, so that only one block of each
 * array is in memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/reader.h"
#include "tokcat/split.h"

#define HEADER_BYTES 34

/* Name in messages, if the file is truncated after its size was checked. */
#define WITHIN "the arrays"

/* Indices in r->beside.  All four read the same file, opened as LENGTHS. */
enum { LENGTHS, OFFSETS, DOCUMENTS, MODES };

static const number_type u8 = {1, false};
static const number_type i32 = {4, true};
static const number_type i64 = {8, true};

/* Contents of the header. */
typedef struct data_set {
    number_type type;
    uint64_t n_sequences;
    uint64_t n_documents; /* number of documents plus one */
    bool has_modes;
} data_set;

/* ---------------------------------------------------------------------
 * Names
 */

/* Length of the extension, in bytes; 0 if the name has none. */
static size_t ending_of(const char *name)
{
    const size_t n = strlen(name);

    return n > 4 && (strcmp(name + n - 4, ".idx") == 0 ||
                     strcmp(name + n - 4, ".bin") == 0)
               ? 4
               : 0;
}

static int open_megatron(reader *r, const char *name)
{
    const size_t ending = ending_of(name);
    int status;

    if (strcmp(name, "-") == 0)
        return message_usage("--from=megatron reads two files and cannot use "
                             "standard input: name a file");
    status = input_open_beside(&r->beside[LENGTHS], name, ending, ".idx");
    if (status == STATUS_OK)
        status = input_open_beside(&r->in, name, ending, ".bin");
    return status;
}

/* ---------------------------------------------------------------------
 * The header
 */

static int check_header(const input_file *index, data_set *d)
{
    /* Codes 6 and 7 are floating point types. */
    static const number_type types[] = {
        [1] = {1, false}, [2] = {1, true}, [3] = {2, true},
        [4] = {4, true},  [5] = {8, true}, [8] = {2, false},
    };
    const unsigned char *header = input_at(index);
    const unsigned code = header[17];
    const uint64_t bytes = index->bytes;
    uint64_t wanted;

    if (memcmp(header, "MMIDIDX\0", 9) != 0)
        return input_bad(index, 0, "not a Megatron index");
    if (load_u64(header + 9) != 1)
        return input_bad(index, 9, "unknown index version %" PRIu64 ": only 1 "
                         "is supported", load_u64(header + 9));
    if (code == 6 || code == 7)
        return input_bad(index, 17, "the data are floating-point numbers: "
                         "token ids are integers");
    if (code >= sizeof types / sizeof types[0] || types[code].width == 0)
        return input_bad(index, 17, "unknown data type %u", code);
    d->type = types[code];

    /* Check that the file size matches the counts. */
    d->n_sequences = load_u64(header + 18);
    d->n_documents = load_u64(header + 26);
    if (d->n_sequences > bytes / 12 || d->n_documents > bytes / 8)
        return input_bad(index, 18, "%" PRIu64 " sequences and %" PRIu64 " "
                         "document entries exceed the size of the file",
                         d->n_sequences, d->n_documents);
    wanted = HEADER_BYTES + 12 * d->n_sequences + 8 * d->n_documents;
    d->has_modes = bytes != wanted;
    if (bytes == wanted || bytes == wanted + d->n_sequences)
        return STATUS_OK;
    return input_bad(index, 18, "%" PRIu64 " sequences and %" PRIu64 " "
                     "document entries need %" PRIu64 " bytes, but the file "
                     "has %" PRIu64, d->n_sequences,
                     d->n_documents, wanted, bytes);
}

/* ---------------------------------------------------------------------
 * The data
 */

/*
 * Finds the next sequence and checks that it is within the data.  Moves r->in
 * to its first token and sets *n to the number of its tokens.
 */
static int find_sequence(reader *r, const data_set *d, uint64_t *n)
{
    input_file *lengths = &r->beside[LENGTHS];
    input_file *offsets = &r->beside[OFFSETS];
    input_file *modes = &r->beside[MODES];
    const uint64_t bytes = r->in.bytes;
    uint64_t offset;
    uint64_t mode = 0;
    int status = split_number(lengths, i32, WITHIN, n);

    if (status == STATUS_OK)
        status = split_number(offsets, i64, WITHIN, &offset);
    if (status == STATUS_OK && d->has_modes)
        status = split_number(modes, u8, WITHIN, &mode);
    if (status != STATUS_OK)
        return status;

    if (mode != 0)
        return input_bad(modes, input_offset(modes) - 1, "sequence %" PRIu64 " "
                         "has mode %" PRIu64 ", which is not text",
                         r->place.number, mode);
    if (*n > INT32_MAX)
        return input_bad(lengths, input_offset(lengths) - 4, "sequence %"
                         PRIu64 " has a negative length", r->place.number);
    if (offset > bytes || *n > (bytes - offset) / d->type.width)
        return input_bad(offsets, input_offset(offsets) - 8, "sequence "
                         "%" PRIu64 ", %" PRIu64 " tokens from byte "
                         "%" PRId64 ", is outside the %" PRIu64 " bytes of the "
                         "data", r->place.number, *n, (int64_t)offset,
                         bytes);

    input_seek(&r->in, offset);
    r->place.offset = offset;
    r->out.figures.bytes += *n * d->type.width;
    return STATUS_OK;
}

static int read_documents(reader *r, const data_set *d)
{
    input_file *documents = &r->beside[DOCUMENTS];
    uint64_t first = 0;
    int status;

    /* Each entry starts a document and ends the previous one. */
    for (uint64_t i = 0; i < d->n_documents; i++) {
        const uint64_t min = r->place.number;

        status = split_number(documents, i64, WITHIN, &first);
        if (status != STATUS_OK)
            return status;
        if (first < min || first > d->n_sequences)
            return input_bad(documents, input_offset(documents) - 8, "invalid "
                             "document: starts at sequence %" PRId64 " of "
                             "%" PRIu64 ", after %" PRIu64,
                             (int64_t)first, d->n_sequences, min);
        if (i == 0 && first != 0)
            return input_bad(documents, input_offset(documents) - 8, "the "
                             "first document starts at sequence %" PRIu64 ", "
                             "not 0",
                             first);
        if (i == 0)
            continue;
        for (; r->place.number < first; r->place.number++) {
            uint64_t n;

            status = find_sequence(r, d, &n);
            if (status == STATUS_OK)
                status = split_append(r, d->type, n);
            if (status != STATUS_OK)
                return status;
        }
        status = r->n_tok == 0 ? reader_empty(r, 1) : reader_put(r);
        if (status != STATUS_OK)
            return status;
    }
    if (first != d->n_sequences)
        return input_bad(documents, input_offset(documents), "the documents "
                         "end at sequence %" PRIu64 " of %" PRIu64,
                         first, d->n_sequences);
    return STATUS_OK;
}

static int read_megatron(reader *r)
{
    input_file *index = &r->beside[LENGTHS];
    data_set d = {.n_sequences = 0};
    uint64_t at = HEADER_BYTES;
    int status = input_require(index, HEADER_BYTES, "the header");

    if (status == STATUS_OK)
        status = check_header(index, &d);
    if (status != STATUS_OK)
        return status;

    /* Each array gets an input that starts at its offset. */
    input_take(index, HEADER_BYTES);
    at += 4 * d.n_sequences;
    input_share(&r->beside[OFFSETS], index, at);
    at += 8 * d.n_sequences;
    input_share(&r->beside[DOCUMENTS], index, at);
    at += 8 * d.n_documents;
    input_share(&r->beside[MODES], index, at);

    r->place = (reader_place){.unit = "sequence"};
    status = reader_start(r, d.type.width);
    if (status != STATUS_OK)
        return status;
    if (r->conf->split == SPLIT_DOCUMENT)
        return read_documents(r, &d);
    for (; r->place.number < d.n_sequences; r->place.number++) {
        uint64_t n;

        status = find_sequence(r, &d, &n);
        if (status == STATUS_OK)
            status = split_sequence(r, d.type, n);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

const form_reader reader_megatron = {
    .unit = "sequence",
    .learns = true,
    .open = open_megatron,
    .read = read_megatron,
    .endings = {".bin", ".idx"},
    .cut = ending_of,
};
