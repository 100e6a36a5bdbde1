/*
 * megatron.c - the indexed data sets of Megatron-LM: NAME.bin holds tokens,
 * NAME.idx where sequences and documents lie in it.
 *
 * The index:
 *
 *   0   9 bytes "MMIDIDX\0\0"
 *   9   u64 version, 1
 *   17  u8 type of the tokens
 *   18  u64 S, sequences
 *   26  u64 D, documents and one more
 *   34  i32 tokens in each of the S, i64 their places in NAME.bin in bytes,
 *       i64 the first sequence of each document and S, and i8 modes of the S
 *       or nothing
 *
 * Each of these arrays is read by a reader of its own, so that no more than
 * a block of it is in memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "common/bytes.h"
#include "tokcat/job.h"
#include "tokcat/split.h"

#define HEADER_BYTES 34

/* The readers in j->beside; the first one holds the file open. */
enum { LENGTHS, OFFSETS, DOCUMENTS, MODES };

/* What the header tells. */
typedef struct data_set {
    number_type type;
    uint64_t n_sequences;
    uint64_t n_documents; /* entries: one more than there are documents */
    bool has_modes;
} data_set;

/* ---------------------------------------------------------------------
 * Names
 */

/* How many bytes the ending of a name has; what is before it is the stem. */
static size_t ending_of(const char *name)
{
    const size_t n = strlen(name);

    return n > 4 && (strcmp(name + n - 4, ".idx") == 0 ||
                     strcmp(name + n - 4, ".bin") == 0)
               ? 4
               : 0;
}

static bool spare_one(const char *output, const char *input,
                      const char *ending)
{
    char *name = binary_name_beside(input, ending_of(input), ending);
    const bool good = name != NULL && files_spare_input(output, name);

    free(name);
    return good;
}

static bool spare_megatron(const char *output, const char *input)
{
    return spare_one(output, input, ".bin") &&
           spare_one(output, input, ".idx");
}

/* ---------------------------------------------------------------------
 * The header
 */

static int open_megatron(job *j, const char *name)
{
    const size_t ending = ending_of(name);
    int status;

    if (strcmp(name, "-") == 0)
        return message_usage("--from=megatron reads two files, which cannot "
                             "come from standard input: name one");
    status = binary_open_beside(&j->beside[LENGTHS], name, ending, ".idx");
    if (status == STATUS_OK)
        status = binary_open_beside(&j->data, name, ending, ".bin");
    return status;
}

/* Codes 6 and 7 are of floating point numbers. */
static bool find_type(unsigned code, number_type *type)
{
    static const number_type types[] = {
        [1] = {1, false}, [2] = {1, true}, [3] = {2, true},
        [4] = {4, true},  [5] = {8, true}, [8] = {2, false},
    };

    if (code >= sizeof types / sizeof types[0] || types[code].width == 0)
        return false;
    *type = types[code];
    return true;
}

/* Whether the file has just the bytes that its counts ask for. */
static int check_counts(const binary *index, data_set *d)
{
    const uint64_t bytes = index->bytes;
    uint64_t wanted;

    if (d->n_sequences > bytes / 12 || d->n_documents > bytes / 8)
        return binary_bad(index, 18, "%" PRIu64 " sequences and %" PRIu64
                          " entries for documents are more than the file "
                          "has room for", d->n_sequences, d->n_documents);
    wanted = HEADER_BYTES + 12 * d->n_sequences + 8 * d->n_documents;
    d->has_modes = bytes != wanted;
    if (bytes == wanted || bytes == wanted + d->n_sequences)
        return STATUS_OK;
    return binary_bad(index, 18, "%" PRIu64 " sequences and %" PRIu64
                      " entries for documents need %" PRIu64 " bytes, and "
                      "the file has %" PRIu64, d->n_sequences,
                      d->n_documents, wanted, bytes);
}

static int check_header(const binary *index, const unsigned char *header,
                        data_set *d)
{
    if (memcmp(header, "MMIDIDX\0", 9) != 0)
        return binary_bad(index, 0, "no index of Megatron begins so");
    if (load_u64(header + 9) != 1)
        return binary_bad(index, 9, "version %" PRIu64 " of the index; only "
                          "1 is known", load_u64(header + 9));
    if (header[17] == 6 || header[17] == 7)
        return binary_bad(index, 17, "the data are floating point numbers, "
                          "and tokens are integers");
    if (!find_type(header[17], &d->type))
        return binary_bad(index, 17, "there is no type of data %u",
                          (unsigned)header[17]);
    d->n_sequences = load_u64(header + 18);
    d->n_documents = load_u64(header + 26);
    return check_counts(index, d);
}

/* Leaves the readers where their arrays begin. */
static int read_header(job *j, data_set *d)
{
    binary *index = &j->beside[LENGTHS];
    uint64_t at = HEADER_BYTES;
    size_t ready;
    int status = binary_need(index, HEADER_BYTES, &ready);

    if (status != STATUS_OK)
        return status;
    if (ready < HEADER_BYTES)
        return binary_cut(index, "its header");
    status = check_header(index, binary_at(index), d);
    if (status != STATUS_OK)
        return status;
    binary_take(index, HEADER_BYTES);
    at += 4 * d->n_sequences;
    binary_share(&j->beside[OFFSETS], index, at);
    at += 8 * d->n_sequences;
    binary_share(&j->beside[DOCUMENTS], index, at);
    at += 8 * d->n_documents;
    binary_share(&j->beside[MODES], index, at);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * The arrays
 */

/* The next number of an array; the file may have become shorter. */
static int next_number(binary *array, number_type type, uint64_t *number)
{
    size_t ready;
    int status = binary_need(array, type.width, &ready);

    if (status == STATUS_OK && ready < type.width)
        status = binary_cut(array, "its arrays");
    if (status != STATUS_OK)
        return status;
    *number = number_load(binary_at(array), type);
    binary_take(array, type.width);
    return STATUS_OK;
}

static int check_mode(job *j)
{
    binary *modes = &j->beside[MODES];
    uint64_t mode;
    int status = next_number(modes, (number_type){.width = 1}, &mode);

    if (status == STATUS_OK && mode != 0)
        status = binary_bad(modes, binary_offset(modes) - 1, "sequence %"
                            PRIu64 " is of mode %" PRIu64 ", and no text",
                            j->place.number, mode);
    return status;
}

/* Where the next sequence lies: within the data, that is sure. */
static int next_extent(job *j, const data_set *d, uint64_t *offset,
                       uint64_t *n)
{
    static const number_type i32 = {4, true};
    static const number_type i64 = {8, true};
    const uint64_t bytes = j->data.bytes;
    int status = next_number(&j->beside[LENGTHS], i32, n);

    if (status == STATUS_OK)
        status = next_number(&j->beside[OFFSETS], i64, offset);
    if (status == STATUS_OK && d->has_modes)
        status = check_mode(j);
    if (status != STATUS_OK)
        return status;
    if (*n > INT32_MAX)
        return binary_bad(&j->beside[LENGTHS],
                          binary_offset(&j->beside[LENGTHS]) - 4,
                          "sequence %" PRIu64 " has a negative length",
                          j->place.number);
    if (*offset > bytes || *n > (bytes - *offset) / d->type.width)
        return binary_bad(&j->beside[OFFSETS],
                          binary_offset(&j->beside[OFFSETS]) - 8,
                          "sequence %" PRIu64 ", %" PRIu64 " tokens from "
                          "byte %" PRId64 " on, is not within the %" PRIu64
                          " bytes of the data", j->place.number, *n,
                          (int64_t)*offset, bytes);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * The data
 */

/* Goes to the tokens of the next sequence, and counts them. */
static int find_sequence(job *j, const data_set *d, uint64_t *n)
{
    uint64_t offset;
    const int status = next_extent(j, d, &offset, n);

    if (status == STATUS_OK) {
        binary_seek(&j->data, offset);
        j->place.offset = offset;
        j->out.figures.bytes += *n * d->type.width;
    }
    return status;
}

static int read_sequence(job *j, const data_set *d)
{
    const unsigned char *tokens;
    uint64_t n;
    int status = find_sequence(j, d, &n);

    if (status != STATUS_OK)
        return status;
    if (n == 0)
        return job_empty(j);
    status = cut_piece(j, &j->data, d->type, n, &tokens);
    return status == STATUS_OK
               ? records_put_tokens(&j->out, (uint32_t)n, tokens)
               : status;
}

static int read_sequences(job *j, const data_set *d)
{
    int status = STATUS_OK;

    while (status == STATUS_OK && j->place.number < d->n_sequences) {
        status = read_sequence(j, d);
        j->place.number++;
    }
    return status;
}

/* Where the next document begins, which is no less than `min`. */
static int next_document(job *j, const data_set *d, uint64_t min,
                         uint64_t *first)
{
    binary *documents = &j->beside[DOCUMENTS];
    int status = next_number(documents, (number_type){.width = 8}, first);

    if (status == STATUS_OK && (*first < min || *first > d->n_sequences))
        status = binary_bad(documents, binary_offset(documents) - 8,
                            "no document can begin with sequence %" PRId64
                            " of %" PRIu64 ", behind %" PRIu64,
                            (int64_t)*first, d->n_sequences, min);
    return status;
}

/* The sequences up to that one are a document. */
static int read_document(job *j, const data_set *d, uint64_t end)
{
    uint64_t n_tok = 0;
    uint64_t n;
    int status = STATUS_OK;

    while (status == STATUS_OK && j->place.number < end) {
        status = find_sequence(j, d, &n);
        if (status == STATUS_OK)
            status = cut_append(j, &j->data, d->type, n, &n_tok);
        j->place.number++;
    }
    if (status != STATUS_OK)
        return status;
    return n_tok == 0 ? job_empty(j) : records_put(&j->out, (uint32_t)n_tok);
}

static int read_documents(job *j, const data_set *d)
{
    binary *documents = &j->beside[DOCUMENTS];
    uint64_t first = 0;
    int status = STATUS_OK;

    for (uint64_t i = 0; i < d->n_documents && status == STATUS_OK; i++) {
        status = next_document(j, d, j->place.number, &first);
        if (status == STATUS_OK && i == 0 && first != 0)
            status = binary_bad(documents, binary_offset(documents) - 8,
                                "the first document begins with sequence %"
                                PRIu64, first);
        if (status == STATUS_OK && i > 0)
            status = read_document(j, d, first);
    }
    if (status == STATUS_OK && first != d->n_sequences)
        status = binary_bad(documents, binary_offset(documents), "the "
                            "documents end with %" PRIu64 " of %" PRIu64
                            " sequences", first, d->n_sequences);
    return status;
}

static int read_megatron(job *j)
{
    data_set d = {.n_sequences = 0};
    int status = read_header(j, &d);

    j->place = (job_place){.unit = "sequence"};
    if (status == STATUS_OK)
        status = job_start(j, d.type.width);
    if (status != STATUS_OK)
        return status;
    return j->conf->split == SPLIT_DOCUMENT ? read_documents(j, &d)
                                            : read_sequences(j, &d);
}

const job_source source_megatron = {
    .unit = "sequence",
    .learns = true,
    .open = open_megatron,
    .read = read_megatron,
    .spare = spare_megatron,
};
