/*
 * find.c - print where sequences are in a pack stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdio.h>
#include <stdlib.h>

#include "cli/report.h"
#include "files/files.h"
#include "packstat/packstat.h"

static void print(const packstat_conf *conf, const faults *f,
                  const ps_location *at, uint32_t stream)
{
    if (conf->json)
        putchar('{');
    report_location(stdout, conf->json, at, stream, f->file);
    (void)fputs(conf->json ? "}\n" : "\n", stdout);
}

/* Finds all ids by the index, each in all streams. */
static ps_result find_in_file(const packstat_conf *conf, ps_pack_file *file,
                              const faults *f, ps_error *err)
{
    const id_set *ids = &conf->find;

    for (size_t i = 0; i < ids->n; i++)
        for (uint32_t s = 0; s < ps_pack_file_streams(file); s++) {
            ps_location *locations;
            uint32_t n;
            const ps_result r = ps_pack_file_locate(file, s, ids->ids[i],
                                                    &locations, &n, err);

            if (r != PS_OK)
                return r;
            for (uint32_t k = 0; k < n; k++)
                print(conf, f, &locations[k], s);
            ids->found[i] = ids->found[i] || n > 0;
            free(locations);
        }
    return PS_OK;
}

/* Reads all packs. */
static ps_result find_in_order(const packstat_conf *conf, packs *input,
                               const faults *f, ps_error *err)
{
    const ps_pack_info *info = packs_info(input);
    const id_set *ids = &conf->find;
    ps_result r;
    ps_pack pack;

    for (uint64_t n = 0; (r = packs_next(input, &pack, err)) == PS_OK; n++)
        for (uint32_t k = 0; k < pack.n_seq; k++) {
            const ps_location at = {n, k, ps_pack_piece(info, &pack, k)};
            const size_t i = ids_find(ids, at.piece.id);

            if (i == ids->n)
                continue;
            ids->found[i] = true;
            print(conf, f, &at, pack.stream);
        }
    return r == PS_END ? PS_OK : r;
}

void packs_find(const packstat_conf *conf, packs *input, faults *f)
{
    ps_error err;
    const ps_result r =
        input->file != NULL ? find_in_file(conf, input->file, f, &err)
                            : find_in_order(conf, input, f, &err);

    if (r != PS_OK)
        faults_fatal(f, &err);
}
