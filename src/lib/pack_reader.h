/*
 * pack_reader.h - a pack reader on an input that was opened before.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PACK_READER_H
#define LIB_PACK_READER_H

#include "packstream.h"
#include "source.h"

/*
 * As ps_pack_reader_open.  The source belongs to the reader from now on,
 * also after a failure.
 */
ps_result ps_pack_reader_start(ps_pack_reader **reader, ps_source *source,
                               ps_error *err);

#endif
