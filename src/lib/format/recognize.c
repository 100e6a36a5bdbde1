/*
 * recognize.c - recognize files of other programs by their first bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "bytes.h"
#include "packstream.h"

#define TABLES \
    " (use python -m packstream.tokens for ids, packstream.tokenize for text)"

static const struct {
    size_t n;
    const char *bytes;
    const char *name;
} beginnings[] = {
    {6, "\x93NUMPY", "a numpy array (use tokcat --from=npy)"},
    {8, "\x88\xdb\x34\x01\x01\0\0\0", "an llm.c token file (use tokcat "
    "--from=llmc)"},
    {8, "\xa1\xd9\x34\x01\x07\0\0\0", "an llm.c token file (use tokcat "
    "--from=llmc)"},
    {7, "MMIDIDX", "a Megatron-LM index (use tokcat --from=megatron)"},
    {4, "PAR1", "Parquet" TABLES},
    {6, "ARROW1", "Arrow" TABLES},
    {3, "\x1f\x8b\x08", "gzip (use gzip -dc)"},
    {4, "\x28\xb5\x2f\xfd", "zstd"},
    {3, "BZh", "bzip2 (use bzip2 -dc)"},
    {6, "\xfd" "7zXZ\0", "xz (use xz -dc)"},
    {4, "\4\x22\x4d\x18", "lz4 (use lz4 -dc)"},
    {4, "PK\3\4", "a zip archive"},
    {8, "\x89TOK\r\n\x1a\n", "token records (pack them with packstream)"},
    {8, "\x89PKS\r\n\x1a\n", "a pack stream (unpack it with packcat)"},
    {8, "\x89PKT\r\n\x1a\n", "a saved state of packstream"},
    {8, "\x89MIX\r\n\x1a\n", "a saved state of tokmix"},
    {8, "\x89SHF\r\n\x1a\n", "a saved state of tokshuf"},
    {8, "\x89RUN\r\n\x1a\n", "a temporary file of tokshuf"},
};

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* True for the start of an object, or of a list of objects. */
static bool is_json(const unsigned char *p, size_t n)
{
    size_t i = 0;

    while (i < n && (is_space(p[i]) || (i == 0 && p[i] == '[')))
        i++;
    if (i == n || p[i++] != '{')
        return false;
    while (i < n && is_space(p[i]))
        i++;
    return i == n || p[i] == '"' || p[i] == '}';
}

const char *ps_recognize(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    n = n < PS_RECOGNIZE_BYTES ? n : PS_RECOGNIZE_BYTES;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (n >= beginnings[i].n &&
            memcmp(p, beginnings[i].bytes, beginnings[i].n) == 0)
            return beginnings[i].name;
    /*
     * An Arrow IPC message starts with a continuation marker and the size of
     * its metadata, a multiple of 8.
     */
    if (n == 8 && load_u32(p) == UINT32_MAX && load_u32(p + 4) > 0 &&
        load_u32(p + 4) % 8 == 0 && load_u32(p + 4) < UINT32_C(1) << 24)
        return "Arrow" TABLES;
    if (is_json(p, n))
        return "JSON (use tokcat --from=jsonl)";

    /* Text in any ASCII-compatible encoding.  A few bytes are not enough. */
    if (n < PS_RECOGNIZE_BYTES)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if ((p[i] < ' ' && !is_space(p[i])) || p[i] == 0x7f)
            return NULL;
    return "text (use tokcat)";
}
