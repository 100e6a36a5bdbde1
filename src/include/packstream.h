/*
 * packstream.h - the public interface of libpackstream.
 *
 * SPDX-License-Identifier: MIT
 *
 * packstream packs a stream of tokenised sequences (token records) into a
 * stream of fixed-size packs (a pack stream) and restores the original records
 * from it without loss.  packstream(5) specifies both formats byte by byte and
 * defines the terms used here: sequence, capacity, depth, pack, window,
 * watermark.
 *
 * The interface has three levels:
 *
 *    records   ps_token_reader, ps_token_writer: read and write token records
 *    packs     ps_packer (builds packs from records), ps_pack_reader (reads
 *              packs in order), ps_pack_file (reads any pack of a file),
 *              ps_spans and ps_loader (arrays and batches for trainers),
 *              ps_deal (assigns packs to ranks so that work is balanced)
 *    both      ps_unpacker: restores the original records from packs
 *
 * Conventions:
 *
 *  - A function that can fail returns a ps_result and is marked PS_MUST_CHECK.
 *    On failure it stores the same code in the caller's ps_error, with a
 *    sentence that names the problem, the record and the byte offset.  The
 *    caller can pass NULL.  The library never prints and never exits.
 *  - The end of a function's comment lists the results it can return.  After
 *    the first code, "_IO" is short for PS_ERR_IO, and so on.
 *  - After a failure the only valid operation on a handle is to free it, unless
 *    the function's comment allows more.
 *  - ps_X_open creates a handle.  On failure it sets its out pointer to NULL.
 *    ps_X_free releases a handle and accepts NULL.
 *  - The caller owns all file descriptors.  The library reads and writes them,
 *    polls them if they are non-blocking, restarts system calls interrupted by
 *    signals, and never closes them.
 *  - Pointers inside a ps_sequence or ps_pack point into the handle that
 *    returned them and are valid until the next call on that handle.
 *  - Lengths are in tokens, sizes in bytes.  Offsets are in bytes from the
 *    start of the decompressed input.  All integers on disk are little-endian.
 *  - Only one thread at a time may use a handle.  Different handles are
 *    independent, except that a token reader and the packers fed from it count
 *    as one handle.  The library has no global state.
 */

#ifndef PACKSTREAM_H
#define PACKSTREAM_H

#include "packstream/base.h"
#include "packstream/schema.h"
#include "packstream/tokens.h"
#include "packstream/packs.h"
#include "packstream/packer.h"
#include "packstream/batch.h"
#include "packstream/deal.h"
#include "packstream/plan.h"

#endif
