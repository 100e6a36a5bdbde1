/*
 * arrays.c - packs as the elements of one array: the tokens of rows, with or
 * without llm.c's header, and rows in numpy's .npy format.
 *
 * The headers of llm.c and numpy contain the number of packs.  Either the
 * output is a file, in which the number is filled in at the end, or all inputs
 * are files, which are read twice: first to count packs, then to copy them.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "packcat/formats.h"

/* Writes the tokens of a row.  All files must have the same capacity. */
static bool put_tokens(output *out, const ps_pack_info *info,
                       const ps_pack *pack)
{
    return output_put(out, pack->row,
                      info->capacity *
                          ps_type_bytes(info->schema.token_type));
}

void convert_rows(input *in, output *out)
{
    ps_pack pack;

    while (input_pack(in, &pack))
        if (!put_tokens(out, input_info(in), &pack))
            return;
}

/* ---- Forms that start with the number of packs ---- */

#define LLMC_HEADER_BYTES 1024

/* A multiple of the page size, which keeps the rows aligned. */
#define NPY_HEADER_BYTES 4096

typedef struct counted_form {
    const char *name;    /* word of --to */
    size_t header_bytes; /* at most NPY_HEADER_BYTES */
    /*
     * Builds the header for `n` packs of the input.  For PS_UNKNOWN, builds a
     * header that readers of the form refuse.  Returns false after input_fail.
     */
    bool (*make_header)(input *in, uint64_t n, char *header);
    uint64_t max; /* maximum number of packs in the header */
    bool tokens;  /* write tokens only, not whole rows */
} counted_form;

static bool check_count(const counted_form *form, input *in, uint64_t n)
{
    if (n <= form->max)
        return true;
    return input_fail(in, "--to=%s holds at most %" PRIu64 " of these packs, "
                      "but there are more: use --range to write several files",
                      form->name, form->max);
}

/* Reads all packs and writes them to `out` unless it is NULL. */
static bool read_packs(const counted_form *form, input *in, output *out,
                       uint64_t *n)
{
    ps_pack pack;

    for (*n = 0; input_pack(in, &pack); ++*n) {
        const ps_pack_info *info = input_info(in);

        if (out == NULL)
            continue;
        if (!check_count(form, in, *n + 1) ||
            !(form->tokens ? put_tokens(out, info, &pack)
                           : output_put(out, pack.row, info->row_bytes)))
            return false;
    }
    return !in->failed && (out == NULL || output_flush(out));
}

static void convert_counted(const counted_form *form, input *in, output *out)
{
    const off_t offset = output_patchable(out);
    uint64_t declared = PS_UNKNOWN;
    char header[NPY_HEADER_BYTES];
    uint64_t n;

    /* Report a count that is too large before anything is written. */
    if (input_count(in, &n) && !check_count(form, in, n))
        return;
    if (offset < 0 && !input_rereadable(in)) {
        out->status = message_usage(
            "--to=%s starts with the number of packs, which is unknown if both "
            "input and output are pipes: use -o FILE, or read from files",
            form->name);
        return;
    }
    if (offset < 0 && (!read_packs(form, in, NULL, &declared) ||
                       !check_count(form, in, declared) || !input_rewind(in)))
        return;

    if (!form->make_header(in, declared, header) ||
        !output_put(out, header, form->header_bytes) ||
        !read_packs(form, in, out, &n))
        return;
    if (declared == PS_UNKNOWN) {
        if (form->make_header(in, n, header))
            output_patch(out, offset, header, form->header_bytes);
    } else if (n != declared) {
        input_fail(in, "changed by another program while it was read");
    }
}

/*
 * ---- llmc ----
 *
 * The header has 256 numbers of type i32: a magic and a version, which
 * determine the token width, then the number of tokens, then zeros.  llm.c
 * refuses files with 0 tokens, so the number is 0 until the file is complete.
 */
static bool make_llmc_header(input *in, uint64_t n, char *header)
{
    const ps_pack_info *info = &in->first;
    unsigned char *p = (unsigned char *)header;
    const bool wide = info->schema.token_type == PS_U32;

    memset(header, 0, LLMC_HEADER_BYTES);
    store_u32(p, wide ? 20240801 : 20240520);
    store_u32(p + 4, wide ? 7 : 1);
    store_u32(p + 8, n == PS_UNKNOWN ? 0 : (uint32_t)(n * info->capacity));
    return true;
}

void convert_llmc(input *in, output *out)
{
    const counted_form form = {"llmc", LLMC_HEADER_BYTES, make_llmc_header,
                               INT32_MAX / in->first.capacity, true};

    convert_counted(&form, in, out);
}

/* ---- npy, version 1.0 ---- */

/* Text being appended to the header. */
typedef struct text {
    char *at;    /* end of the text */
    size_t left; /* bytes left in the header */
    bool full;   /* the text did not fit */
} text;

static void add(text *t, const char *pattern, ...) MESSAGE_PRINTF(2, 3);

static void add(text *t, const char *pattern, ...)
{
    va_list args;
    int n;

    va_start(args, pattern);
    n = vsnprintf(t->at, t->left, pattern, args);
    va_end(args);
    if (n < 0 || (size_t)n >= t->left) {
        t->full = true;
        return;
    }
    t->at += n;
    t->left -= (size_t)n;
}

/* A void without a name, which numpy treats as padding, not as a field. */
#define GAP "('', '|V%" PRIu32 "'), "

static bool make_npy_header(input *in, uint64_t n, char *header)
{
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const size_t prefix = sizeof magic + 2;
    const size_t length = NPY_HEADER_BYTES - prefix;
    const ps_pack_info *info = &in->first;
    text t = {.at = header + prefix, .left = length};
    uint32_t end = 0;

    memcpy(header, magic, sizeof magic);
    store_u16((unsigned char *)header + sizeof magic, (uint16_t)length);

    /* The fields of a row in order, as triples, without offsets. */
    add(&t, "{'descr': [");
    for (uint32_t i = 0; i < info->n_fields; i++) {
        const ps_field *field = &info->fields[i];
        const uint32_t places = (uint32_t)packs_places(info, field);

        if (field->channel.kind == PS_PER_SEQUENCE)
            continue;
        if (field->offset > end)
            add(&t, GAP, field->offset - end);
        add(&t, "('%s', '%s', (%" PRIu32 ",", field->channel.name,
            ps_type_numpy(field->channel.type), places);
        if (field->channel.count > 0)
            add(&t, " %" PRIu32, field->channel.count);
        add(&t, ")), ");
        end = field->offset +
              places * (uint32_t)ps_channel_bytes(&field->channel);
    }
    if (info->row_bytes > end)
        add(&t, GAP, info->row_bytes - end);

    /*
     * The number has a fixed width, so that it can be filled in later.  If it
     * is blank, numpy refuses to load the array.
     */
    if (n == PS_UNKNOWN)
        add(&t, "], 'fortran_order': False, 'shape': (%20s,)}", "");
    else
        add(&t, "], 'fortran_order': False, 'shape': (%20" PRIu64 ",)}", n);

    /* Cannot happen within the limits of the format. */
    if (t.full)
        return input_fail(in, "too many fields for a .npy header");
    memset(t.at, ' ', t.left - 1);
    t.at[t.left - 1] = '\n';
    return true;
}

void convert_npy(input *in, output *out)
{
    const counted_form form = {"npy", NPY_HEADER_BYTES, make_npy_header,
                               PS_UNKNOWN - 1, false};

    convert_counted(&form, in, out);
}
