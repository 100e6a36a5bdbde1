/*
 * raw.c - streams of tokens without boundaries: the .bin files of llm.c,
 * which have a header, and those of nanoGPT, which have none.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "common/bytes.h"
#include "tokcat/job.h"
#include "tokcat/split.h"

/* llm.c's header is so many i32; of these three tell something. */
#define HEADER_BYTES ((size_t)4 * 256)
#define MAGIC_U16 UINT32_C(20240520)
#define VERSION_U16 UINT32_C(1)
#define MAGIC_U32 UINT32_C(20240801)
#define VERSION_U32 UINT32_C(7)

static int open_data(job *j, const char *name)
{
    return binary_open(&j->data, name);
}

/* The type that magic and version stand for. */
static int check_header(const job *j, const unsigned char *header,
                        number_type *type)
{
    const uint32_t magic = load_u32(header);
    const uint32_t version = load_u32(header + 4);
    const bool wide = magic == MAGIC_U32;
    const uint32_t known = wide ? VERSION_U32 : VERSION_U16;

    if (magic != MAGIC_U16 && !wide)
        return binary_bad(&j->data, 0, "no file of llm.c's tokens begins "
                          "with %" PRIu32, magic);
    if (version != known)
        return binary_bad(&j->data, 4, "version %" PRIu32 " of llm.c's "
                          "tokens; only %" PRIu32 " is known to begin with "
                          "%" PRIu32, version, known, magic);
    if (load_u32(header + 8) > INT32_MAX)
        return binary_bad(&j->data, 8, "the number of tokens is negative");
    *type = (number_type){.width = wide ? 4 : 2};
    return STATUS_OK;
}

static int read_header(job *j, number_type *type, uint64_t *n)
{
    size_t ready;
    int status = binary_need(&j->data, HEADER_BYTES, &ready);

    if (status != STATUS_OK)
        return status;
    if (ready < HEADER_BYTES)
        return binary_cut(&j->data, "its header of 1024 bytes");
    status = check_header(j, binary_at(&j->data), type);
    *n = load_u32(binary_at(&j->data) + 8);
    binary_take(&j->data, HEADER_BYTES);
    return status;
}

static int read_llmc(job *j)
{
    number_type type = {.width = 0};
    uint64_t n = 0;
    size_t ready;
    int status = read_header(j, &type, &n);

    if (status == STATUS_OK)
        status = job_start(j, type.width);
    if (status == STATUS_OK)
        status = cut_stream(j, type, n);
    if (status == STATUS_OK)
        status = binary_need(&j->data, 1, &ready);
    if (status == STATUS_OK && ready > 0)
        status = binary_bad(&j->data, binary_offset(&j->data), "the file "
                            "goes on behind its %" PRIu64 " tokens", n);
    return status;
}

static int read_nanogpt(job *j)
{
    const ps_type token = j->out.schema.token_type;
    const int status = job_start(j, ps_type_bytes(token));

    return status == STATUS_OK
               ? cut_stream(j, number_of_token(token), CUT_ALL)
               : status;
}

const job_source source_llmc = {
    .unit = "sequence",
    .learns = true,
    .open = open_data,
    .read = read_llmc,
};

const job_source source_nanogpt = {
    .unit = "sequence",
    .learns = true,
    .open = open_data,
    .read = read_nanogpt,
};
