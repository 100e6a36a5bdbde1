"""packrows.py - every rule of packstream(5), and a stream that breaks it.

The page marks its rules with comments, ".\\" rule: NAME WHO".  For each rule
ROWS has streams that break just that rule, and the message.  WHO is the reader
that refuses such a stream:

    reader    any reader: packstat, packcat, packstream, the library
    joiner    packcat in the order of the input, as it joins the pieces
    verify    packstat --verify alone
    against   packstat --verify --against=INPUT alone

Each also refuses the streams of those above it.  packrules.py tries them.

SPDX-License-Identifier: MIT
"""

import struct

from packformat import (INDEXED, LIST, NO_ID, PER_SEQUENCE, PER_TOKEN,
                        Schema, end, hash_of)
from packwrite import (BLOCK, END, HEAD, HEADER, TOKEN_HEADER, PackStream,
                       TokenStream, put)

READER, JOINER, VERIFY, AGAINST = "reader", "joiner", "verify", "against"

# Not checked by packs.py, as the page says.
PYTHON_LACKS = """pack-raw pack-window pack-zero pack-labels pack-pad
    special-vocab special-width block-most block-zero field-behind field-zero field-source
    field-fill field-end index-watermark end-zero end-books end-displacement
    end-greatest""".split()


# ---------------------------------------------------------------------
# Sound streams

SCHEMA = Schema(2, True, [("labels", "i32", PER_TOKEN),
                          ("kind", "u8", PER_TOKEN),
                          ("source", "u32", PER_SEQUENCE)],
                100, (100, 1, 2, NO_ID, NO_ID, 99), 1)
FILLS = [0xffffff9c, 7, 0xffffffff]
LENGTHS = [5, 20, 6, 9, 9]
RESERVED = """checksum index watermark sum_len_sq first_seq n_seq n_tok
    max_seqlen seq_id seq_start seq_tok piece_off full_len cu tokens
    input_ids""".split()


def sequence(number):
    n = LENGTHS[number]
    places = [number + 7 * k for k in range(n)]
    return [struct.pack("<%dH" % n, *(t % 100 for t in places)),
            struct.pack("<%di" % n, *(t - 100 for t in places)),
            bytes(t % 2 for t in places), struct.pack("<I", 1000 + number)]


def whole(number):
    return number, sequence(number), 0, LENGTHS[number]


def piece(number, first, behind):
    return (number, SCHEMA.cut(sequence(number), first, behind), first,
            LENGTHS[number])


def split_packs():
    """Sequence 1 is in two pieces, after 2.  Two blocks."""
    return PackStream(SCHEMA, [[whole(0), whole(2)], [piece(1, 0, 16)],
                               [piece(1, 16, 20), whole(3)], [whole(4)]],
                      16, 4, 8, FILLS, split=True, pad_id=100, block_packs=2)


def aligned_packs():
    rows = [(i, sequence(n), 0, LENGTHS[n]) for i, n in enumerate([0, 2, 4])]
    return PackStream(SCHEMA, [rows[:2], rows[2:]], 16, 0, 8, FILLS,
                      align=4, pad_id=100)


def shared_packs():
    """The last sequence is in another share."""
    return aligned_packs().make_share([0])


def odd_packs():
    """Rows with gaps."""
    return PackStream(SCHEMA, [[whole(0), whole(2)], [whole(1)]], 21,
                      fills=FILLS, pad_id=100)


LISTS = Schema(2, True, [("edges", "u16[2]", LIST), ("seen", "u8", LIST)])


def listed_packs():
    """Lists of 3 and 0, 1 and 4 elements, in rows with room for 4 and 6."""
    rows = [(i, sequence(n)[:1] + [bytes(range(4 * a)), bytes(range(b))], 0,
             LENGTHS[n]) for i, (n, a, b) in enumerate([(0, 3, 1), (2, 0, 4),
                                                        (3, 2, 0)])]
    return PackStream(LISTS, [rows[:2], rows[2:]], 16, 0, 8, [7, 9],
                      pad_id=100, limits=[(1, 4), (2, 6)])


def listed_pieces():
    """A sequence in two pieces, each with its list."""
    schema = Schema(2, True, LISTS.channels[1:])
    lanes = sequence(1)[:1] + [bytes(range(3))]
    return PackStream(schema, [
        [(0, schema.cut(lanes, first, end), first, LENGTHS[1])]
        for first, end in ((0, 16), (16, 20))], 16, 0, 8, [9], split=True,
        pad_id=100, limits=[(1, 6)])


def deep_packs():
    """Of three sequences, and of one."""
    rows = [(i, sequence(0)[:1], 0, LENGTHS[0]) for i in range(4)]
    return PackStream(Schema(2), [rows[:3], rows[3:]], 16, 3, block_packs=2)


def indexed_packs(**other):
    """Enough blocks for one INDEX block, and one more."""
    return PackStream(Schema(2), [[(i, [b"ab"], 0, 1)] for i in range(
        INDEXED + 1)], 4, block_packs=1, **other)


def reversed_packs():
    """The last sequence is first: 2 overtake the first."""
    return PackStream(Schema(2), [[(2, sequence(3)[:1], 0, 9)],
                                  [(1, sequence(2)[:1], 0, 6)],
                                  [(0, sequence(0)[:1], 0, 5)]],
                      16, 4, 8)


def reversed_input():
    return Schema(2).stream([sequence(n)[:1] for n in (0, 2, 3)])


def tokens():
    return TokenStream(SCHEMA, list(map(sequence, range(5))), FILLS)


def compressed():
    """Packs compressed as packstream does it, the header and each block in a
    frame: frames of raw blocks, and a seek table."""
    parts = split_packs().blocks()
    return list(map(frame, parts)), list(map(len, parts))


def frame(content, window=None):
    """A zstd frame of raw blocks, without a checksum of its own."""
    head = b"\x28\xb5\x2f\xfd"
    if window is None:
        head += struct.pack("<BI", 0xa0, len(content))
    else:
        head += bytes([0, (window - 10) << 3])
    return head + struct.pack("<I", len(content) << 3 | 1)[:3] + content


def seek_table(frames, sizes, **other):
    n = other.get("n", len(frames))
    entries = b"".join(struct.pack("<II", len(f), s)
                       for f, s in zip(frames, sizes))
    body = entries + struct.pack("<IBI", n, other.get("descriptor", 0),
                                 other.get("seekable", 0x8f92eab1))
    return struct.pack("<II", other.get("skippable", 0x184d2a5e),
                       other.get("frame_size", len(body))) + body


# ---------------------------------------------------------------------
# Changes, each to one field

def head(name, value, element=0):
    return lambda p: put(p.header, HEADER, name, value, element)


def token_head(name, value, element=0):
    return lambda t: put(t.header, TOKEN_HEADER, name, value, element)


def entry(field, place, value, element=0):
    """In the table of fields, or of channels by their number."""
    return lambda p: p.entry(field, place, value, element)


def pack(i, name, value):
    """In the head of a pack."""
    return lambda p: put(p.heads[i], HEAD, name, value)


def field(i, name, value, element):
    return lambda p: p.set(i, name, value, element)


def listed(i, number, name, start, n):
    """Start and length of a list of a sequence in pack i."""
    return lambda p: struct.pack_into(
        "<II", p.sequences[i],
        number * p.seq_bytes + p.fields[name + "[]"].offset, start, n)


def last(name, value):
    """In END."""
    return lambda p: put(p.end, END, name, value)


def block(i, name, value, sealed=True):
    """In the head of a block; END is -1."""
    return lambda p: p.alter(i, lambda data: put(data, BLOCK, name, value),
                             sealed)


def unpacked(i):
    """A pack without sequences."""
    def change(p):
        p.sequences[i] = bytearray()
        p.heads[i][12:24] = bytes(12)
    return change


def within(i, at, code, value, sealed=True):
    """At byte `at` of a block."""
    return lambda p: p.alter(i, lambda data: struct.pack_into(
        "<" + code, data, at % len(data), value), sealed)


def longer(i, by):
    """A block continues after its end, and its header says so."""
    def change(data):
        data += bytes(by)
        put(data, BLOCK, "bytes", len(data))
    return lambda p: p.alter(i, change)


def both(*changes):
    def change(p):
        for one in changes:
            one(p)
    return change


def byte(part, i, at, value=1):
    """A byte of pack i that no field has."""
    def change(p):
        data = getattr(p, part)[i]
        assert not data[at]
        data[at] = value
    return change


def moved(name, by):
    """A field and all after it are shifted, in the dtype, too."""
    def change(p):
        kind, behind = p.fields[name].kind, False
        for other in p.fields.values():
            behind |= other.name == name
            if behind and other.kind == kind:
                other.offset += by
                p.entry(other.name, "offset", other.offset)
        p.rewrite_dtype()
    return change


def larger(name, part):
    """Rows are larger than their fields ask for."""
    def change(p):
        setattr(p.layout, name, getattr(p, name) + 8)
        p.size_blocks(p.block_packs)
        for place in name, "block_bytes":
            put(p.header, HEADER, place, getattr(p, place))
        p.rewrite_dtype()
        for i, data in enumerate(getattr(p, part)):
            step = getattr(p, name)
            rows = [data[at:at + step - 8] + bytes(8)
                    for at in range(0, len(data), step - 8)]
            getattr(p, part)[i] = b"".join(rows)
    return change


def renamed(old, new):
    def change(p):
        for i, c in enumerate(new.encode().ljust(24, b"\0")):
            p.entry(old, "name", c, i)
    return change


def indexed(blocks):
    """An INDEX block follows so many blocks."""
    def change(p):
        p.indexed = blocks
    return change


def flipped(at):
    """A bit of the whole stream, once the checksums are there."""
    def change(p):
        data = bytearray(p.bytes())
        data[at % len(data)] ^= 1
        return bytes(data)
    return change


def without_end(p):
    return b"".join(p.blocks()[:-1])


def cut(n):
    return lambda p: p.bytes()[:-n]


def followed(data):
    return lambda p: p.bytes() + data


def joined(**other):
    """A second stream that differs as the arguments specify."""
    def change(p):
        values = dict(dict(capacity=16, depth=4, pad_id=100, split=True,
                           schema=SCHEMA, block_packs=2), **other)
        schema = values.pop("schema")
        second = PackStream(schema, [[(0, sequence(0)[:1 + len(
            schema.channels)], 0, 5)]], window=8, fills=FILLS, **values)
        return p.bytes() + second.bytes()
    return change


def joined_tokens(schema):
    return lambda t: t.bytes() + TokenStream(schema, []).bytes()


def other_lengths(entries):
    """LENGTHS has these entries."""
    return lambda t: t.body() + t.lengths(entries) + t.end()


def longest_missing(t):
    """All entries of LENGTHS are right, but the last is missing."""
    counts = {}
    for record in t.records:
        length, = struct.unpack_from("<I", record)
        counts[length] = counts.get(length, 0) + 1
    return other_lengths(sorted(counts.items())[:-1])(t)


def changed_lengths(place, code, value, sealed=True):
    """A number of LENGTHS is changed."""
    def change(t):
        data = bytearray(t.lengths())
        struct.pack_into("<" + code, data, place % len(data), value)
        if sealed:
            struct.pack_into("<Q", data, len(data) - 16, hash_of(data[:-16]))
        return t.body() + data + t.end()
    return change


def table(**other):
    """The seek table is a different one."""
    def change(_):
        frames, sizes = compressed()
        return b"".join(frames) + seek_table(frames, sizes, **other)
    return change


def wrong_sizes(frame_number, size_in_file, size_decompressed):
    def change(_):
        frames, sizes = compressed()
        data = b"".join(frames)
        frames[frame_number] += bytes(size_in_file)
        sizes[frame_number] += size_decompressed
        return data + seek_table(frames, sizes)
    return change


def without_table(_):
    return b"".join(compressed()[0])


# ---------------------------------------------------------------------
# The table

class Row:
    """`says` is part of the message of packstat --verify and, for a joiner's
    rule, `packcat` of packcat's.  `python`: whether packs.py refuses it."""

    def __init__(self, rule, base, change, says, who=READER, packcat=None,
                 python=True):
        self.rule, self.base, self.change = rule, base, change
        self.says, self.who, self.packcat = says, who, packcat
        self.python = python and who == READER and rule not in PYTHON_LACKS

    def bytes(self):
        stream = self.base() if self.base else None
        changed = self.change(stream)
        return stream.bytes() if changed is None else changed

    def kind(self):
        if self.base in (None, tokens):
            return "tokens"
        return "compressed" if self.base == compressed else "packs"


def tok(rule, change, says, who=READER):
    return Row(rule, tokens, change, says, who)


def pks(rule, change, says, who=READER, **more):
    return Row(rule, split_packs, change, says, who, **more)


def idx(rule, change, says, **more):
    return Row(rule, indexed_packs, change, says, **more)


def ali(rule, change, says, who=READER, **more):
    return Row(rule, aligned_packs, change, says, who, **more)


def lst(rule, change, says, who=READER, **more):
    return Row(rule, listed_packs, change, says, who, **more)


def zst(rule, change, says):
    return Row(rule, compressed, change, says, python=False)


RAW = Schema(2).stream([sequence(n)[:1] for n in range(5)])
UNLIKE = Schema(2, True, SCHEMA.channels, 99, (100, 1, 2) + (NO_ID,) * 3, 1)
LARGER = Schema(2, True, SCHEMA.channels, 101, SCHEMA.special, 1)
OUTSIDE = struct.pack("<H", 100)

TOKEN_ROWS = [
    Row("raw-whole", None, lambda _: RAW[:-1], "the input ends after"),
    Row("raw-count", None, lambda _: RAW + bytes(4),
        "an empty sequence (length 0)"),
    tok("token-endian", token_head("endian", 0x04030201), "damaged head"),
    tok("token-major", token_head("major", 2), "2.0 is newer than 1.0"),
    tok("token-major", token_head("major", 0), "damaged header"),
    tok("token-header-bytes", token_head("header_bytes", 136),
        "bad header length"),
    tok("token-n-channels", both(token_head("n_channels", 24),
                                 token_head("header_bytes", 1672)),
        "24 channels, but the limit is 23"),
    tok("token-incompat", token_head("incompat", 1), "unknown features"),
    tok("token-width", token_head("token_bytes", 3), "tokens of 3 bytes"),
    tok("token-labels", token_head("labels", 3), "label convention"),
    tok("token-zero", token_head("zero_42", 1), "unused bytes"),
    tok("token-zero", token_head("zero_104", 1, 23), "unused bytes"),
    tok("token-vocab", lambda t: t.records.__setitem__(
        1, t.records[1][:4] + OUTSIDE + t.records[1][6:]),
        "token 0 is 100, outside the vocabulary of 100"),
    tok("special-vocab", token_head("special", 100, 2),
        "the eos id, 100, is outside the vocabulary of 100"),
    tok("special-width", token_head("special", 65536, 0),
        "the pad id, 65536, does not fit u16 tokens"),
    tok("token-checksum", flipped(72), "checksum does not match"),
    tok("channel-name", entry(0, "name", ord("1")), "bad channel name"),
    tok("channel-name", entry(0, "name", ord("-"), 3), "bad channel name"),
    tok("channel-name", entry(0, "name", ord("x"), 23),
        "bad channel name"),
    tok("channel-unique", both(*(
        entry(1, "name", c, i) for i, c in enumerate(b"labels"))),
        "'labels' is listed twice"),
    *(tok("channel-taken", both(*(
        entry(1, "name", c, i) for i, c in enumerate(
            name.encode().ljust(24, b"\0")))), "the name is reserved")
      for name in RESERVED),
    tok("channel-type", entry(1, "type", 9), "bad type"),
    tok("channel-kind", entry(1, "kind", 4), "bad kind"),
    Row("channel-lists", None, lambda _: Schema(2, True, [
        (name, "u8", LIST) for name in "abcde"]).stream([]),
        "5 list channels exceed the limit of 4"),
    tok("channel-elem-bytes", entry(1, "elem_bytes", 2), "bad type"),
    tok("channel-place", entry(1, "source", 1), "unused bytes"),
    tok("channel-place", entry(1, "offset", 1), "unused bytes"),
    tok("channel-count", entry(1, "count", 1), "bad vector length"),
    tok("channel-count", entry(1, "count", 16385), "bad vector length"),
    tok("channel-zero", entry(1, "zero_36", 1), "unused bytes"),
    tok("channel-zero", entry(1, "zero_48", 1, 15), "unused bytes"),
    tok("channel-fill", entry(1, "fill", 256), "bad type or fill"),
    tok("token-record", lambda t: t.body()[:-1], "the input ends after"),
    tok("control-kind", lambda t: t.body() + struct.pack("<II", 0, 4),
        "control record of unknown kind 4"),
    tok("token-end", lambda t: t.body() + end(4, 49, t.records),
        "declares 4 sequences and 49 tokens, but 5 and 49 "
        "were read"),
    tok("token-end", lambda t: t.body() + end(5, 50, t.records),
        "declares 5 sequences and 50 tokens, but 5 and 49 "
        "were read"),
    tok("token-digest", lambda t: t.body() + end(5, 49, t.records[1:]),
        "do not match its digest"),
    tok("token-digest", lambda t: t.body() + struct.pack("<II", 0, 2) +
        end(5, 49, t.records), "do not match its digest"),
    tok("lengths-n", changed_lengths(8, "I", 65537), "65537 entries"),
    tok("lengths-ascend", other_lengths([(0, 1)]), "length 0 follows"),
    tok("lengths-ascend", other_lengths([(7, 1), (7, 1)]),
        "length 7 follows length 7, but lengths must ascend"),
    tok("lengths-ascend", other_lengths([(9, 1), (7, 1)]),
        "length 7 follows length 9, but lengths must ascend"),
    tok("lengths-count", other_lengths([(7, 0)]),
        "length 7 has a count of 0"),
    tok("lengths-count", other_lengths([(2**32 - 1, 2**64 - 1)]),
        "exceed 64 bits"),
    tok("lengths-sums", longest_missing, ", but the stream has 5 and 49"),
    tok("lengths-sums", other_lengths([]), "it counts 0 sequences"),
    tok("lengths-bytes", changed_lengths(-24, "Q", 99),
        "it declares 99 bytes before it, but there are"),
    tok("lengths-checksum", changed_lengths(-16, "Q", 99, False),
        "its checksum does not match"),
    tok("lengths-size", changed_lengths(-8, "Q", 99), "its tail declares 99"),
    tok("lengths-records", other_lengths([(9, 4), (13, 1)]),
        "it declares 4 sequences of 9 tokens, but the stream has", VERIFY),
    tok("lengths-last", lambda t: t.body() + 2 * t.lengths() + t.end(),
        "something other than END follows LENGTHS"),
    tok("lengths-last", lambda t: t.body() + t.lengths() +
        struct.pack("<II", 0, 2) + t.end(),
        "something other than END follows LENGTHS"),
    tok("token-cut", lambda t: t.body() + t.lengths(), "the input ends after"),
    tok("token-cut", lambda t: t.body(), "without END"),
    tok("token-cut", lambda t: t.bytes()[:-1], "the input ends after"),
    tok("token-behind", followed(b"x"), "not token records"),
    tok("token-joined", joined_tokens(UNLIKE), "vocab_size is 99"),
    tok("token-joined", lambda t: t.bytes() + RAW,
        "not token records"),
]

HEADER_ROWS = [
    pks("pack-endian", head("endian", 0x04030201), "damaged header"),
    pks("pack-major", head("major", 3), "3.0 is newer than 2.0"),
    pks("pack-major", head("major", 1), "pack stream format 1 is no longer "
        "supported: pack the token records again"),
    pks("pack-major", head("major", 0), "damaged header"),
    pks("pack-header-bytes", head("header_bytes", 4095), "bad header le"),
    pks("pack-row-bytes", head("row_bytes", 0), "rows of 0 and"),
    pks("pack-row-bytes", head("row_bytes", 68), "rows of 68 and"),
    pks("pack-row-bytes", head("row_bytes", 2**28 + 8), "rows of 268435464"),
    pks("pack-seq-bytes", head("seq_bytes", 8), "sequence rows of 8 bytes"),
    pks("pack-seq-bytes", head("seq_bytes", 20), "sequence rows of 20"),
    pks("pack-seq-bytes", head("seq_bytes", 2**31), "sequence rows of 21474"),
    pks("pack-counts", head("n_packs", 5), "declares n_packs as 5, but"),
    pks("pack-counts", head("n_sequences", 5),
        "declares n_sequences as 5, but"),
    pks("pack-counts", head("n_tokens", 5), "declares n_tokens as 5, but"),
    pks("pack-counts", head("max_seqlen", 5), "declares max_seqlen as 5, but"),
    pks("pack-counts", head("min_fill", 5), "declares min_fill as 5, but"),
    pks("pack-capacity", head("capacity", 0), "the capacity must be"),
    pks("pack-capacity", head("capacity", 2**24 + 1), "the capacity must"),
    pks("pack-depth", head("depth", 17), "depth 17 exceeds the 16"),
    ali("pack-depth", head("depth", 5), "depth 5 exceeds the 4"),
    pks("pack-window", head("window", 0), "the window must be"),
    pks("pack-window", head("window", 2**24 + 1), "the window must be"),
    pks("pack-incompat", head("incompat", 2), "unknown features"),
    pks("pack-raw", head("compat", 0), "raw token records cannot have"),
    pks("pack-zero", head("zero_123", 1), "unused bytes of the header"),
    pks("pack-zero", head("zero_204", 1, 3), "unused bytes of the head"),
    pks("pack-zero", head("zero_240", 1, 15), "unused bytes of the head"),
    pks("pack-budget", head("budget_by", 255), "budget 0 is 0"),
    pks("pack-budget", head("budget", 5), "budget 0 is 5"),
    pks("pack-budget", both(head("budget_by", 255), head("budget", 1 << 44)),
        "budget 0 is 17592186044416"),
    pks("pack-budget", both(head("budget_by", 7), head("budget", 5)),
        "a budget of channel 6"),
    pks("pack-budget", both(head("budget_by", 1), head("budget", 5)),
        "a budget of channel 0"),
    pks("special-vocab", head("special", 100, 1), "the bos id, 100, is"),
    pks("special-width", head("special", 65536, 0), "the pad id, 65536"),
    pks("pack-width", head("token_bytes", 8), "tokens of 8 bytes"),
    pks("pack-labels", head("labels", 3), "label convention"),
    pks("pack-group", head("group", 7), "groups by channel 7"),
    pks("pack-group", head("group", 1), "groups by channel 1"),
    pks("pack-pad", head("pad_id", 99), "not filled with the pad id"),
    pks("pack-pad", both(head("pad_id", 65536), entry("tokens", "fill",
                                                      65536)),
        "'tokens': bad type or fill"),
    pks("pack-align", head("align", 4), "unused bytes of the header",
        python=False),
    ali("pack-align", head("align", 1), "aligned to 1"),
    ali("pack-align", head("align", 3), "does not divide the capacity"),
    ali("pack-align", both(head("incompat", 0), head("block_bytes", 2293824)),
        "unused bytes of the header"),
    pks("block-packs", head("block_packs", 0), "blocks of 0 packs"),
    pks("block-packs", head("block_packs", 3), "blocks of 3 packs"),
    pks("block-packs", head("block_packs", 2**17), "blocks of 131072 packs"),
    pks("block-most", head("block_bytes", 2**20), "size is 1048576 bytes, "
        "not "),
    pks("block-most", head("block_packs", 4), "bytes, not "),
    pks("block-most", head("depth", 3), "bytes, not "),
    pks("pack-n-fields", head("n_fields", 29), "29 fields"),
    pks("pack-n-fields", head("n_fields", 3), "seq_tok is missing"),
    pks("pack-dtype", head("dtype", ord(" "), 2039), "dtype contradicts"),
    pks("pack-dtype", head("dtype", 0, 1), "dtype contradicts"),
    pks("pack-checksum", flipped(168), "checksum does not match"),
    pks("field-behind", lambda p: p.header.__setitem__(2047, 1),
        "unused bytes of the header"),
    pks("field-zero", entry("seq_id", "zero_36", 1), "unused bytes of the"),
    pks("field-zero", entry("tokens", "zero_48", 1), "unused bytes of"),
    pks("field-source", entry("kind", "source", 1), "same source"),
    pks("field-source", entry("kind", "source", 4), "bad name"),
    pks("field-source", entry("seq_id", "source", 4), "is missing"),
    pks("field-kind", entry("piece_off", "kind", 4), "bad kind"),
    lst("field-list", entry("seen[]", "source", 1), "'seen' is listed twice"),
    lst("field-list", entry("seen[]", "type", 5), "'seen' is listed twice"),
    lst("field-list", entry("seen[]", "count", 1), "'seen' is listed twice"),
    lst("field-list", entry("seen[]", "fill", 1), "'seen' is listed twice"),
    lst("field-list", entry("seen[]", "kind", 1), "'seen' is listed twice"),
    lst("field-list", entry("edges", "kind", 2), "'edges' is"),
    lst("field-list", both(entry("seen[]", "source", 0),
                           entry("seen[]", "name", ord("x"))),
        "no start and length"),
    lst("list-budget", both(head("budget_by", 0, 1), head("budget", 0, 1)),
        "the list 'seen' has no budget"),
    lst("list-budget", head("budget", 2**31, 1), "or one that exceeds a row"),
    lst("list-budget", head("budget", 7, 1), "contradicts the field table"),
    lst("list-budget", head("budget", 4096, 1), "'seen' is outside its row"),
    pks("field-kind", entry("piece_off", "kind", 1), "wrong offset"),
    pks("field-count", entry("tokens", "count", 16), "outside its row"),
    pks("field-count", entry("kind", "count", 0), "bad vector length"),
    pks("field-count", entry("kind", "count", 16385), "bad vector length"),
    pks("field-order", both(renamed("piece_off", "full_len"),
                            renamed("full_len", "piece_off")),
        "n_fields is 9, not 7"),
    pks("field-order", renamed("full_len", "full_lem"), "n_fields is 9"),
    pks("field-fill", entry("seq_id", "fill", 1),
        "field 'seq_id' is filled"),
    pks("field-fill", entry("seq_tok", "fill", 1), "is filled with"),
    pks("field-fill", entry("full_len", "fill", 1), "is filled with"),
    pks("field-place", moved("kind", 16), "is outside its row"),
    pks("field-place", moved("source", 4), "field 'source' is at byte",
        python=False),
    pks("field-place", entry("tokens", "offset", 4),
        "field 'labels' has the wrong"),
    pks("field-end", larger("row_bytes", "rows"), "row_bytes is"),
    pks("field-end", larger("seq_bytes", "sequences"), "seq_bytes is"),
]

BLOCK_ROWS = [
    pks("block-magic", block(1, "magic", 0x52534b50), "no block starts here"),
    pks("block-kind", block(1, "kind", 3), "kind 3, "),
    pks("block-n-packs", block(1, "n_packs", 0), "kind 0, 0 packs"),
    pks("block-n-packs", block(1, "n_packs", 1), "contradict each other"),
    pks("block-n-packs", block(1, "n_packs", 3), "kind 0, 3 packs"),
    pks("block-n-seqs", block(1, "n_seqs", 1), "contradict each other"),
    pks("block-n-seqs", block(1, "n_seqs", 4), "have 3 sequences, not 4"),
    pks("block-n-seqs", block(1, "n_seqs", 2), "contradict each other"),
    pks("block-first", block(1, "first", 3), "starts with pack 3, not 2"),
    pks("block-first", block(0, "first", 1), "starts with pack 1, not 0"),
    pks("block-bytes", longer(1, 64), "contradict each other"),
    pks("block-bytes", longer(1, 8), "contradict each other"),
    pks("block-bytes", block(1, "bytes", 2**63), "contradict each other"),
    pks("block-zero", block(1, "zero_32", 1), "unused bytes of its head"),
    pks("block-zero", block(1, "zero_40", 1), "unused bytes of its head"),
    pks("block-zero", block(0, "body", 1), "contradict each other"),
    pks("block-body", block(-1, "body", 1, False), "checksum"),
    idx("block-body", block(INDEXED, "body", 1, False), "checksum"),
    pks("block-checksum", block(0, "checksum", 1, False), "checksum"),
    pks("block-padding", within(0, -1, "B", 1), "at its end are not zero"),
    pks("first-seq", within(0, 64 + 2 * 112 + 8, "I", 1), "start at 1"),
    pks("first-seq", within(0, 64 + 2 * 112 + 48, "I", 1), "start at 1"),
    pks("first-seq", within(1, 64 + 2 * 112 + 48, "I", 2**31), "start at 21"),
]

PACK_ROWS = [
    Row("row-gaps", odd_packs, byte("rows", 0, 43), "the gap after 'tokens'",
        VERIFY),
    Row("row-gaps", odd_packs, byte("rows", 1, -1), "the gap after 'kind'",
        VERIFY),
    pks("row-gaps", byte("sequences", 0, 31), "byte 28 of the row of seq",
        VERIFY),
    pks("row-gaps", byte("sequences", 0, -4), "of the row of sequence 1, ",
        VERIFY),
    pks("head-checksum", flipped(4096 + 64), "the checksum does not match"),
    pks("head-checksum", flipped(4096 + 64 + 2 * 112 + 80 + 8),
        "the checksum does not match"),
    pks("head-checksum", within(1, 64 + 2 * 112, "Q", 1),
        "the checksum does not match"),
    pks("head-checksum", lambda p: p.numbers.update({1: 2}),
        "the checksum does not match"),
    pks("watermark-falls", pack(2, "watermark", 0),
        "its watermark falls from 1 to 0", JOINER,
        packcat="its watermark falls from 1 to 0"),
    pks("watermark", both(pack(0, "watermark", 2), pack(1, "watermark", 2)),
        "sequence 1 is below 2, the watermark of pack 0", JOINER,
        packcat="sequence 1 is a duplicate, or too late"),
    pks("watermark", pack(3, "watermark", 6),
        "the watermark of pack 3 is 6, but input_sequences is 5",
        VERIFY),
    pks("sum-len-sq", pack(0, "sum_len_sq", 60),
        "sum_len_sq is 60, not 61", VERIFY),
    pks("budget", both(head("budget_by", 255), head("budget", 60)),
        "sum_len_sq exceeds its budget, 60", VERIFY),
    pks("n-seq", unpacked(1), "no sequences"),
    Row("n-seq", deep_packs, both(head("depth", 2),
                                  head("block_bytes", 320)),
        "3 sequences exceed the depth, 2"),
    pks("n-tok", pack(0, "n_tok", 10), "n_tok is 10, not 11"),
    pks("n-tok", pack(0, "n_tok", 17), "17 tokens"),
    pks("max-seqlen", pack(0, "max_seqlen", 5), "max_seqlen is 5, not 6"),
    pks("start", field(0, "seq_start", 1, 0), "starts at 1, not 0"),
    pks("start", field(0, "seq_start", 4, 1), "starts at 4, not 5"),
    pks("start", field(0, "seq_start", 6, 1), "starts at 6, not 5"),
    ali("start", field(0, "seq_start", 5, 1), "starts at 5, not 8"),
    pks("seq-tok", both(field(2, "seq_tok", 0, 0),
                        field(2, "seq_start", 0, 1)),
        "has 0 tokens, but only 16"),
    pks("seq-tok", field(0, "seq_tok", 12, 1),
        "has 12 tokens, but only 11"),
    pks("seq-tok", field(0, "seq_tok", -1, 1), "has 4294967295 tokens"),
    ali("seq-tok", field(0, "seq_tok", 9, 1), "has 9 tokens, but only 8"),
    pks("seq-id-once", both(field(3, "seq_id", 3, 0), pack(2, "watermark", 3)),
        "token 0 of sequence 3 is repeated", JOINER,
        packcat="sequence 3 is stored twice"),
    pks("seq-id-input", field(3, "seq_id", 9, 0),
        "there is a sequence 9, but input_sequences is 5", VERIFY),
    pks("pieces", field(2, "piece_off", 15, 0),
        "token 15 of sequence 1 overlaps", JOINER,
        packcat="do not add up to its 20 tokens"),
    pks("pieces", field(2, "piece_off", 17, 0), "its tokens 16 to 16",
        JOINER, packcat="do not add up to its 20 tokens"),
    pks("pieces", both(field(1, "full_len", 21, 0),
                       field(2, "full_len", 21, 0)),
        "its tokens from 20 to its end at 21", JOINER,
        packcat="do not add up to its 21 tokens"),
    pks("pieces", field(2, "full_len", 21, 0),
        "sequence 1 has 21 tokens here, but 20 in pack 1", JOINER,
        packcat="do not add up to its 20 tokens"),
    pks("pieces", field(0, "piece_off", 1, 0), "tokens before 1 are not in any",
        JOINER, packcat="do not add up to"),
    lst("list-start", listed(0, 0, "seen", 1, 1),
        "'seen' of sequence 0 starts at 1, not 0"),
    lst("list-start", listed(0, 1, "seen", 0, 4),
        "'seen' of sequence 1 starts at 0, not 1"),
    lst("list-start", listed(0, 1, "edges", 2**31, 0), "not 3"),
    lst("list-end", listed(0, 1, "edges", 3, 2),
        "'edges' of sequence 1 has 2 elements, but only 1 fit"),
    lst("list-end", listed(1, 0, "seen", 0, 2**32 - 1), "but only 6 fit"),
    pks("pieces-values", field(2, "source", 1, 0),
        "sequence 1 has different per-sequence values here and in pack 1",
        JOINER, packcat="sequence 1 differ in a per-sequence channel"),
    Row("pieces-values", listed_pieces, listed(1, 0, "seen", 0, 1),
        "sequence 0 has different per-sequence values here and in pack 0",
        JOINER, packcat="sequence 0 differ in a per-sequence channel"),
    Row("pieces-values", listed_pieces, lambda p: p.set(1, "seen", 5, 0),
        "sequence 0 has different per-sequence values here and in pack 0",
        JOINER, packcat="sequence 0 differ in a per-sequence channel"),
    lst("unused", lambda p: p.set(0, "seen", 1, 5),
        "unused element 5 of 'seen'", VERIFY),
    lst("unused", lambda p: p.set(1, "edges", 1, 2),
        "unused element 2 of 'edges'", VERIFY),
    pks("unused", field(0, "tokens", 0, 11), "unused element 11 of 'tok",
        VERIFY),
    pks("unused", field(0, "labels", 0, 15), "unused element 15 of 'lab",
        VERIFY),
    ali("unused", field(0, "tokens", 0, 5), "unused element 5 of 'tokens'",
        VERIFY),
    ali("unused", field(0, "kind", 0, 15), "unused element 15 of 'kind'",
        VERIFY),
    pks("pack-vocab", field(0, "tokens", 100, 4), "token 4 is 100, outsid",
        VERIFY),
    Row("window", reversed_packs, head("window", 1),
        "sequence 0 comes after 2 sequences or pieces with higher ids, "
        "but the window allows 1", AGAINST),
]

END_ROWS = [
    idx("index-there", indexed(INDEXED + 1),
        "no index for the preceding 4096 blocks"),
    idx("index-there", indexed(INDEXED - 1), "does not list the"),
    pks("index-there", indexed(2), "contradict"),
    idx("index-entries", within(INDEXED, 64, "Q", 4160), "index"),
    idx("index-entries", within(INDEXED, 72, "Q", 1), "index"),
    idx("index-watermark", within(INDEXED, 80, "Q", 0), "index"),
    idx("index-watermark", within(INDEXED, -8, "Q", 0), "index"),
    idx("index-watermark", within(-1, 208, "Q", 1), "index"),
    pks("index-watermark", within(-1, 208, "Q", 2), "index"),
    pks("end-head", block(-1, "first", 4 + 2**40, False), "checksum"),
    pks("end-head", block(-1, "first", 3), "END's header or unused bytes"),
    pks("end-head", block(-1, "n_packs", 1), "contradict"),
    pks("end-head", block(-1, "n_seqs", 1), "contradict"),
    pks("end-zero", last("zero_180", 1), "END's header or unused bytes"),
    pks("end-zero", within(-1, 192 + 48, "B", 1), "unused bytes"),
    pks("end-index", within(-1, 192, "Q", 4160), "index"),
    pks("end-index", within(-1, 200, "Q", 1), "index"),
    pks("end-index", within(-1, 192 + 24, "Q", 4096), "index"),
    pks("end-index", within(-1, 184, "I", 1), "index"),
    pks("end-index", within(-1, 188, "I", 1), "index"),
    pks("end-index", within(-1, 188, "I", 3), "index"),
    idx("end-index", within(-1, 192, "Q", 4096), "index"),
    idx("end-index", within(-1, 200, "Q", 1), "index"),
    pks("trailer", within(-1, -24, "Q", 256), "trailer"),
    pks("trailer", within(-1, -16, "Q", 4096), "trailer"),
    pks("trailer", within(-1, -8, "B", 0), "trailer"),
    pks("end-bytes", longer(-1, 64), "END's index or trailer"),
    pks("end-packs", both(last("packs", 5), block(-1, "first", 5)),
        "END declares packs as 5, but it is 4"),
    pks("end-packs", last("sequences", 7),
        "declares sequences as 7, but it is "),
    pks("end-packs", last("tokens", 50),
        "declares tokens as 50, but it is 49"),
    pks("end-digest", lambda p: p.bytes(0), "END's digest"),
    pks("end-books", last("input_sequences", 6), "does not account for"),
    pks("end-books", last("input_tokens", 50), "does not account for"),
    pks("end-rejected", both(last("rejected_tokens", 2),
                             last("input_tokens", 51)),
        "0 rejected sequences cannot have lost 2 tokens", VERIFY),
    Row("end-rejected", shared_packs, both(last("rejected_tokens", 0),
                                           last("input_tokens", 11)),
        "1 rejected sequences cannot have lost 0 tokens", VERIFY),
    pks("end-truncated", last("truncated_sequences", 1),
        "1 truncated sequences cannot have lost 0 tokens", VERIFY),
    pks("end-truncated", both(last("truncated_sequences", 1),
                              last("truncated_tokens", 1),
                              last("input_tokens", 50)),
        "truncated_sequences is 1, but 0 sequences have 16 tokens", VERIFY),
    pks("end-split", last("split_sequences", 2),
        "split_sequences is 2, but the packs add up to 1", VERIFY),
    pks("end-split", both(last("extra_pieces", 0),
                          last("input_sequences", 6)),
        "extra_pieces is 0, but the packs add up to 1", VERIFY),
    pks("end-displacement", last("max_displacement", 3),
        "declares max_displacement as 3, but it is 2"),
    pks("end-greatest", last("max_seqlen", 15),
        "declares max_seqlen as 15, but"),
    pks("end-greatest", last("max_depth", 3), "declares max_depth as 3, but"),
    pks("end-greatest", last("min_fill", 2),
        "declares min_fill as 2, but it is 9"),
    pks("pack-cut", without_end, "without END"),
    pks("pack-cut", cut(1), "the stream ends after"),
    pks("pack-behind", followed(b"x"), "not a pack stream"),
    pks("joined", joined(pad_id=101), "pad_id is 101, not 100"),
    pks("joined", joined(split=False), "split is 0, not 1"),
    pks("joined", joined(capacity=32), "capacity is 32, not 16"),
    pks("joined", joined(align=4), "align is 4, not 1"),
    pks("joined", joined(schema=Schema(2, False, (), 100, (
        100, 1, 2, NO_ID, NO_ID, 99), 1)), "records are raw, not framed"),
    pks("joined", joined(schema=UNLIKE), "vocab_size is 99, not 100"),
    pks("joined", joined(schema=LARGER), "vocab_size is 101, not 100"),
    pks("joined", lambda p: p.bytes() + split_packs().make_share([0]).bytes(),
        "share is 1, not 0"),
]

OTHER_ROWS = [
    tok("limits", lambda t: t.body() + struct.pack("<I", 2**28),
        "the limit is 268435456"),
    zst("zstd-window", lambda _: frame(b"x" * 9, 28), "zstd"),
    zst("joined-plain", lambda _: split_packs().bytes() +
        b"".join(compressed()[0]) + seek_table(*compressed()),
        "extra data after END"),
    zst("joined-plain", lambda _: b"".join(compressed()[0]) +
        seek_table(*compressed()) + split_packs().bytes(), "zstd"),
    zst("seek-table", without_table, "seek table"),
    zst("seek-table", table(n=5), "seek table"),
    zst("seek-table", table(descriptor=1), "seek table"),
    zst("seek-table", table(seekable=1), "seek table"),
    zst("seek-table", table(frame_size=9), "zstd"),
    zst("seek-table", wrong_sizes(2, 1, 0), "seek table"),
    zst("seek-table", wrong_sizes(2, 0, 1), "seek table"),
]

ROWS = (TOKEN_ROWS + HEADER_ROWS + BLOCK_ROWS + PACK_ROWS + END_ROWS +
        OTHER_ROWS)
