/*
 * tfrecord.c - TFRecord files of BERT's pre-training samples.
 *
 * SPDX-License-Identifier: MIT
 */

#include "wire/tfrecord.h"

#include <inttypes.h>

#include "tokcat/bert.h"
#include "tokcat/job.h"

/* A sample of 512 tokens has some 5000 bytes. */
#define LONGEST_RECORD ((uint64_t)64 * 1024 * 1024)

static int open_tfrecord(job *j, const char *name)
{
    return binary_open(&j->data, name);
}

static int cut_off(const job *j)
{
    return job_bad(j, "the file ends within it, at byte %" PRIu64,
                   j->data.next);
}

/* What else a file that does not begin with a record may be. */
static int bad_head(const job *j)
{
    const unsigned char *p = binary_at(&j->data);
    const bool is_gzip =
        j->place.offset == 0 && p[0] == 0x1f && p[1] == 0x8b;

    return job_bad(j, "the checksum of its length does not fit%s",
                   is_gzip ? "; the file is compressed by gzip" : "");
}

/* The length of the record that begins here. */
static int read_head(job *j, size_t ready, uint64_t *n)
{
    if (ready < TFRECORD_HEAD_BYTES)
        return cut_off(j);
    if (!tfrecord_take_head(binary_at(&j->data), n))
        return bad_head(j);
    if (*n > LONGEST_RECORD)
        return job_bad(j, "a record of %" PRIu64 " bytes; the limit is %"
                       PRIu64, *n, LONGEST_RECORD);
    return STATUS_OK;
}

static int read_body(job *j, size_t n)
{
    const size_t bytes = TFRECORD_HEAD_BYTES + n + TFRECORD_TAIL_BYTES;
    const unsigned char *p;
    size_t ready;
    int status = binary_need(&j->data, bytes, &ready);

    if (status != STATUS_OK)
        return status;
    if (ready < bytes)
        return cut_off(j);
    p = binary_at(&j->data) + TFRECORD_HEAD_BYTES;
    if (!tfrecord_check_tail(p, n, p + n))
        return job_bad(j, "its checksum does not fit");
    status = bert_put(j, p, n);
    binary_take(&j->data, bytes);
    j->out.figures.bytes += bytes;
    return status;
}

static int read_tfrecord(job *j)
{
    size_t ready;
    uint64_t n;
    int status;

    for (j->place = (job_place){.unit = "record"};; j->place.number++) {
        j->place.offset = binary_offset(&j->data);
        status = binary_need(&j->data, TFRECORD_HEAD_BYTES, &ready);
        if (status != STATUS_OK || ready == 0)
            return status;
        status = read_head(j, ready, &n);
        if (status == STATUS_OK)
            status = read_body(j, (size_t)n);
        if (status != STATUS_OK)
            return status;
    }
}

const job_source source_tfrecord = {
    .unit = "record",
    .learns = true,
    .open = open_tfrecord,
    .read = read_tfrecord,
};
