/*
 * packs.c - read the packs of one input from any position.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/packs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fills in PS_ERR_IO with `what` and the text for errno. */
static ps_result fail_errno(ps_error *err, const char *what)
{
    *err = (ps_error){.code = PS_ERR_IO, .sys_errno = errno};
    (void)snprintf(err->text, sizeof err->text, "%s: %s", what,
                   strerror(err->sys_errno));
    return err->code;
}

ps_result packs_open_file(packs *p, int fd, ps_error *err)
{
    struct stat st;
    off_t at = -1;

    *p = (packs){0};
    if (fstat(fd, &st) != 0)
        return fail_errno(err, "cannot stat");
    /* Generated files, as in /proc, report size 0; read them as streams. */
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        at = lseek(fd, 0, SEEK_CUR);
        if (at < 0)
            return fail_errno(err, "cannot seek");
    }
    if (at == 0)
        return ps_pack_file_open(&p->file, fd, err);
    *err = (ps_error){.code = PS_ERR_UNSUPPORTED};
    (void)snprintf(err->text, sizeof err->text,
                   "not a regular file, or not positioned at its start");
    return err->code;
}

ps_result packs_open(packs *p, int fd, bool seek, ps_error *err)
{
    ps_result result = PS_ERR_UNSUPPORTED;

    *p = (packs){0};
    if (seek)
        result = packs_open_file(p, fd, err);
    /* The reader reports its own error if it does not support the format. */
    if (result == PS_ERR_UNSUPPORTED)
        result = ps_pack_reader_open(&p->reader, fd, err);
    return result;
}

const ps_pack_info *packs_info(const packs *p)
{
    return p->file != NULL ? ps_pack_file_info(p->file)
                           : ps_pack_reader_info(p->reader);
}

ps_result packs_header(const packs *p, ps_pack_info *header, ps_error *err)
{
    ps_totals totals;

    if (p->file != NULL)
        return ps_pack_file_stream(p->file, 0, header, &totals, err);
    *header = *ps_pack_reader_stream(p->reader);
    return PS_OK;
}

ps_result packs_skip(packs *p, uint64_t n, uint64_t *passed, ps_error *err)
{
    ps_result result = PS_OK;
    uint64_t left;
    ps_pack pack;

    *passed = 0;
    if (p->file == NULL) {
        while (result == PS_OK && *passed < n) {
            result = ps_pack_reader_next(p->reader, &pack, err);
            *passed += result == PS_OK;
        }
        return result;
    }
    left = ps_pack_file_packs(p->file) - p->next;
    *passed = n < left ? n : left;
    p->next += *passed;
    return *passed == n ? PS_OK : PS_END;
}

ps_result packs_next(packs *p, ps_pack *pack, ps_error *err)
{
    if (p->file == NULL)
        return ps_pack_reader_next(p->reader, pack, err);
    if (p->next == ps_pack_file_packs(p->file))
        return PS_END;
    return ps_pack_file_read(p->file, p->next++, pack, err);
}

uint64_t packs_offset(const packs *p)
{
    if (p->file != NULL)
        return p->next * ps_pack_file_info(p->file)->row_bytes;
    return p->reader != NULL ? ps_pack_reader_offset(p->reader) : 0;
}

const unsigned char *packs_values(const ps_pack_info *info,
                                  const ps_pack *pack, const ps_field *field,
                                  uint32_t i, uint32_t begin)
{
    if (field->channel.kind == PS_PER_SEQUENCE)
        return pack->sequences + (size_t)i * info->seq_bytes + field->offset;
    return pack->row + field->offset +
           begin * ps_channel_bytes(&field->channel);
}

uint64_t packs_places(const ps_pack_info *info, const ps_field *field)
{
    uint32_t k = 0;

    if (field->channel.kind != PS_LIST)
        return field->channel.kind == PS_PER_TOKEN ? info->capacity : 1;
    while (info->budgets[k].channel != field->source)
        k++;
    return info->budgets[k].limit;
}

void packs_close(packs *p)
{
    ps_pack_reader_free(p->reader);
    ps_pack_file_free(p->file);
    *p = (packs){0};
}
