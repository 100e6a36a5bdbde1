"""plot.py - checks the numbers that packstream.plot draws; for plot.bats.

    plot.py packs JSON      of packstat, with --by
    plot.py tokens JSON     of packstat, of token records
    plot.py plan JSON       of packplan
    plot.py deal JSON       of packdeal --list
    plot.py forms JSON      whose SVG is in JSON.svg: SVG, PNG and HTML
    plot.py sections JSON   of packplan: no sequences, and no curves but flat
    plot.py refused -       other input

The numbers are read from matplotlib's artists.  One process can run several
checks: plot.py packs x.json plan y.json.

SPDX-License-Identifier: MIT
"""

import json
import math
import os
import re
import sys

from packstream import plot, program


class Axes:
    """The bars or steps, and the curves by their names, of a panel."""

    def __init__(self, axes, twin):
        self.title = axes.get_title()
        self.ticks = [label.get_text() for label in axes.get_xticklabels()]
        self.steps = {patch.get_label(): (list(patch.get_data()[0]),
                                          list(patch.get_data()[1]))
                      for patch in axes.patches}
        self.curves = {line.get_label(): dict(line.get_xydata().tolist())
                       for line in (twin or axes).lines}


def drawn(file):
    with open(file, "rb") as lines:
        axes = plot.figure(plot.read(lines, file)).axes
    # The axis of a cumulative share follows that of its bars, untitled.
    followed = axes[1:] + [axes[0]]
    return [Axes(one, None if next_one.get_title() else next_one)
            for one, next_one in zip(axes, followed) if one.get_title()]


def near(found, wanted):
    assert len(found) == len(wanted), (found, wanted)
    for a, b in zip(found, wanted):
        assert math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9), (found, wanted)


def check_bars(panel, unit, counts):
    """Bars have all counts within their edges."""
    heights, edges = panel.steps[unit]
    assert heights == [sum(n for place, n in counts if a < place < b)
                       for a, b in zip(edges, edges[1:])], panel.title
    total = sum(n for _, n in counts)
    assert sum(heights) == total and len(heights) <= plot.MAX_BARS
    share = panel.curves["cumulative, %"]
    near(share, edges[1:])
    near(share.values(), [100 * sum(n for place, n in counts if place < edge) /
                          total for edge in edges[1:]])


def packs(file):
    record = json.load(open(file))
    fill, empty, depths, lengths, channel = drawn(file)
    heights, edges = fill.steps["efficiency"]
    near(heights, [100 * tokens / n / record["capacity"]
                   for n, tokens in record["parts"]])
    near(edges, [sum(n for n, _ in record["parts"][:i])
                 for i in range(len(record["parts"]) + 1)])
    assert fill.title.startswith("%.3f%% full; at least {:,d} packs".format(
        record["lower_bound"]) % (100 * record["efficiency"]))
    check_bars(empty, "packs", [((record["capacity"] - tokens).bit_length(), n)
                                for tokens, n in record["fills"]])
    check_bars(depths, "packs", record["depths"])
    check_bars(lengths, "sequences", record["lengths"])
    tokens = {str(value["value"]): value["tokens"]
              for value in record["by"]["values"]}
    shown = channel.ticks[:plot.MAX_VALUES]
    assert shown == sorted(tokens, key=lambda v: -tokens[v])[:len(shown)]
    found = [tokens.pop(value) for value in shown]
    assert channel.ticks[len(shown):] == ["others"]
    found.append(sum(tokens.values()) + record["by"]["others"]["tokens"])
    near(channel.steps["tokens, %"][0],
         [100 * n / record["tokens"] for n in found])


def tokens(file):
    panel, = drawn(file)
    check_bars(panel, "sequences", json.load(open(file))["lengths"])


def plan(file):
    record = json.load(open(file))
    efficiency, excess = drawn(file)
    deep = [row for row in record["rows"]
            if row["algorithm"] not in ("none", "sorted")]
    assert len(deep) > 3
    unlimited = 2 * max(row["depth"] or 0 for row in deep)
    places = {row["depth"] or unlimited for row in deep}
    for row in record["rows"]:
        full, name = 100 * row["efficiency"], row["algorithm"]
        if row not in deep:
            curve = efficiency.curves[name]
            assert set(curve) == places
            near(curve.values(), [full] * len(places))
            continue
        at = row["depth"] or unlimited
        bound = math.ceil(row["bound"] - 1e-6)
        near([efficiency.curves[name][at], excess.curves[name][at],
              efficiency.curves["bound"][at]],
             [full, max(100 * (row["packs"] / bound - 1), 0.01),
              100 * record["tokens"] / bound / record["capacity"]])
    assert set(efficiency.curves) == {"bound"} | {
        row["algorithm"] for row in record["rows"]}
    assert set(excess.curves) == {row["algorithm"] for row in deep}
    best = max(deep, key=lambda row: row["efficiency"])
    assert efficiency.title.startswith("%s is %.2f%% full" % (
        best["algorithm"], 100 * best["efficiency"])), efficiency.title


def deal(file):
    steps = [json.loads(line) for line in open(file)]
    balance, cost = drawn(file)
    each = -(-len(steps) // 256)
    groups = [steps[i:i + each] for i in range(0, len(steps), each)]

    def greatest(group, key="costs"):
        return sum(max(step[key]) for step in group)

    def mean(group):
        return sum(sum(step["costs"]) / len(step["costs"]) for step in group)

    for name, key in ("dealt", "costs"), ("undealt", "undealt"):
        heights, edges = balance.steps[name]
        near(heights, [100 * (greatest(group, key) / mean(group) - 1)
                       for group in groups])
        near(edges, [group[0]["step"] for group in groups] +
             [steps[-1]["step"] + 1])
    near(cost.steps["cost"][0],
         [100 * greatest(group) / len(group) * len(steps) / greatest(steps)
          for group in groups])
    assert balance.title == "dealt %.2f%% above the mean, undealt %.2f%%" % \
        tuple(100 * (greatest(steps, key) / mean(steps) - 1)
              for key in ("costs", "undealt")), balance.title


def forms(file):
    for form in ".svg", ".png", ".html":
        assert plot.main(["-o", "x" + form, file]) == 0
    svg, png, html = (open("x" + form, "rb").read() for form in plot.FORMS)
    assert svg == open(file + ".svg", "rb").read()
    assert b">a$b&lt;c.tok: 3,000 sequences" in svg
    assert not re.search(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T", svg)
    assert png[1:4] == b"PNG"
    assert html.startswith(b"<!DOCTYPE html>") and svg[-5000:] in html


def sections(file):
    with open(file, "rb") as lines:
        found = plot.read(lines, file)
    assert [len(panels) for _, panels in found] == [0, 1], found
    svg = plot.render(found, ".svg")
    assert b">0 sequences" in svg and b">sorted is" in svg


def refused(_):
    good = {"lengths": [[1, 2]], "sequences": 2, "tokens": 1}
    step = {"step": 0, "costs": [1, 2], "undealt": [1, 2]}
    row = {"algorithm": "ffd", "depth": 1, "packs": 1, "efficiency": 1,
           "bound": 1, "max_depth": 1}
    plan_of = {"rows": [row], "sequences": 1, "tokens": 1, "capacity": 1}
    for record in good, step, plan_of:
        assert plot.read([json.dumps(record).encode()], "good")
    for record in ("x", [1], {}, 1, None, dict(good, lengths=None),
                   dict(good, sequences=1e999), dict(good, tokens=-1),
                   dict(good, lengths=[[0, 2]]), dict(good, lengths=[[2]]),
                   dict(good, lengths=[[1, "x"]]), dict(good, lengths=[]),
                   dict(good, lengths=[[1e20, 1]]), dict(good, capacity=8),
                   dict(step, undealt=[1]), dict(step, costs=[0, 0]),
                   dict(step, costs=[], undealt=[]), dict(step, step="a"),
                   dict(plan_of, capacity=0), dict(plan_of, rows=[{}]),
                   dict(plan_of, rows=[dict(row, efficiency="high")])):
        try:
            found = plot.read([b"[" * 99999 if record is None
                               else json.dumps(record).encode()], "bad")
        except ValueError as problem:
            assert str(problem).startswith("bad: line 1: not what"), problem
        else:
            raise AssertionError((record, found))
    assert plot.main([os.devnull]) == program.DATA


if __name__ == "__main__":
    for check, name in zip(sys.argv[1::2], sys.argv[2::2]):
        globals()[check](name)
