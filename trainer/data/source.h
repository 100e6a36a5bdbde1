/*
 * source.h - read packs from files, one after another, for all epochs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_SOURCE_H
#define TR_DATA_SOURCE_H

#include "data/batch_builder.h"
#include "data/data_loader.h"

typedef struct tr_source tr_source;

/*
 * Opens the first file.  Packs are added to `to`.  Results are as in
 * tr_loader_open.  *s must be freed even after a failure.
 */
PS_MUST_CHECK ps_result tr_source_open(tr_source **s,
                                       const tr_loader_options *options,
                                       tr_builder *to, ps_error *err);
void tr_source_free(tr_source *s);

/* The name of the file that is being read. */
const char *tr_source_name(const tr_source *s);

/*
 * Adds the next pack.  It is an error if the builder then has more than
 * `sequences` sequences (0: no limit).  Returns PS_OK; PS_END at the end of the
 * epoch, until tr_source_next_epoch is called; or an error of tr_loader_next.
 */
PS_MUST_CHECK ps_result tr_source_add(tr_source *s, uint32_t sequences,
                                      ps_error *err);

/* Starts the next epoch.  Returns PS_END after the last epoch. */
PS_MUST_CHECK ps_result tr_source_next_epoch(tr_source *s, ps_error *err);

/*
 * Makes tr_source_add fail in another thread, even while it waits for input.
 * Requires tr_loader_options.ahead.
 */
void tr_source_stop(tr_source *s);

/* See tr_loader_position and tr_loader_resume. */
tr_input_position tr_source_position(const tr_source *s);
PS_MUST_CHECK ps_result tr_source_resume(tr_source *s,
                                         const tr_input_position *position,
                                         ps_error *err);

#endif /* TR_DATA_SOURCE_H */
