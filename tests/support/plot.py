"""plot.py - reads pages of --plot, and compares them with what they show.

    plot.py packs PACKS BOUND PAGE...    pages of one pack stream; no packing
                                         of it has fewer packs than BOUND
    plot.py tokens LENGTHS PAGE...       of token records of these lengths
    plot.py plan TABLE PAGE...           of packplan, whose --tsv is TABLE
    plot.py deal PACKS RANKS LIST PAGE...  of packdeal --cost=0:1 for so many
                                         ranks, whose --list is LIST
    plot.py heading TEXT PAGE...         the first heading is TEXT
    plot.py bars COLUMNS CODESET PROG... what PROG prints on such a terminal

Places are turned into values by the ticks of the axes, as a reader does.
Fails with a traceback where page and input differ.

SPDX-License-Identifier: MIT
"""

import fcntl
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import xml.etree.ElementTree as ElementTree
from collections import Counter

from packformat import streams
from packstat import length_of, spans

MAX_BYTES = 300000
COLUMN = 512  # units of a pack in the picture of the first packs
WIDTH, FOOT = 360, 222  # of a panel, and where its axis across is
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


def number(text):
    text = text.rstrip("%").replace(",", "")
    scale = UNITS.get(text[-1], 1)
    return float(text.rstrip("kMG")) * scale


def name(element):
    return element.tag.rpartition("}")[2]


class Axis:
    """What a place means, from ticks: (place, value)."""

    def __init__(self, ticks):
        (a, low), (b, high) = ticks[0], ticks[-1]
        self.log = low > 0 and any(
            abs(low + (high - low) * (at - a) / (b - a) - value) >
            0.02 * (high - low) for at, value in ticks)
        if self.log:
            low, high = math.log(low), math.log(high)
        self.a, self.low, self.slope = a, low, (high - low) / (b - a)
        for at, value in ticks:
            assert math.isclose(self.value(at), value, rel_tol=0.01,
                                abs_tol=1e-9 + abs(high - low) / 500), ticks

    def value(self, at):
        value = self.low + self.slope * (at - self.a)
        return math.exp(value) if self.log else value

    def place(self, value):
        if self.log:
            value = math.log(value)
        return self.a + (value - self.low) / self.slope


class Panel:
    def __init__(self, element):
        self.texts = [(text.get("class", ""), float(text.get("x")),
                       float(text.get("y")), "".join(text.itertext()))
                      for text in element if name(text) == "text"]
        self.title = self.words("t")[0]
        self.note = self.texts[1][3]
        self.bars = [rect for rect in element if name(rect) == "rect" and
                     rect.get("class") == "bar"]
        self.lines = {line.get("class"): [
            tuple(map(float, point.split(",")))
            for point in line.get("points").split()]
            for line in element if name(line) == "polyline"}
        self.dots = [(float(dot.get("cx")), float(dot.get("cy")),
                      "".join(dot.itertext()))
                     for dot in element if name(dot) == "circle"]
        self.dashes = [line for line in element
                       if "dash" in line.get("class", "")]
        self.paths = [path for path in element if name(path) == "path"]
        self.check_room()

    def check_room(self):
        """Texts are in the panel, and none is over another."""
        boxes = []
        for kind, x, y, text in self.texts:
            width = text_width(text) * (13 / 11 if kind == "t" else 1)
            left = x - width * (1 if "e" in kind.split() else
                                0.5 if "m" in kind.split() else 0)
            assert left > -1 and left + width < WIDTH + 4 and 0 < y <= 256, \
                (self.title, text, left, width)
            for other, begin, end, at in boxes:
                assert abs(y - at) > 10 or begin > left + width + 1 or \
                    end < left - 1, (self.title, text, other)
            boxes.append((text, left, left + width, y))

    def check_foot(self):
        """The axis up begins and ends at a number."""
        ticks = [y - 4 for kind, _, y, _ in self.texts if kind == "e y"]
        assert max(ticks) == FOOT and min(ticks) == 46, (self.title, ticks)

    def words(self, style):
        return [text for kind, _, _, text in self.texts if kind == style]

    def up(self, style="e y"):
        # A number stands a little below its tick.
        return Axis([(y - 4, number(text)) for kind, _, y, text in self.texts
                     if kind == style])

    def across(self):
        """None if there are too few ticks to tell."""
        ticks = [(x, number(text)) for kind, x, _, text in self.texts
                 if kind == "m x"]
        return Axis(ticks) if len(ticks) > 1 else None


def text_width(text):
    """About that of a text of 11 pixels, as wide fonts have it."""
    return sum(6.3 if c.isdigit() else 9 if c in "mwMW%" else
               3.2 if c in "ijlt,.;:()' " else 6 for c in text)


def contrast(one, other):
    """As the Web Content Accessibility Guidelines have it."""
    def light(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (0, 2, 4)]
        return sum(weight * (part / 12.92 if part <= 0.03928 else
                             ((part + 0.055) / 1.055) ** 2.4)
                   for weight, part in zip((0.2126, 0.7152, 0.0722), parts))
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def check_colours(data):
    """Text and curves stand out from the ground, light and dark, and bars."""
    light, _, dark = data.partition("prefers-color-scheme:dark")
    for rules, ground in (light, "ffffff"), (dark, "0d1117"):
        found = re.findall(r"(text|\.bar|\.k\d)\{(?:fill|color):#(\w{6})",
                           rules)
        assert len(found) == 12, found
        for name, colour in found:
            assert contrast(colour, ground) >= (3 if name == ".bar" else 4.5), \
                (name, colour, ground)


def sections(page):
    """(heading, panels) of each section of a page, after what all must have."""
    data = open(page, "rb").read()
    assert len(data) < MAX_BYTES, len(data)
    links = set(re.findall(rb"https?:[^\"']*|url\(|@import|<script|src=",
                           data))
    assert links <= {b"http://www.w3.org/2000/svg",
                     b"http://www.w3.org/1999/xhtml"}, links
    # Else a phone would lay it out as for a wide window, and shrink it.
    assert b'name="viewport" content="width=device-width' in data
    check_colours(data.decode())
    root = ElementTree.fromstring(data)
    if page.endswith(".html"):
        body = next(e for e in root if name(e) == "body")
        found = list(zip(list(body)[::2], list(body)[1::2]))
        return [(h.text, [Panel(e) for e in section])
                for h, section in found]
    found = []
    for element in root:
        if name(element) == "text":
            found.append((element.text, []))
        elif name(element) == "g":
            at = int(re.fullmatch(r"translate\(10,(\d+)\)",
                                  element.get("transform"))[1])
            # A list or a picture ends not far above the next one.
            assert not found[-1][1] or 0 < at - foot < 60, (at, foot)
            found[-1][1].append(Panel(element))
            foot = at + max(y for _, _, y, _ in found[-1][1][-1].texts)
    return found


def check_bars(panel, values, powers=False):
    """Counts and heights of bars, and their places unless by powers of two."""
    counts, up = Counter(values), panel.up()
    share, total = panel.up("k1"), 0
    across = None if powers else panel.across()
    found = []
    for bar in panel.bars:
        label = "".join(bar.itertext())
        low, high, count = re.fullmatch(
            r"(\d+)(?:-(\d+))?: ([\d,]+) \w+", label).groups()
        low, high = int(low), int(high or low)
        count = int(count.replace(",", ""))
        assert count == sum(n for value, n in counts.items()
                            if low <= value <= high), label
        x, y, width, height = (float(bar.get(key)) for key in
                               ("x", "y", "width", "height"))
        assert abs(up.place(0) - y - height) < 0.1, label
        assert abs(up.place(count) - y) < 0.1 or height == 0.5, label
        total += count
        found.append((low, high, x, width, total))
    assert total == len(values), (total, len(values))
    for low, high, x, width, total in found:
        if across is not None:
            # Bars of one value stand around it on a linear axis.
            middle = low if low == high and not across.log else None
            at = across.place(middle or max(low, 1e-9))
            assert abs(at - (x + width / 2 if middle else x)) < 1.5, low
        # The line is at the share of all that is not above the bar.
        right = [y for at, y in panel.lines["line k1"]
                 if abs(at - (x + width)) < width * 0.3 + 1]
        assert any(abs(share.value(y) - 100 * total / len(values)) < 0.5
                   for y in right), (low, right)


def binned(fills, step):
    """Items of each bin; a last one of few joins the one before."""
    bins = [fills[i:i + step] for i in range(0, len(fills), step)]
    if len(bins) > 1 and len(bins[-1]) < step // 2:
        bins[-2:] = [bins[-2] + bins[-1]]
    return bins


def check_bins(panel, style, items, get, begin=0):
    """A line in steps, of `get` of as many items each as the note says."""
    step = re.search(r" of ([\d,]+) (?:packs|steps) each", panel.note)
    step = int(step[1].replace(",", "")) if step else 1
    assert len(items) / step <= 256, step
    up, across = panel.up(), panel.across()
    points, bins = panel.lines[style], binned(items, step)
    assert len(points) == 2 * len(bins)
    for i, group in enumerate(bins):
        value = get(group)
        for (x, y), place in zip(points[2 * i:2 * i + 2],
                                 (begin, begin + len(group))):
            assert abs(across.place(place) - x) < 0.2, (begin, x)
            assert abs(up.place(value) - y) < 0.1, (begin, value, y)
        begin += len(group)


def check_efficiency(panel, fills, capacity, bound):
    check_bins(panel, "line k0", fills,
               lambda group: 100 * sum(group) / len(group) / capacity)
    up = panel.up()
    best = 100 * sum(fills) / bound / capacity
    assert panel.title == "%.3f%% full; %.3f%% is possible" % (
        100 * sum(fills) / len(fills) / capacity, best), panel.title
    dash, = panel.dashes
    assert abs(up.value(float(dash.get("y1"))) - best) < \
        abs(up.slope) * 0.06 + 1e-6
    panel.check_foot()


def check_first(panel, stream):
    """Each part of the first packs, in one of four shades; padding is 4."""
    drawn = Counter()
    for path in panel.paths:
        shade = int(path.get("class")[1:])
        for pack, start, height in re.findall(r"M(\d+)\.5 (\d+)v(\d+)",
                                              path.get("d")):
            drawn[int(pack), int(start), int(height), shade] += 1
    n = 1 if panel.title == "The only pack" else \
        int(re.match(r"The (?:first )?(\d+) packs", panel.title)[1])
    assert panel.note.startswith("0 to {:,} tokens".format(stream.capacity))
    wanted = Counter()
    for i, pack in enumerate(stream.packs[:n]):
        end = 0
        for k, (begin, piece) in enumerate(spans(stream, pack)):
            a, b = (int(x * (COLUMN / stream.capacity) + 0.5)
                    for x in (begin, begin + length_of(stream, piece)))
            wanted[i, end, a - end, 4] += 1
            wanted[i, a, b - a, k % 4] += 1
            end = b
        wanted[i, end, COLUMN - end, 4] += 1
    wanted = Counter({part: 1 for part in wanted if part[2] > 0})
    assert drawn == wanted, (drawn - wanted, wanted - drawn)
    total = len(stream.packs)
    assert n == min(total, 200) or sum(wanted.values()) > 13000
    assert panel.title.startswith("The first") == (n < total), panel.title


def check_values(panel, stream):
    tokens, sequences = Counter(), Counter()
    lane = 1 + [name for name, _, _ in stream.schema.channels].index("source")
    for piece in stream.pieces():
        value = int.from_bytes(piece.lanes[lane], "little", signed=True)
        tokens[value] += length_of(stream, piece)
        sequences[value] += 1
    ranked = sorted(tokens, key=lambda value: (-tokens[value], value))
    rows = {}
    for kind, x, y, text in panel.texts[2:]:
        rows.setdefault(y, []).append(text)
    total = sum(tokens.values())

    def row(label, values):
        return [label, "%.2f%%" % (100 * sum(tokens[v] for v in values) /
                                   total),
                "{:,}".format(sum(sequences[v] for v in values))]
    wanted = [row(str(value), [value]) for value in ranked[:12]]
    if ranked[12:]:
        wanted.append(row("others", ranked[12:]))
    assert list(rows.values()) == wanted, (rows, wanted)
    widths = [float(bar.get("width")) for bar in panel.bars]
    for value, width in zip(ranked[:12], widths):
        # To a tenth of a pixel.
        assert abs(tokens[value] / tokens[ranked[0]] -
                   width / widths[0]) < 0.01 or width == 0.5


def check_packs(file, bound, page):
    stream = next(streams(open(file, "rb").read()))
    packs = stream.packs
    fills = [head.n_tok for head in stream.heads]
    (_, panels), = sections(page)
    rows = {}
    for _, _, y, text in panels[0].texts[2:]:
        rows.setdefault(y, []).append(text)
    rows = dict(rows.values())
    assert rows["tokens"] == "{:,}".format(sum(fills))
    assert rows["capacity, tokens"] == "{:,}".format(stream.capacity)
    if not packs:
        assert panels[0].title == "No packs: nothing to draw"
        assert len(panels) == 1
        return
    assert rows["padding, tokens"] == "{:,}".format(
        len(packs) * stream.capacity - sum(fills))
    _, efficiency, lengths, depths, fill, late, first = panels[:7]
    check_efficiency(efficiency, fills, stream.capacity, bound)
    check_bars(lengths, [length_of(stream, piece)
                         for piece in stream.pieces()])
    check_bars(depths, [len(pack) for pack in packs])
    check_bars(fill, [stream.capacity - n for n in fills], powers=True)
    behind, greatest = [], 0
    for pack in packs:
        greatest = max(greatest, *(piece.id for piece in pack))
        behind += [greatest - piece.id for piece in pack]
    check_bars(late, behind, powers=True)
    assert late.title == (
        "Sequences come at most {:,} place{} late".format(
            max(behind), "s" * (max(behind) > 1))
        if max(behind) else "Sequences come in their order"), late.title
    check_first(first, stream)
    if len(panels) > 7:
        check_values(panels[7], stream)


def check_tokens(file, page):
    lengths = [int(line) for line in open(file)]
    (_, panels), = sections(page)
    assert panels[0].title.startswith("{:,} sequence".format(len(lengths)))
    assert len(panels) == (2 if lengths else 1)
    if lengths:
        check_bars(panels[1], lengths)
        median = sorted(lengths)[(len(lengths) - 1) // 2]
        assert panels[1].title == \
            "Median length {:,} token{}, longest {:,}".format(
                median, "s" * (median > 1), max(lengths))


def check_plan(table, page):
    """Each point of the curves, and the bound."""
    with open(table) as file:
        head, *rows = (line.rstrip("\n").split("\t") for line in file)
    rows = [dict(zip(head, row)) for row in rows]
    deep = [row for row in rows
            if row["algorithm"] not in ("none", "sorted")]
    (_, panels), = sections(page)
    for row in deep:
        bound = math.ceil(float(row["bound"]) - 1e-6)
        row["excess"] = 100 * (int(row["packs"]) / bound - 1)
        row["full"] = 100 * float(row["efficiency"])
        row["best"] = row["full"] * int(row["packs"]) / bound
        row["label"] = row["algorithm"] + (
            " without a cap" if row["depth"] == "max" else
            " at depth " + row["depth"])
    depths = sorted({row["depth"] for row in deep},
                    key=lambda depth: math.inf if depth == "max"
                    else int(depth))
    for panel, key, least in (panels[0], "full", 0), \
            (panels[1], "excess", 0.01):
        if key == "full":
            panel.check_foot()
        up, across = panel.up(), panel.across()
        dots = {label.partition(":")[0]: (x, y, label)
                for x, y, label in panel.dots}
        assert sorted(dots) == sorted(row["label"] for row in deep), dots
        for row in deep:
            x, y, label = dots[row["label"]]
            assert label.endswith(": %.4f%%" % row[key]), (row, label)
            assert abs(up.place(max(row[key], least)) - y) < 0.1, (row, y)
            depth = 2 * int(depths[-2]) if row["depth"] == "max" \
                else int(row["depth"])
            assert abs(across.place(depth) - x) < 0.1, (row, x)
    dash, = panels[0].dashes
    bounds = [next(row["best"] for row in deep if row["depth"] == depth)
              for depth in depths]
    up = panels[0].up()
    assert len(bounds) == len(panels[0].lines["line dash k9"])
    for value, (x, y) in zip(bounds, panels[0].lines["line dash k9"]):
        assert abs(up.place(value) - y) < 0.1, (value, y)
    best = max(deep, key=lambda row: row["full"])
    assert panels[0].title == "%s is %.2f%% full" % (best["label"],
                                                     best["full"])


def check_deal(packs, ranks, numbers, page):
    """What the costliest rank of each step is above the mean."""
    stream = next(streams(open(packs, "rb").read()))
    costs = [head.sum_len_sq for head in stream.heads]
    dealt = {}
    for line in open(numbers):
        step, _, *mine = map(int, line.split())
        dealt.setdefault(step, []).append(mine)
    steps = []
    for step, lists in dealt.items():
        inside = sorted(pack for mine in lists for pack in mine)
        steps.append((max(sum(costs[pack] for pack in mine)
                          for mine in lists),
                      max(sum(costs[pack] for pack in inside[rank::ranks])
                          for rank in range(ranks)),
                      sum(costs[pack] for pack in inside) / ranks))
    (_, (balance, cost)), = sections(page)

    def excess(group, which):
        return 100 * (sum(step[which] for step in group) /
                      sum(step[2] for step in group) - 1)
    for which, style in enumerate(("line k0", "line k1")):
        check_bins(balance, style, steps,
                   lambda group: excess(group, which), min(dealt))
    assert balance.title == "Dealt %.2f%% above the mean, undealt %.2f%%" % (
        excess(steps, 0), excess(steps, 1)), balance.title
    balance.check_foot()
    cost.check_foot()
    mean = sum(step[0] for step in steps) / len(steps)
    check_bins(cost, "line k0", steps,
               lambda group: 100 * sum(step[0] for step in group) /
               len(group) / mean, min(dealt))


def check_terminal(columns, codeset, command):
    """Bars as wide as the terminal; the longest fills the line."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ,
                struct.pack("4H", 24, columns, 0, 0))
    locale = "C.UTF-8" if codeset == "UTF-8" else "C"
    p = subprocess.Popen(command, stdout=slave,
                         env=dict(os.environ, LC_ALL=locale))
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 1 << 16):
            shown += part
    except OSError:  # the other side has closed
        pass
    assert p.wait() == 0
    shown = shown.decode().replace("\r", "").splitlines()
    bars = [line.partition("|")[2] for line in shown if "|" in line]
    counts = [int(line.split()[1].replace(",", ""))
              for line in shown if "|" in line]
    full, part = ("\u2588", "\u258f\u258e\u258d\u258c\u258b\u258a\u2589") \
        if codeset == "UTF-8" else ("#", "")
    assert bars and all(re.fullmatch("%s*[%s]?" % (full, part or full), bar)
                        for bar in bars), bars
    assert max(len(line) for line in shown if "|" in line) == columns, \
        shown
    # The last histogram has bars of its own scale: its longest is of its top.
    longest = max(map(len, bars))
    for top in [counts[bars.index(bar)] for bar in bars
                if len(bar) == longest][:1]:
        for count, bar in zip(counts, bars):
            if count == top:
                assert len(bar) == longest


def main(command, *arguments):
    if command == "packs":
        file, bound, *pages = arguments
        for page in pages:
            check_packs(file, int(bound), page)
    elif command == "tokens":
        file, *pages = arguments
        for page in pages:
            check_tokens(file, page)
    elif command == "plan":
        table, *pages = arguments
        for page in pages:
            check_plan(table, page)
    elif command == "deal":
        file, ranks, numbers, *pages = arguments
        for page in pages:
            check_deal(file, int(ranks), numbers, page)
    elif command == "heading":
        text, *pages = arguments
        for page in pages:
            assert sections(page)[0][0] == text, sections(page)[0][0]
    else:
        columns, codeset, *program = arguments
        check_terminal(int(columns), codeset, program)


if __name__ == "__main__":
    main(*sys.argv[1:])
