"""packrows.py - every rule of packstream(5), and a stream that breaks it.

The page marks its rules with comments, ".\\" rule: NAME WHO".  ROWS has for
each of them streams that break just that rule, and what is said of it.  WHO
refuses such a stream:

    reader    whoever reads it: packstat, packcat, packstream, the library
    joiner    packcat in the order of the input, as it puts sequences together
    verify    packstat --verify alone
    against   packstat --verify --against=INPUT alone

and each of them what those above it refuse.  packrules.py tries them.

SPDX-License-Identifier: MIT
"""

import struct

from packformat import (NO_ID, PER_SEQUENCE, PER_TOKEN, Schema, end,
                        hash_of)
from packwrite import (END, HEAD, HEADER, TOKEN_HEADER, PackStream,
                       TokenStream, put)

READER, JOINER, VERIFY, AGAINST = "reader", "joiner", "verify", "against"

# What packs.py does not look at, as the page says.
PYTHON_LACKS = """pack-window pack-zero pack-labels pack-pad special-vocab
    special-width field-behind field-zero field-source field-fill field-place
    field-end end-zero end-books end-displacement end-greatest""".split()


# ---------------------------------------------------------------------
# Sound streams

SCHEMA = Schema(2, True, [("labels", "i32", PER_TOKEN),
                          ("kind", "u8", PER_TOKEN),
                          ("source", "u32", PER_SEQUENCE)],
                100, (100, 1, 2, NO_ID, NO_ID, 99), 1)
FILLS = [0xffffff9c, 7, 0xffffffff]
LENGTHS = [5, 20, 6, 9, 9]


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
    """Sequence 1 is in two pieces, and 2 comes before it."""
    return PackStream(SCHEMA, [[whole(0), whole(2)], [piece(1, 0, 16)],
                               [piece(1, 16, 20), whole(3)], [whole(4)]],
                      16, 4, 8, FILLS, split=True, pad_id=100)


def aligned_packs():
    rows = [(i, sequence(n), 0, LENGTHS[n]) for i, n in enumerate([0, 2, 4])]
    return PackStream(SCHEMA, [rows[:2], rows[2:]], 16, 4, 8, FILLS,
                      align=4, pad_id=100)


def shared_packs():
    """The last sequence is in another share."""
    return aligned_packs().make_share([0])


def reversed_packs():
    """The last sequence comes first: 2 overtake the first."""
    return PackStream(Schema(2), [[(2, sequence(3)[:1], 0, 9)],
                                  [(1, sequence(2)[:1], 0, 6)],
                                  [(0, sequence(0)[:1], 0, 5)]],
                      16, 4, 8)


def reversed_input():
    return Schema(2).stream([sequence(n)[:1] for n in (0, 2, 3)])


def tokens():
    return TokenStream(SCHEMA, list(map(sequence, range(5))), FILLS)


def compressed():
    """Packs compressed as packstream does it, a pack in each frame but the
    first and the last: frames of raw blocks, and a seek table."""
    p = split_packs()
    data, size = p.bytes(), p.record_bytes
    parts = [data[:4096]] + [data[4096 + i * size:4096 + (i + 1) * size]
                             for i in range(len(p.records) + 1)]
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
# Changes, each to one place

def head(name, value, element=0):
    return lambda p: put(p.header, HEADER, name, value, element)


def token_head(name, value, element=0):
    return lambda t: put(t.header, TOKEN_HEADER, name, value, element)


def entry(field, place, value, element=0):
    """In the table of fields, or of channels by their number."""
    return lambda p: p.entry(field, place, value, element)


def record(i, name, value, element=0):
    return lambda p: put(p.records[i], HEAD, name, value, element)


def field(i, name, value, element):
    return lambda p: p.array(p.records[i], name, [value], element)


def last(name, value, element=0):
    """In END."""
    return lambda p: put(p.end, END if name in END else HEAD, name, value,
                         element)


def both(*changes):
    def change(p):
        for one in changes:
            one(p)
    return change


def byte(i, at, value=1):
    """A byte of a record that no field has."""
    def change(p):
        assert not p.records[i][at]
        p.records[i][at] = value
    return change


def moved(name, by):
    """A field and all behind it lie further on; the dtype says so, too."""
    def change(p):
        names = list(p.fields)
        for other in names[names.index(name):]:
            p.fields[other].offset += by
            p.entry(other, "offset", p.fields[other].offset)
        p.rewrite_dtype()
    return change


def larger(p):
    """Records are larger than their fields ask for."""
    p.record_bytes += 64
    put(p.header, HEADER, "record_bytes", p.record_bytes)
    p.rewrite_dtype()
    p.records = [r + bytearray(64) for r in p.records]
    p.end += bytearray(64)


def renamed(old, new):
    def change(p):
        for i, c in enumerate(new.encode().ljust(24, b"\0")):
            p.entry(old, "name", c, i)
    return change


def flipped(at):
    """A bit of the whole stream, once the checksums are there."""
    def change(p):
        data = bytearray(p.bytes())
        data[at % len(data)] ^= 1
        return bytes(data)
    return change


def cut(n):
    return lambda p: p.bytes()[:-n]


def followed(data):
    return lambda p: p.bytes() + data


def joined(**other):
    """A second stream that differs in what the arguments say."""
    def change(p):
        values = dict(dict(capacity=16, depth=4, pad_id=100, split=True,
                           schema=SCHEMA), **other)
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
    """All entries of LENGTHS are right, but the last is not there."""
    counts = {}
    for record in t.records:
        length, = struct.unpack_from("<I", record)
        counts[length] = counts.get(length, 0) + 1
    return other_lengths(sorted(counts.items())[:-1])(t)


def changed_lengths(place, code, value, sealed=True):
    """A number of LENGTHS is another."""
    def change(t):
        data = bytearray(t.lengths())
        struct.pack_into("<" + code, data, place % len(data), value)
        if sealed:
            struct.pack_into("<Q", data, len(data) - 16, hash_of(data[:-16]))
        return t.body() + data + t.end()
    return change


def table(**other):
    """The seek table is another."""
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
    """`says` is in what packstat --verify says; for a joiner's rule `packcat`
    in what packcat does.  `python` is whether packs.py refuses it."""

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


def ali(rule, change, says, who=READER, **more):
    return Row(rule, aligned_packs, change, says, who, **more)


def zst(rule, change, says):
    return Row(rule, compressed, change, says, python=False)


RAW = Schema(2).stream([sequence(n)[:1] for n in range(5)])
UNLIKE = Schema(2, True, SCHEMA.channels, 99, (100, 1, 2) + (NO_ID,) * 3, 1)
OUTSIDE = struct.pack("<H", 100)

TOKEN_ROWS = [
    Row("raw-whole", None, lambda _: RAW[:-1], "the input ends after"),
    Row("raw-count", None, lambda _: RAW + bytes(4), "a length of 0"),
    tok("token-endian", token_head("endian", 0x04030201), "damaged head"),
    tok("token-major", token_head("major", 2), "2.0 is newer than 1.0"),
    tok("token-major", token_head("major", 0), "damaged header"),
    tok("token-header-bytes", token_head("header_bytes", 136),
        "bad header length"),
    tok("token-n-channels", both(token_head("n_channels", 24),
                                 token_head("header_bytes", 1672)),
        "24 channels, at most 23"),
    tok("token-incompat", token_head("incompat", 1), "features that are"),
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
    tok("token-checksum", flipped(72), "checksum does not agree"),
    tok("channel-name", entry(0, "name", ord("1")), "bad channel name"),
    tok("channel-name", entry(0, "name", ord("-"), 3), "bad channel name"),
    tok("channel-name", entry(0, "name", ord("x"), 23),
        "bad channel name"),
    tok("channel-unique", both(*(
        entry(1, "name", c, i) for i, c in enumerate(b"labels"))),
        "'labels' is there twice"),
    tok("channel-taken", both(*(
        entry(1, "name", c, i) for i, c in enumerate(b"zero"))),
        "the name is reserved"),
    tok("channel-type", entry(1, "type", 9), "bad type"),
    tok("channel-kind", entry(1, "kind", 3), "bad kind"),
    tok("channel-elem-bytes", entry(1, "elem_bytes", 2), "bad type"),
    tok("channel-place", entry(1, "source", 1), "unused bytes"),
    tok("channel-place", entry(1, "offset", 1), "unused bytes"),
    tok("channel-place", entry(1, "count", 1), "unused bytes"),
    tok("channel-zero", entry(1, "zero_36", 1), "unused bytes"),
    tok("channel-zero", entry(1, "zero_48", 1, 15), "unused bytes"),
    tok("channel-fill", entry(1, "fill", 256), "bad type or fill"),
    tok("token-record", lambda t: t.body()[:-1], "the input ends after"),
    tok("control-kind", lambda t: t.body() + struct.pack("<II", 0, 4),
        "control record of unknown kind 4"),
    tok("token-end", lambda t: t.body() + end(4, 49, t.records),
        "counts 4 sequences and 49 tokens, but 5 and 49 came"),
    tok("token-end", lambda t: t.body() + end(5, 50, t.records),
        "counts 5 sequences and 50 tokens, but 5 and 49 came"),
    tok("token-digest", lambda t: t.body() + end(5, 49, t.records[1:]),
        "do not agree with its digest"),
    tok("token-digest", lambda t: t.body() + struct.pack("<II", 0, 2) +
        end(5, 49, t.records), "do not agree with its digest"),
    tok("lengths-n", changed_lengths(8, "I", 65537), "65537 entries"),
    tok("lengths-ascend", other_lengths([(0, 1)]), "length of 0 follows"),
    tok("lengths-ascend", other_lengths([(7, 1), (7, 1)]),
        "a length of 7 follows one of 7"),
    tok("lengths-ascend", other_lengths([(9, 1), (7, 1)]),
        "a length of 7 follows one of 9"),
    tok("lengths-count", other_lengths([(7, 0)]),
        "no sequence has its length of 7"),
    tok("lengths-count", other_lengths([(2**32 - 1, 2**64 - 1)]),
        "more than 64 bits"),
    tok("lengths-sums", longest_missing, ", the stream has 5 and 49"),
    tok("lengths-sums", other_lengths([]), "it counts 0 sequences"),
    tok("lengths-bytes", changed_lengths(-24, "Q", 99),
        "it counts 99 bytes of the stream before it"),
    tok("lengths-checksum", changed_lengths(-16, "Q", 99, False),
        "its checksum does not agree"),
    tok("lengths-size", changed_lengths(-8, "Q", 99), "and not 99"),
    tok("lengths-records", other_lengths([(9, 4), (13, 1)]),
        "it counts 4 sequences of 9 tokens, the stream has", VERIFY),
    tok("lengths-last", lambda t: t.body() + 2 * t.lengths() + t.end(),
        "something other than END follows LENGTHS"),
    tok("lengths-last", lambda t: t.body() + t.lengths() +
        struct.pack("<II", 0, 2) + t.end(),
        "something other than END follows LENGTHS"),
    tok("token-cut", lambda t: t.body() + t.lengths(), "the input ends after"),
    tok("token-cut", lambda t: t.body(), "without END"),
    tok("token-cut", lambda t: t.bytes()[:-1], "the input ends after"),
    tok("token-behind", followed(b"x"), "other than token records"),
    tok("token-joined", joined_tokens(UNLIKE), "vocab_size is 99"),
    tok("token-joined", lambda t: t.bytes() + RAW,
        "other than token records"),
]

HEADER_ROWS = [
    pks("pack-endian", head("endian", 0x04030201), "damaged header"),
    pks("pack-major", head("major", 2), "2.0 is newer than 1.0"),
    pks("pack-header-bytes", head("header_bytes", 4095), "bad header le"),
    pks("pack-record-bytes", head("record_bytes", 192), "records of 192"),
    pks("pack-record-bytes", head("record_bytes", 300), "records of 300"),
    pks("pack-record-bytes", head("record_bytes", 2**28 + 64),
        "records of 268435520"),
    pks("pack-counts", head("n_records", 5), "n_records is 5, but"),
    pks("pack-counts", head("n_sequences", 5), "n_sequences is 5, but"),
    pks("pack-counts", head("n_tokens", 5), "n_tokens is 5, but"),
    pks("pack-counts", head("max_seqlen", 5), "max_seqlen is 5, but",
        python=False),
    pks("pack-counts", head("min_fill", 5), "min_fill is 5, but",
        python=False),
    pks("pack-capacity", head("capacity", 0), "the capacity must be"),
    pks("pack-capacity", head("capacity", 2**24 + 1), "the capacity must"),
    pks("pack-depth", head("depth", 0), "the depth must be"),
    pks("pack-depth", head("depth", 17), "the depth must be"),
    pks("pack-window", head("window", 0), "the window must be"),
    pks("pack-window", head("window", 2**24 + 1), "the window must be"),
    pks("pack-incompat", head("incompat", 2), "features that are unknown"),
    pks("pack-zero", head("zero_122", 1, 5), "unused bytes of the header"),
    pks("pack-zero", head("zero_184", 1, 15), "unused bytes of the head"),
    pks("pack-zero", head("zero_204", 1, 51), "unused bytes of the head"),
    pks("special-vocab", head("special", 100, 1), "the bos id, 100, is"),
    pks("special-width", head("special", 65536, 0), "the pad id, 65536"),
    pks("pack-width", head("token_bytes", 8), "tokens of 8 bytes"),
    pks("pack-labels", head("labels", 3), "label convention"),
    pks("pack-pad", head("pad_id", 99), "is not the pad id"),
    pks("pack-pad", both(head("pad_id", 65536), entry("tokens", "fill",
                                                      65536)),
        "'tokens': bad type or fill"),
    pks("pack-align", head("align", 4), "unused bytes of the header",
        python=False),
    ali("pack-align", head("align", 1), "aligned to 1"),
    ali("pack-align", head("align", 3), "does not divide the capacity"),
    ali("pack-align", head("incompat", 0), "n_fields is 7, not 6"),
    pks("pack-n-fields", head("n_fields", 29), "29 fields"),
    pks("pack-n-fields", head("n_fields", 2), "tokens is missing"),
    pks("pack-dtype", head("dtype", ord(" "), 2039), "dtype does not"),
    pks("pack-checksum", flipped(168), "checksum does not agree"),
    pks("field-behind", lambda p: p.header.__setitem__(2047, 1),
        "unused bytes of the header"),
    pks("field-zero", entry("cu", "zero_36", 1), "unused bytes of the"),
    pks("field-zero", entry("tokens", "zero_48", 1), "unused bytes of"),
    pks("field-source", entry("kind", "source", 1), "same source"),
    pks("field-source", entry("kind", "source", 4), "bad name"),
    pks("field-source", entry("seq_id", "source", 4), "is missing"),
    pks("field-kind", entry("seq_off", "kind", 3), "in the wrong place"),
    pks("field-count", entry("tokens", "count", 15), "wrong place"),
    pks("field-order", both(renamed("seq_off", "seq_len"),
                            renamed("seq_len", "seq_off")),
        "n_fields is 8, not 6"),
    pks("field-order", renamed("seq_len", "seq_lem"), "n_fields is 8"),
    pks("field-fill", entry("cu", "fill", 0), "the fill of field 'cu'"),
    pks("field-fill", entry("seq_id", "fill", 0), "the fill of field"),
    pks("field-fill", entry("seq_off", "fill", 1), "the fill of field"),
    pks("field-fill", entry("seq_len", "fill", 1), "the fill of field"),
    ali("field-fill", entry("seq_tok", "fill", 1), "the fill of field"),
    pks("field-place", moved("kind", 16), "field 'kind' is at byte"),
    pks("field-place", moved("tokens", 16), "field 'tokens' is at byte"),
    pks("field-end", larger,
        "record_bytes is"),
]

RECORD_ROWS = [
    pks("record-gaps", byte(0, 64 + 4 * 6), "the gap behind 'cu'", VERIFY),
    pks("record-gaps", byte(1, -1), "the gap behind 'kind'", VERIFY),
    pks("record-checksum", flipped(4096 + 100), "checksum does not agree"),
    pks("record-magic", record(1, "magic", 0), "no record starts here"),
    pks("record-flags", record(1, "flags", 2), "unknown flags 0x2"),
    pks("record-index", record(1, "index", 2), "its index is 2"),
    pks("watermark-falls", record(2, "watermark", 0),
        "its watermark falls from 1 to 0", JOINER,
        packcat="its watermark falls from 1 to 0"),
    pks("watermark", both(record(0, "watermark", 2),
                          record(1, "watermark", 2)),
        "sequence 1 is below 2, the watermark of record 0", JOINER,
        packcat="sequence 1 came before, or too late"),
    pks("watermark", record(3, "watermark", 6),
        "the watermark of record 3 is 6, but input_sequences is 5",
        VERIFY),
    pks("sum-len-sq", record(0, "sum_len_sq", 60), "sum_len_sq is 60, it "
        "should be 61", VERIFY),
    pks("n-seq", record(0, "n_seq", 0), "0 sequences, the depth is 4"),
    pks("n-seq", record(0, "n_seq", 5), "5 sequences, the depth is 4"),
    pks("n-tok", record(0, "n_tok", 17), "17 tokens, the capacity is 16"),
    pks("n-tok", record(0, "n_tok", 10), "do not rise from 0 to n_tok"),
    pks("max-seqlen", record(0, "max_seqlen", 5), "max_seqlen is 5, it "
        "should be 6"),
    pks("record-zero", record(0, "zero_52", 1, 11), "end of the head",
        VERIFY),
    pks("cu", field(0, "cu", 1, 0), "do not rise from 0 to n_tok"),
    pks("cu", field(0, "cu", 0, 1), "do not rise from 0 to n_tok"),
    pks("cu", field(0, "cu", 12, 2), "do not rise from 0 to n_tok"),
    pks("cu", field(0, "cu", 15, 3), "do not rise from 0 to n_tok"),
    ali("cu-aligned", both(field(0, "cu", 6, 1), field(0, "seq_tok", 6, 0),
                           field(0, "seq_tok", 5, 1)),
        "do not fit the boundaries"),
    ali("cu-aligned", field(0, "cu", 20, 2), "do not rise from 0"),
    ali("seq-tok", field(0, "seq_tok", 0, 0), "lengths in seq_tok"),
    ali("seq-tok", field(0, "seq_tok", 9, 0), "lengths in seq_tok"),
    ali("seq-tok", both(field(0, "seq_tok", 8, 0),
                        record(0, "sum_len_sq", 100)),
        "lengths in seq_tok"),
    pks("seq-id-once", both(field(3, "seq_id", 3, 0),
                            record(2, "watermark", 3)),
        "token 0 of sequence 3 comes again", JOINER,
        packcat="sequence 3 is there twice"),
    pks("seq-id-input", field(3, "seq_id", 9, 0),
        "there is a sequence 9, but input_sequences is 5", VERIFY),
    pks("pieces", field(2, "seq_off", 15, 0),
        "token 15 of sequence 1 overlaps", JOINER,
        packcat="do not make up its 20 tokens"),
    pks("pieces", field(2, "seq_off", 17, 0), "its tokens 16 to 16",
        JOINER, packcat="do not make up its 20 tokens"),
    pks("pieces", both(field(1, "seq_len", 21, 0),
                       field(2, "seq_len", 21, 0)),
        "its tokens from 20 to its end at 21", JOINER,
        packcat="do not make up its 21 tokens"),
    pks("pieces", field(2, "seq_len", 21, 0),
        "sequence 1 has 21 tokens here, 20 in record 1", JOINER,
        packcat="do not make up its 20 tokens"),
    pks("pieces", field(0, "seq_off", 1, 0), "tokens before 1 are in no",
        JOINER, packcat="do not make up"),
    pks("pieces-values", field(2, "source", 1, 0),
        "sequence 1 has other per-sequence values here than in record 1",
        JOINER, packcat="sequence 1 differ in a per-sequence channel"),
    pks("unused", field(0, "seq_id", 0, 2), "unused element 2 of 'seq_id'",
        VERIFY),
    pks("unused", field(0, "seq_len", 1, 3), "unused element 3 of",
        VERIFY),
    pks("unused", field(0, "source", 0, 2), "unused element 2 of 'source'",
        VERIFY),
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
        "sequence 0 comes after 2 sequences or pieces with higher ids; "
        "the window allows 1", AGAINST),
]

END_ROWS = [
    pks("end-head", last("flags", 3), "unknown flags"),
    pks("end-head", last("index", 3), "END's head or unused bytes"),
    pks("end-head", last("watermark", 4), "END's head or unused bytes",
        python=False),
    pks("end-head", last("sum_len_sq", 1), "END's head or unused bytes",
        python=False),
    pks("end-head", last("n_seq", 1), "END's head or unused bytes",
        python=False),
    pks("end-zero", last("zero_180", 1), "END's head or unused bytes"),
    pks("end-packs", both(last("packs", 5), last("index", 5)),
        "END says that packs is 5, but the packs make 4"),
    pks("end-packs", last("sequences", 7), "sequences is 7, but the pac"),
    pks("end-packs", last("tokens", 50), "tokens is 50, but the packs"),
    pks("end-digest", lambda p: p.bytes(bytes(8)), "END's digest"),
    pks("end-books", both(last("input_sequences", 6),
                          last("watermark", 6)), "does not account for",
),
    pks("end-books", last("input_tokens", 50), "does not account for"),
    pks("end-rejected", both(last("rejected_tokens", 2),
                             last("input_tokens", 51)),
        "0 rejected sequences cannot have lost 2 tokens", VERIFY),
    Row("end-rejected", shared_packs, both(last("rejected_tokens", 0),
                                           last("input_tokens", 11)),
        "1 rejected sequences cannot have lost 0 tokens", VERIFY),
    pks("end-truncated", last("truncated_sequences", 1),
        "1 truncated sequences cannot have lost 0 tokens", VERIFY),
    pks("end-split", last("split_sequences", 2),
        "split_sequences is 2, but the records make 1", VERIFY),
    pks("end-split", both(last("extra_pieces", 0),
                          last("input_sequences", 6),
                          last("watermark", 6)),
        "extra_pieces is 0, but the records make 1", VERIFY),
    pks("end-displacement", last("max_displacement", 3),
        "max_displacement is 3, but the packs make 2"),
    pks("end-greatest", last("max_seqlen", 15), "max_seqlen is 15, but"),
    pks("end-greatest", last("max_depth", 3), "max_depth is 3, but"),
    pks("end-greatest", last("min_fill", 2), "min_fill is 2, but the"),
    pks("pack-cut", cut(320), "without END"),
    pks("pack-cut", cut(1), "the stream ends after"),
    pks("pack-behind", followed(b"x"), "other than a pack stream"),
    pks("joined", joined(depth=5), "depth is 5, not 4"),
    pks("joined", joined(pad_id=101), "pad_id is 101, not 100"),
    pks("joined", joined(split=False), "split is 0, not 1"),
    pks("joined", joined(capacity=32), "capacity is 32, not 16"),
    pks("joined", joined(schema=Schema(2, False, (), 100, (
        100, 1, 2, NO_ID, NO_ID, 99), 1)), "records are raw, not framed"),
    pks("joined", joined(schema=UNLIKE), "vocab_size is 99, not 100"),
    pks("joined", lambda p: p.bytes() + split_packs().make_share([0]).bytes(),
        "share is 1, not 0", python=False),
]

OTHER_ROWS = [
    tok("limits", lambda t: t.body() + struct.pack("<I", 2**28),
        "the limit is 268435456"),
    zst("zstd-window", lambda _: frame(b"x" * 9, 28), "zstd"),
    zst("joined-plain", lambda _: split_packs().bytes() +
        b"".join(compressed()[0]) + seek_table(*compressed()),
        "something other than a pack stream follows END"),
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

ROWS = TOKEN_ROWS + HEADER_ROWS + RECORD_ROWS + END_ROWS + OTHER_ROWS
