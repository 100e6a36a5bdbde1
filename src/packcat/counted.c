/*
 * counted.c - forms of packs that begin with how many there are.
 *
 * Either the output is a file, in which the number is put right in the end,
 * or all inputs are, and are read twice: to count, and to copy.
 *
 * SPDX-License-Identifier: MIT
 */

#include "counted.h"

#include <inttypes.h>

#include "cli/message.h"

/* The header for `n` packs; false if there is none. */
static bool make_header(const counted *form, input *in, uint64_t n,
                        char *header)
{
    const char *why = form->header(&in->first, n, header);

    if (why != NULL)
        input_blame(in, "%s", why);
    return why == NULL;
}

static bool put_header(const counted *form, input *in, output *out,
                       uint64_t n)
{
    char header[COUNTED_HEADER_MAX];

    return make_header(form, in, n, header) &&
           output_put(out, header, form->header_bytes);
}

/* Whether so many packs can be told of. */
static bool check_count(const counted *form, input *in, uint64_t n)
{
    const uint64_t max = form->max(&in->first);

    if (n > max)
        input_blame(in, "--to=%s has room for %" PRIu64 " packs of it, and "
                    "there are more: take them in parts, with --range",
                    form->name, max);
    return n <= max;
}

/* Returns the number of packs put. */
static uint64_t put_packs(const counted *form, input *in, output *out)
{
    uint64_t n = 0;
    ps_pack pack;

    while (input_pack(in, &pack)) {
        if (!check_count(form, in, n + 1) || !form->put(in, out, &pack))
            return n;
        n++;
    }
    (void)output_flush(out);
    return n;
}

/* Fills the number in at the end: what was cut does not load. */
static void convert_and_patch(const counted *form, input *in, output *out,
                              off_t offset)
{
    char header[COUNTED_HEADER_MAX];
    uint64_t n;

    if (!put_header(form, in, out, PS_UNKNOWN))
        return;
    n = put_packs(form, in, out);
    if (in->failed || out->err.code != PS_OK)
        return;
    if (make_header(form, in, n, header))
        (void)output_patch(out, offset, header, form->header_bytes);
}

static void count_and_convert(const counted *form, input *in, output *out)
{
    uint64_t n = 0;
    ps_pack pack;

    while (input_pack(in, &pack))
        n++;
    if (in->failed || !check_count(form, in, n) || !input_rewind(in) ||
        !put_header(form, in, out, n))
        return;
    if (put_packs(form, in, out) != n && !in->failed &&
        out->err.code == PS_OK)
        input_blame(in, "changed while it was read");
}

void counted_convert(const counted *form, input *in, output *out)
{
    const off_t offset = output_patchable(out);
    uint64_t n;

    /* It is kinder to say at once what cannot come to a good end. */
    if (input_count(in, &n) && !check_count(form, in, n))
        return;
    if (offset >= 0)
        convert_and_patch(form, in, out, offset);
    else if (input_rereadable(in))
        count_and_convert(form, in, out);
    else
        out->status = message_usage(
            "--to=%s: the number of packs comes first, and from a pipe to "
            "a pipe it is not known: write to a file or read from files",
            form->name);
}
