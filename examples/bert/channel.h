/*
 * channel.h - numbers of a channel of a pack, whatever their type.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CHANNEL_H
#define BERT_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* True for types of whole numbers. */
bool channel_is_whole(ps_type type);

/*
 * Element `i`, below field->count, in a record; of a u64 channel what is
 * above the greatest int64_t comes as a negative number.  0 for floating
 * point numbers.
 */
int64_t channel_at(const ps_field *field, const unsigned char *record,
                   uint32_t i);

#endif /* BERT_CHANNEL_H */
