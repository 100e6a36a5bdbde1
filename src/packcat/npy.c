/*
 * npy.c - packs as a numpy array of records, a .npy file of version 1.0.
 *
 * SPDX-License-Identifier: MIT
 */

#include "npy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "formats.h"

/* The parts of a record's head, as packstream(5) has them. */
static const struct {
    const char *name;
    const char *type;
    uint32_t bytes;
} head[] = {
    {"checksum", "<u8", 8},    {"magic", "<u4", 4},
    {"flags", "<u4", 4},       {"index", "<u8", 8},
    {"watermark", "<u8", 8},   {"sum_len_sq", "<u8", 8},
    {"n_seq", "<u4", 4},       {"n_tok", "<u4", 4},
    {"max_seqlen", "<u4", 4},
};

/* Text that grows inside the header. */
typedef struct text {
    char *at;
    size_t left;
    bool full;
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

/* A run of void without a name: numpy takes it for a gap, not a field. */
static void add_gap(text *t, uint32_t from, uint32_t to)
{
    if (to > from)
        add(t, "('', '|V%" PRIu32 "'), ", to - from);
}

/* The fields of a record in order, as pairs and triples, without offsets. */
static void add_fields(text *t, const ps_pack_info *info)
{
    uint32_t end = 0;

    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) {
        add(t, "('%s', '%s'), ", head[i].name, head[i].type);
        end += head[i].bytes;
    }
    for (uint32_t i = 0; i < info->n_fields; i++) {
        const ps_field *field = &info->fields[i];
        const ps_type type = field->channel.type;

        add_gap(t, end, field->offset);
        add(t, "('%s', '%s', (%" PRIu32 ",)), ", field->channel.name,
            ps_type_numpy(type), field->count);
        end = field->offset + field->count * (uint32_t)ps_type_bytes(type);
    }
    add_gap(t, end, info->record_bytes);
}

/* The number has a place of fixed width, so that it can come later. */
static void add_shape(text *t, uint64_t n_records)
{
    if (n_records == PS_UNKNOWN)
        add(t, "(%20s,)", "");
    else
        add(t, "(%20" PRIu64 ",)", n_records);
}

bool npy_header(const ps_pack_info *info, uint64_t n_records,
                char header[NPY_HEADER_BYTES])
{
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const size_t prefix = sizeof magic + 2;
    const size_t length = NPY_HEADER_BYTES - prefix;
    text t = {.at = header + prefix, .left = length};

    memcpy(header, magic, sizeof magic);
    store_u16((unsigned char *)header + sizeof magic, (uint16_t)length);
    add(&t, "{'descr': [");
    add_fields(&t, info);
    add(&t, "], 'fortran_order': False, 'shape': ");
    add_shape(&t, n_records);
    add(&t, "}");
    if (t.full)
        return false;
    memset(t.at, ' ', t.left - 1);
    t.at[t.left - 1] = '\n';
    return true;
}

static bool put_header(input *in, output *out, uint64_t n_records)
{
    char header[NPY_HEADER_BYTES];

    if (!npy_header(&in->first, n_records, header)) {
        input_blame(in, "its fields do not fit the header of a .npy file");
        return false;
    }
    return output_put(out, header, sizeof header);
}

/* Returns the number of records put. */
static uint64_t put_records(input *in, output *out)
{
    uint64_t n = 0;
    ps_pack pack;

    while (input_pack(in, &pack)) {
        if (!output_put(out, pack.record, in->first.record_bytes))
            return n;
        n++;
    }
    (void)output_flush(out);
    return n;
}

/* Fills the number in at the end: an array that was cut does not load. */
static void convert_and_patch(input *in, output *out, off_t offset)
{
    char header[NPY_HEADER_BYTES];
    uint64_t n;

    if (!put_header(in, out, PS_UNKNOWN))
        return;
    n = put_records(in, out);
    if (in->failed || out->err.code != PS_OK)
        return;
    if (npy_header(&in->first, n, header))
        (void)output_patch(out, offset, header, sizeof header);
}

/* Reads everything twice: to count, and to copy. */
static void count_and_convert(input *in, output *out)
{
    uint64_t n = 0;
    ps_pack pack;

    while (input_pack(in, &pack))
        n++;
    if (in->failed || !input_rewind(in) || !put_header(in, out, n))
        return;
    if (put_records(in, out) != n && !in->failed &&
        out->err.code == PS_OK)
        input_blame(in, "changed while it was read");
}

void convert_npy(input *in, output *out)
{
    const off_t offset = output_patchable(out);

    if (offset >= 0)
        convert_and_patch(in, out, offset);
    else if (input_rereadable(in))
        count_and_convert(in, out);
    else
        out->status = message_usage(
            "--to=npy: the number of packs comes first, and from a pipe to "
            "a pipe it is not known: write to a file or read from files");
}
