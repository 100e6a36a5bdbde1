"""curves.py - draws what padded and packed training lost, beside each other.

    curves.py PADDED PACKED MOST FILE

PADDED and PACKED are what `bert-train --stats=json --report=1` printed; FILE
becomes a figure in SVG.  Ends with 1 if in any step the losses differ by
more than MOST.

SPDX-License-Identifier: MIT
"""

import json
import sys

WIDTH, HEIGHT, GAP = 380, 260, 70
COLOURS = {"padded": "#e09f3e", "packed": "#1d4e89"}
THICK = {"padded": 5, "packed": 1.5}


def read(name):
    with open(name) as file:
        return [json.loads(line) for line in file]


def added_up(values):
    total, sums = 0.0, []
    for value in values:
        total += value
        sums.append(total)
    return sums


def smooth(values, n):
    """Means of up to `n` values, the last being that at the place."""
    sums = [0.0] + added_up(values)
    return [(sums[i + 1] - sums[max(0, i + 1 - n)]) / min(i + 1, n)
            for i in range(len(values))]


def ticks(most):
    """Four or so round numbers up to `most`."""
    step = 10.0 ** (len(str(int(most))) - 1) if most >= 1 else most / 4
    while most / step > 6:
        step *= 2
    while most / step < 3:
        step /= 2
    return [step * i for i in range(int(most / step) + 1)]


class Panel:
    """A pair of axes: x from 0, y between two bounds."""

    def __init__(self, at, label, x_most, y_least, y_most):
        self.at, self.label = at, label
        self.x_most, self.y_least, self.y_most = x_most, y_least, y_most

    def place(self, x, y):
        return (self.at + WIDTH * x / self.x_most,
                30 + HEIGHT * (self.y_most - y) /
                (self.y_most - self.y_least))

    def text(self, x, y, words, anchor="middle"):
        return ('<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>'
                % (x, y, anchor, words))

    def axes(self):
        yield ('<rect x="%d" y="30" width="%d" height="%d" fill="none" '
               'stroke="#888"/>' % (self.at, WIDTH, HEIGHT))
        for tick in ticks(self.x_most):
            x, _ = self.place(tick, self.y_least)
            yield self.text(x, HEIGHT + 46, "%g" % tick)
        for i in range(5):
            value = self.y_least + (self.y_most - self.y_least) * i / 4
            _, y = self.place(0, value)
            yield self.text(self.at - 6, y + 4, "%.2f" % value, "end")
        yield self.text(self.at + WIDTH / 2, HEIGHT + 66, self.label)

    def line(self, name, xs, ys):
        points = " ".join("%.1f,%.1f" % self.place(x, y)
                          for x, y in zip(xs, ys))
        return ('<polyline points="%s" fill="none" stroke="%s" '
                'stroke-width="%g"/>' % (points, COLOURS[name], THICK[name]))

    def key(self, names):
        for i, name in enumerate(names):
            y = 48 + 18 * i
            x = self.at + WIDTH - 110
            yield ('<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" '
                   'stroke-width="%g"/>' % (x, y - 4, x + 30, y - 4,
                                            COLOURS[name], THICK[name]))
            yield self.text(x + 38, y, name, "start")


def figure(runs):
    losses = {name: smooth([step["loss"] for step in run],
                           max(1, len(run) // 50))
              for name, run in runs.items()}
    across = {"sequences": {n: [step["sequences"] for step in run]
                            for n, run in runs.items()},
              "seconds": {n: added_up(step["seconds"] for step in run)
                          for n, run in runs.items()}}
    every = [loss for each in losses.values() for loss in each]
    for i, (label, xs) in enumerate(across.items()):
        panel = Panel(60 + i * (WIDTH + GAP), label,
                      max(x[-1] for x in xs.values()), min(every), max(every))
        yield from panel.axes()
        for name, ys in losses.items():
            yield panel.line(name, xs[name], ys)
        yield from panel.key(runs)


def main(padded, packed, most, name):
    runs = {"padded": read(padded), "packed": read(packed)}
    if len(runs["padded"]) != len(runs["packed"]) or not runs["packed"]:
        sys.exit("curves.py: the runs differ in their number of steps")
    apart = 0.0
    for a, b in zip(*runs.values()):
        if a["sequences"] != b["sequences"] or a["tokens"] != b["tokens"]:
            sys.exit("curves.py: step %d differs in its sequences" % a["step"])
        apart = max(apart, abs(a["loss"] - b["loss"]))
    with open(name, "w") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="%d" '
                   'height="%d" font-family="sans-serif" font-size="12">\n'
                   '<rect width="100%%" height="100%%" fill="white"/>\n%s\n'
                   '</svg>\n' % (2 * WIDTH + GAP + 80, HEIGHT + 80,
                                 "\n".join(figure(runs))))
    for kind, run in runs.items():
        print("%s: %d steps, %d sequences, %.1f%% of rows full, %.1f s, "
              "loss %.4f" % (kind, len(run), run[-1]["sequences"],
                             100 * sum(s["tokens"] for s in run) /
                             sum(s["rows"] for s in run),
                             sum(s["seconds"] for s in run),
                             run[-1]["loss"]))
    print("greatest difference of a step's losses: %.2g, to be at most %s"
          % (apart, most))
    return apart > float(most)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
