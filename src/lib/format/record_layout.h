/*
 * record_layout.h - where everything lies in a pack record; packstream(5)
 * "Pack records".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_RECORD_LAYOUT_H
#define LIB_FORMAT_RECORD_LAYOUT_H

#include "packstream.h"

/* The head of every record. */
#define PS_HEAD_BYTES 64
#define PS_RECORD_MIN 256

/* Checks capacity, depth, window and align.  PS_OK, PS_ERR_ARGUMENT. */
ps_result ps_geometry_check(const ps_pack_info *info, ps_error *err);

/*
 * Works out fields, record_bytes, the indices of fields and dtype from
 * capacity, depth, split, align and schema.
 * PS_OK, PS_ERR_ARGUMENT (capacity, depth, window or align out of range),
 * _LIMIT.
 */
ps_result ps_layout(ps_pack_info *info, ps_error *err);

/*
 * Writes the dtype literal of info's fields to info->dtype; false if it does
 * not fit.
 */
bool ps_layout_dtype(ps_pack_info *info);

#endif
