/*
 * source.h - packs out of files, one after another, for some epochs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_SOURCE_H
#define TR_DATA_SOURCE_H

#include "data/batch_builder.h"
#include "data/data_loader.h"

typedef struct tr_source tr_source;

/*
 * Opens the first file, whose packs are to go into `to`.  After a failure *s,
 * unless it is NULL, is to be freed, too.  As tr_loader_open.
 */
PS_MUST_CHECK ps_result tr_source_open(tr_source **s,
                                       const tr_loader_options *options,
                                       tr_builder *to, ps_error *err);
void tr_source_free(tr_source *s);

/* The file that is being read, and the header of the first one. */
const char *tr_source_name(const tr_source *s);
const ps_pack_info *tr_source_info(const tr_source *s);

/*
 * Adds the next pack, with which the builder may hold `sequences`, or any
 * number if that is 0.  PS_OK; PS_END: the epoch has no more, and says so
 * until tr_source_next_epoch; and the failures of tr_loader_next.
 */
PS_MUST_CHECK ps_result tr_source_add(tr_source *s, uint32_t sequences,
                                      ps_error *err);

/* Begins the next epoch; PS_END: that was the last one. */
PS_MUST_CHECK ps_result tr_source_next_epoch(tr_source *s, ps_error *err);

/*
 * Lets tr_source_add fail in another thread, where it may wait for input.  Only
 * with tr_loader_options.ahead.
 */
void tr_source_stop(tr_source *s);

/* As tr_loader_position and tr_loader_resume. */
tr_input_position tr_source_position(const tr_source *s);
PS_MUST_CHECK ps_result tr_source_resume(tr_source *s,
                                         const tr_input_position *position,
                                         ps_error *err);

#endif /* TR_DATA_SOURCE_H */
