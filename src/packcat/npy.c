/*
 * npy.c - packs as a numpy array of records, a .npy file of version 1.0.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "counted.h"
#include "formats.h"

/* The header's size; the records after it keep their alignment in pages. */
#define HEADER_BYTES COUNTED_HEADER_MAX

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

/*
 * The number has a place of fixed width, so that it can come later; numpy
 * refuses to load an array with blanks there.
 */
static void add_shape(text *t, uint64_t n_records)
{
    if (n_records == PS_UNKNOWN)
        add(t, "(%20s,)", "");
    else
        add(t, "(%20" PRIu64 ",)", n_records);
}

static const char *make_header(const ps_pack_info *info, uint64_t n,
                               char *header)
{
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const size_t prefix = sizeof magic + 2;
    const size_t length = HEADER_BYTES - prefix;
    text t = {.at = header + prefix, .left = length};

    memcpy(header, magic, sizeof magic);
    store_u16((unsigned char *)header + sizeof magic, (uint16_t)length);
    add(&t, "{'descr': [");
    add_fields(&t, info);
    add(&t, "], 'fortran_order': False, 'shape': ");
    add_shape(&t, n);
    add(&t, "}");
    /* No stream within the limits gets here. */
    if (t.full)
        return "its fields do not fit the header of a .npy file";
    memset(t.at, ' ', t.left - 1);
    t.at[t.left - 1] = '\n';
    return NULL;
}

static uint64_t max(const ps_pack_info *info)
{
    (void)info;
    return PS_UNKNOWN - 1;
}

static bool put_record(const input *in, output *out, const ps_pack *pack)
{
    return output_put(out, pack->record, in->first.record_bytes);
}

void convert_npy(input *in, output *out)
{
    static const counted form = {"npy", HEADER_BYTES, make_header, max,
                                 put_record};

    counted_convert(&form, in, out);
}
