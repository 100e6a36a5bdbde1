/*
 * source.h - packs out of files, one after another, for some epochs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_SOURCE_H
#define BERT_SOURCE_H

#include "data/batch_builder.h"
#include "data/data_loader.h"

typedef struct source source;

/*
 * Opens the first file, whose packs are to go into `to`.  After a failure *s,
 * unless it is NULL, is to be freed, too.  As feed_open.
 */
PS_MUST_CHECK ps_result source_open(source **s, const feed_options *options,
                                    fill *to, ps_error *err);
void source_free(source *s);

/* The file that is being read, and the header of the first one. */
const char *source_name(const source *s);
const ps_pack_info *source_info(const source *s);

/*
 * Adds the next pack, with which the fill may hold `sequences` at most, or any
 * number if that is 0.  PS_OK; PS_END: the epoch has no more, and says so
 * until source_turn; and the failures of feed_next.
 */
PS_MUST_CHECK ps_result source_add(source *s, uint32_t sequences,
                                   ps_error *err);

/* Begins the next epoch; PS_END: that was the last one. */
PS_MUST_CHECK ps_result source_turn(source *s, ps_error *err);

/*
 * Another thread lets source_add, which may be waiting for input, fail.  Only
 * with feed_options.ahead.
 */
void source_stop(source *s);

/* As feed_save and feed_resume. */
feed_place source_save(const source *s);
PS_MUST_CHECK ps_result source_resume(source *s, const feed_place *place,
                                      ps_error *err);

#endif /* BERT_SOURCE_H */
