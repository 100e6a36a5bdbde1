"""plot.py - plot the JSON that packstat, packplan and packdeal print:

    packstat --json corpus.pks | python -m packstream.plot -o corpus.svg
    packplan -L 512 -d 1,2,4,8,max --json corpus.hist |
        python -m packstream.plot -o depths.html
    packdeal -n 8 -b 4 --list --json corpus.pks |
        python -m packstream.plot -o steps.png

The extension of the output selects SVG, PNG or HTML (a page with the SVG).
Without -o, SVG is written to standard output.  Each JSON object becomes a
section of the picture; all steps of packdeal become a single section.

Exit status: 0; 1 if input or output fails or matplotlib is missing; 64 for an
invalid command line; 65 for invalid input.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy as np

from packstream.errors import printable
from packstream.program import Parser, check_not_input, run
from packstream.writer import NewFile, is_replaced

PROGRAM = "packstream.plot"
FORMS = (".svg", ".png", ".html")
MAX_SECTIONS = 12
MAX_BARS = 64                   # maximum bars in a histogram
MAX_POINTS = 256                # maximum points in a curve of steps
MAX_VALUES = 12                 # maximum values of a channel
LEAST_EXCESS = 0.01             # start of the logarithmic axis, in percent
FLAT = ("none", "sorted")       # algorithms without a depth
GREY = "#808080"                # legible on white and on black
Record = Dict[str, Any]
Array = np.ndarray
Section = Tuple[str, List["Panel"]]     # a heading and its panels


@dataclass
class Series:
    """A series with a value per point or, if there is one more point than
    values, a value per interval between points."""
    name: str
    x: Array
    y: Array
    style: str = "-"            # "bars", "steps" or a matplotlib style


@dataclass
class Panel:
    title: str
    x_label: str
    y_label: str
    series: List[Series]
    scale: Tuple[str, str] = ("linear", "linear")
    ticks: List[Tuple[float, str]] = field(default_factory=list)


def named(text: Any) -> str:
    """Converts a name from a file to printable ASCII that matplotlib does not
    read as a formula."""
    return printable(text, 40).replace("$", r"\$")


def numbers(values: Any) -> Array:
    array = np.array(values, float)
    if not ((array >= 0) & (array < 2.0 ** 64)).all():
        raise ValueError("a number is negative or too large")
    return array


def pairs(values: Any) -> Tuple[Array, Array]:
    """Returns the columns of a list of [value, count], which must be
    positive."""
    first, second = numbers(values).reshape(-1, 2).T
    if not first.all() or not second.all() or not len(first):
        raise ValueError("a histogram is empty or contains 0")
    return first, second


# ---- packstat

def histogram(values: Array, counts: Array, edges: Array, places: Array,
              unit: str) -> List[Series]:
    """Returns bars between edges, drawn at `places`, and the cumulative
    share."""
    heights, _ = np.histogram(values, edges, weights=counts)
    return [Series(unit, places, heights, "bars"),
            Series("cumulative, %", places[1:],
                   100 * heights.cumsum() / counts.sum())]


def count_panel(found: Any, x_label: str, unit: str) -> Panel:
    """Returns a histogram, with a logarithmic axis if the median is far below
    the maximum."""
    values, counts = pairs(found)
    most = values.max()
    median = values[np.searchsorted(counts.cumsum(), counts.sum() / 2)]
    far = most > MAX_BARS and median < most / 8
    edges = np.unique(np.ceil((np.geomspace if far else np.linspace)(
        1, most + 1, int(min(most, MAX_BARS)) + 1).round(6)))
    places = edges - 0.5
    return Panel(f"{x_label}: median {median:,.0f}, at most {most:,.0f}",
                 x_label, unit,
                 histogram(values, counts, edges, places, unit),
                 ("log" if far else "linear", "linear"),
                 [(n, f"{n:d}") for n in range(1, int(most) + 1)]
                 if most <= 12 else [])


def padding_panel(fills: Any, capacity: float) -> Panel:
    """Returns a histogram of empty slots: 0, 1, 2 to 3, 4 to 7 and so on."""
    tokens, packs = pairs(fills)
    empty = capacity - tokens
    if (empty < 0).any():
        raise ValueError("a pack has more tokens than its capacity")
    full = 100 * packs[empty == 0].sum() / packs.sum()
    powers = np.arange(int(empty.max()).bit_length() + 1)
    return Panel(f"{full:.1f}% of packs are full; at most {empty.max():,.0f} "
                 "slots empty", "empty slots, up to", "packs",
                 histogram(empty, packs, np.append(0, 2.0 ** powers),
                           np.append(powers, len(powers)) - 0.5, "packs"),
                 ticks=[(i, f"{2 ** i - 1:,d}") for i in powers.tolist()])


def efficiency_panel(record: Record, capacity: float) -> Panel:
    packs, tokens = pairs(record["parts"])
    full, least = numbers([record["efficiency"], record["lower_bound"]])
    return Panel(f"{100 * full:.3f}% full; at least {least:,.0f} packs needed",
                 "packs, in order", "efficiency, %",
                 [Series("efficiency", np.append(0, packs.cumsum()),
                         100 * tokens / packs / capacity, "steps")])


def channel_panel(by: Record) -> Panel:
    """Returns a panel of the values with the most tokens."""
    ranked = sorted(((int(v["tokens"]), named(v["value"]))
                     for v in by["values"]), reverse=True)
    rest = sum(n for n, _ in ranked[MAX_VALUES:]) + int(by["others"]["tokens"])
    ranked = ranked[:MAX_VALUES] + ([(rest, "others")] if rest else [])
    tokens = numbers([n for n, _ in ranked])
    return Panel("tokens by value of a channel", named(by["channel"]),
                 "tokens, %",
                 [Series("tokens, %", np.arange(len(ranked) + 1) - 0.5,
                         100 * tokens / tokens.sum(), "bars")],
                 ticks=[(i, name) for i, (_, name) in enumerate(ranked)])


def packstat_section(record: Record) -> Section:
    if record["lengths"] is None:
        raise ValueError("packstat --quick reads no packs")
    sequences, tokens = numbers([record["sequences"], record["tokens"]])
    heading = (f"{named(record.get('file', 'stdin'))}: "
               f"{sequences:,.0f} sequences, {tokens:,.0f} tokens")
    panels: List[Panel] = []
    if "capacity" in record:
        packs, capacity = numbers([record["packs"], record["capacity"]])
        heading += f" in {packs:,.0f} packs of {capacity:,.0f}"
        if packs:
            panels = [efficiency_panel(record, capacity),
                      padding_panel(record["fills"], capacity),
                      count_panel(record["depths"], "sequences in a pack",
                                  "packs")]
    if sequences:
        panels.append(count_panel(record["lengths"], "tokens in a sequence",
                                  "sequences"))
        if "by" in record:
            panels.append(channel_panel(record["by"]))
    return (heading, panels)


# ---- packplan

def packplan_section(record: Record) -> Section:
    sequences, tokens, capacity = numbers(
        [record["sequences"], record["tokens"], record["capacity"]])
    rows = record["rows"] if sequences else []
    limited = [row["depth"] for row in rows if row["depth"] is not None]
    unlimited = 2 * max(limited, default=1)

    def place(row: Record) -> float:
        return unlimited if row["depth"] is None else row["depth"]

    deep = [row for row in rows if row["algorithm"] not in FLAT]
    places = sorted({place(row) for row in deep}) or [1]
    full, excess, bound = [], [], []
    for name in dict.fromkeys(row["algorithm"] for row in rows):
        mine = {place(row): row for row in rows if row["algorithm"] == name}
        if name in FLAT:
            mine = dict.fromkeys(places, mine.popitem()[1])
        x = numbers(sorted(mine))
        style = ".:" if name in FLAT else ".-"
        found = [mine[at] for at in x]
        full.append(Series(named(name), x, 100 * numbers(
            [row["efficiency"] for row in found]), style))
        if name in FLAT or found[0]["bound"] is None:
            continue
        least = np.maximum(
            np.ceil(numbers([row["bound"] for row in found]) - 1e-6), 1)
        above = 100 * (numbers([row["packs"] for row in found]) / least - 1)
        excess.append(Series(named(name), x,
                             np.maximum(above, LEAST_EXCESS), style))
        bound = [Series("bound", x, 100 * tokens / least / capacity, "--")]
    panels = []
    ticks = [(at, "max" if at == unlimited else f"{at:d}") for at in places]
    if full:
        best = max(deep or rows, key=lambda row: row["efficiency"])
        title = (f"{named(best['algorithm'])} is "
                 f"{100 * best['efficiency']:.2f}% full, with up to "
                 f"{best['max_depth']:d} sequences in a pack")
        panels.append(Panel(title, "depth", "efficiency, %", full + bound,
                            ("log", "linear"), ticks))
    if excess:
        panels.append(Panel(f"at the foot: {LEAST_EXCESS}% or less",
                            "depth", "packs above the bound, %", excess,
                            ("log", "log"), ticks))
    return (f"{sequences:,.0f} sequences, {tokens:,.0f} tokens in packs of "
            f"{capacity:,.0f}", panels)


# ---- packdeal

def packdeal_section(records: List[Record]) -> Section:
    steps, ranks = len(records), len(records[0]["costs"])
    costs = numbers([record["costs"] for record in records])
    undealt = numbers([record["undealt"] for record in records])
    if costs.ndim != 2 or costs.shape != undealt.shape:
        raise ValueError("steps are not of the same ranks")
    each = -(-steps // MAX_POINTS)
    starts = np.arange(0, steps, each)
    x = numbers(records[0]["step"]) + np.append(starts, steps)
    label = "steps" if each == 1 else f"steps, each point of {each}"
    mean, greatest = costs.mean(axis=1), costs.max(axis=1)
    in_order = undealt.max(axis=1)

    def above_mean(of: Array) -> Array:
        sums, means = (np.add.reduceat(a, starts) for a in (of, mean))
        return 100 * (sums / means - 1)

    cost = 100 * np.add.reduceat(greatest, starts) / np.diff(x) / \
        greatest.mean()
    dealt, otherwise = (100 * (of.sum() / mean.sum() - 1)
                        for of in (greatest, in_order))
    return (f"{steps:,d} steps of {ranks:,d} ranks", [
        Panel(f"dealt {dealt:.2f}% above the mean, undealt {otherwise:.2f}%",
              label, "costliest rank above the mean, %",
              [Series("undealt", x, above_mean(in_order), "steps"),
               Series("dealt", x, above_mean(greatest), "steps")]),
        Panel(f"steps cost {cost.min():.1f}% to {cost.max():.1f}% of the mean",
              label, "costliest rank, % of the mean step",
              [Series("cost", x, cost, "steps")])])


# ---- Input and output

def read(lines: Iterable[bytes], name: str) -> List[Section]:
    """Returns the sections of a file.  Raises ValueError for other
    contents."""
    found: List[Section] = []
    steps: List[Record] = []
    line = 0
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            for line, text in enumerate(lines, 1):
                record = json.loads(text)
                if "step" in record:
                    steps.append(record)
                elif "rows" in record:
                    found.append(packplan_section(record))
                else:
                    found.append(packstat_section(record))
            if steps:
                found.append(packdeal_section(steps))
    except (ArithmeticError, AttributeError, LookupError, RecursionError,
            TypeError, ValueError) as problem:
        raise ValueError(f"{name}: line {line}: not what packstat --json, "
                         "packplan --json or packdeal --list --json prints: "
                         f"{type(problem).__name__}: {problem}") from None
    if not found:
        raise ValueError(f"{name}: is empty: nothing to draw")
    return found


def draw(axes: Any, panel: Panel) -> None:
    curves = axes
    for i, series in enumerate(panel.series):
        style = {"label": series.name, "color": f"C{i}"}
        if series.style == "bars":
            axes.stairs(series.y, series.x, fill=True, alpha=0.7, **style)
        elif series.style == "steps":
            axes.stairs(series.y, series.x, baseline=None, **style)
        else:
            if panel.series[0].style == "bars":     # a share, in percent
                curves = axes.twinx()
                curves.set_ylim(0, 105)
            curves.plot(series.x, series.y, series.style, **style)
    axes.set_title(panel.title, fontsize="medium")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.set_xscale(panel.scale[0])
    axes.set_yscale(panel.scale[1])
    axes.grid(alpha=0.3)
    if panel.ticks:
        axes.set_xticks([at for at, _ in panel.ticks],
                        [label for _, label in panel.ticks], fontsize="small",
                        rotation=45 if len(panel.ticks) > 10 else 0)
        axes.set_xticks([], minor=True)
    if len(panel.series) > 1:
        curves.legend(fontsize="small", framealpha=0)


def figure(sections: List[Section]) -> Any:
    """Draws rows of two panels, in matplotlib's current style."""
    from matplotlib.figure import Figure

    rows = [max(1, -(-len(panels) // 2)) for _, panels in sections]
    whole = Figure(figsize=(11, 3.6 * sum(rows)), layout="constrained")
    parts = whole.subfigures(len(rows), 1, squeeze=False, height_ratios=rows)
    for (heading, panels), n, (part,) in zip(sections, rows, parts):
        part.suptitle(heading)
        for place, panel in enumerate(panels, 1):
            draw(part.add_subplot(n, 2, place), panel)
    return whole


def render(sections: List[Section], form: str) -> bytes:
    import matplotlib

    colours = ("text.color", "axes.labelcolor", "axes.edgecolor",
               "xtick.color", "ytick.color")
    style = {**dict.fromkeys(colours, GREY), "svg.fonttype": "none",
             "svg.hashsalt": PROGRAM}
    out = io.BytesIO()
    with matplotlib.rc_context(style):      # type: ignore[arg-type]
        figure(sections).savefig(
            out, format="png" if form == ".png" else "svg", transparent=True,
            metadata=None if form == ".png" else {"Date": None})
    if form != ".html":
        return out.getvalue()
    svg = out.getvalue()
    return (b'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8">'
            b'<meta name="color-scheme" content="light dark">'
            b"<title>packstream</title>\n" + svg[svg.index(b"<svg"):] +
            b"</html>\n")


def write(picture: bytes, output: str) -> None:
    """Writes the output.  An existing file is unchanged until the new file is
    complete."""
    if not is_replaced(output):
        with open(output, "wb") as file:
            file.write(picture)
        return
    new = NewFile(output)
    try:
        with open(new.fd, "wb", closefd=False) as file:
            file.write(picture)
    except OSError:
        new.drop()
        raise
    new.publish()


def form_of(output: Optional[str]) -> str:
    """Returns the extension of the output if it is one of FORMS, otherwise an
    empty string."""
    return next((form for form in FORMS
                 if (output or ".svg").endswith(form)), "")


def parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = Parser(prog=PROGRAM, allow_abbrev=False, description="Plot the "
                    "output of packstat --json, packplan --json and packdeal "
                    "--list --json.")
    parser.add_argument("files", nargs="*", metavar="FILE", default=["-"])
    parser.add_argument("-o", "--output", metavar="FILE", help="a name that "
                        "ends in .svg, .png or .html (SVG to standard output)")
    asked = parser.parse_args(arguments)
    if not form_of(asked.output):
        parser.error(f"-o {asked.output}: must end in .svg, .png or .html")
    return asked


def draw_all(asked: argparse.Namespace) -> None:
    sections: List[Section] = []
    for name in asked.files:
        if name == "-":
            sections += read(sys.stdin.buffer, "stdin")
        else:
            with open(name, "rb") as file:
                sections += read(file, name)
    if len(sections) > MAX_SECTIONS:
        raise ValueError(f"{len(sections)} objects, and at most "
                         f"{MAX_SECTIONS} fit in a picture: give fewer files")
    picture = render(sections, form_of(asked.output))
    if asked.output is None:
        sys.stdout.buffer.write(picture)
        sys.stdout.buffer.flush()
    else:
        check_not_input([name for name in asked.files if name != "-"],
                        asked.output)
        write(picture, asked.output)


def main(arguments: Optional[List[str]] = None) -> int:
    return run(PROGRAM, parse, draw_all, arguments)


if __name__ == "__main__":
    sys.exit(main())
