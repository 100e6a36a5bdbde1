/*
 * packstream.h - the public interface of libpackstream.
 *
 * SPDX-License-Identifier: MIT
 *
 * packstream turns a stream of tokenised sequences (token records) into a
 * stream of fixed-size packs (a pack stream) and back, losing nothing.  Both
 * formats are specified byte by byte in packstream(5); the words used here
 * (sequence, capacity, depth, pack, window, watermark) are defined there.
 *
 * The interface has three levels:
 *
 *   records   ps_token_reader, ps_token_writer: token records in and out
 *   packs     ps_packer (records in, packs out), ps_pack_reader (packs in),
 *             ps_pack_file (packs in, from any place of a file),
 *             ps_spans, ps_loader (packs as a trainer wants them),
 *             ps_deal (packs to ranks, with equal work)
 *   both      ps_unpacker: packs in, the original records out
 *
 * Conventions that hold for every call:
 *
 *  - A call that can fail returns a ps_result and is PS_MUST_CHECK.  When it
 *    fails it fills the caller's ps_error, unless that is NULL, with the same
 *    code and a sentence that says what is wrong, at which record and byte
 *    offset.  The library never prints and never exits.
 *  - After a failure a handle may only be freed.
 *  - ps_X_open makes a handle, and sets its out pointer to NULL when it
 *    fails.  ps_X_free releases a handle, and accepts NULL.
 *  - File descriptors stay the caller's: the library reads and writes them,
 *    waits on them if they are non-blocking, restarts system calls that a
 *    signal interrupts, and never closes them.
 *  - Pointers inside a ps_sequence or ps_pack point into the handle that
 *    gave them, and live until the next call on it.
 *  - Lengths are in tokens, sizes in bytes, offsets in bytes from the start
 *    of the decompressed input.  Everything on disk is little-endian.
 *  - One thread at a time may use a handle.  Different handles are
 *    independent, except a token reader and the packers that take its
 *    sequences: one thread at a time may use all of these.  There is no global
 *    state.
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
