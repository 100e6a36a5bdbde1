"""adversary.py - searches for streams that the engine packs badly.

    adversary.py [OPTION]... BUILD_DIR

Draws a mixture of one to five distributions, a capacity, a depth and a window,
runs tests/bench/engine of BUILD_DIR on it, and keeps the worst cases: of
random streams those farthest from the bound, of all shapes those that pack
worst compared with best fit decreasing on blocks of the window.  Half of the
cases are variations of kept ones, which they replace if they are worse.
Prints cases worst first, with the options that repeat them in the engine;
after an interrupt, those found until then.

    --engine=FILE    an engine instead of BUILD_DIR's
    --tries=N        (400)
    --keep=N         (10)
    --sequences=N    (60000)
    --windows=N,...  (1024)
    --steps          also keeps cases where twice the depth, window or
                     longest delay costs most; four times the work
    --seed=N         (1) of the search; the result depends on nothing else
    --jobs=N         runs at a time (as many as there are cores)

SPDX-License-Identifier: MIT
"""

import argparse
import concurrent.futures
import copy
import dataclasses
import math
import os
import random

from grid import numbers, run
from measure import run_main

BATCH = 16  # tries between two looks at the results
SHAPES = ("ascending", "descending", "alternating", "drifting", "bursty",
          "turns", "fading")
FAMILIES = ("uniform", "normal", "lognormal", "pareto", "poisson",
            "geometric", "=")


# ------------------------------------------------------------------ cases

@dataclasses.dataclass
class Case:
    capacity: int
    depth: int
    window: int
    shape: str
    run: int
    seed: int
    parts: list  # [weight, family, parameters]
    origin: float  # the same for all variations of a case

    def source(self):
        return "mix:" + "+".join(
            "%.3g*%s%s%s" % (weight, family, "" if family == "=" else ":",
                             ",".join("%.5g" % one for one in parameters))
            for weight, family, parameters in self.parts)

    def command(self, engine, sequences, **changed):
        settings = {"source": self.source(), "capacity": self.capacity,
                    "depth": self.depth, "window": self.window,
                    "shape": self.shape, "run": self.run, "seed": self.seed,
                    "sequences": sequences, **changed}
        return [engine] + ["--%s=%s" % (name.replace("_", "-"), value)
                           for name, value in settings.items()]


def draw_part(rng, capacity, depth):
    """Lengths of which a few, or as many as the depth, fill a pack."""
    middle = capacity / rng.choice((rng.uniform(1, 4), depth,
                                    rng.uniform(1, 2 * depth)))
    middle = min(max(middle, 2), capacity)
    family = rng.choice(FAMILIES)
    parameters = {
        "uniform": lambda: sorted((rng.randint(1, capacity),
                                   rng.randint(1, capacity))),
        "normal": lambda: (middle, middle * 10 ** rng.uniform(-2.5, -0.3)),
        "lognormal": lambda: (math.log(middle), rng.uniform(0.05, 1.5)),
        "pareto": lambda: (middle / 3, rng.uniform(0.7, 3)),
        "poisson": lambda: (middle,),
        "geometric": lambda: (middle,),
        "=": lambda: (round(middle),)}[family]()
    return [10 ** rng.uniform(-1.5, 0), family, list(parameters)]


def draw_case(rng, windows):
    capacity = round(2 ** rng.uniform(7, 13))
    depth = min(round(2 ** rng.uniform(1, 6)), capacity)
    shape = rng.choice(("random", rng.choice(SHAPES)))
    return Case(capacity, depth, rng.choice(windows), shape,
                round(2 ** rng.uniform(5, 13)), rng.randrange(1000),
                [draw_part(rng, capacity, depth)
                 for _ in range(rng.randint(1, 5))], rng.random())


def change(rng, case):
    case = copy.deepcopy(case)
    part = rng.choice(case.parts)
    what = rng.randrange(6)
    if what == 0:
        case.depth = min(max(case.depth + rng.choice((-1, 1)), 1), 64)
    elif what == 1:
        part[0] *= 2 ** rng.uniform(-1.5, 1.5)
    elif what == 2 and len(case.parts) > 1:
        case.parts.remove(part)
    elif what == 3 and len(case.parts) < 5:
        case.parts.append(draw_part(rng, case.capacity, case.depth))
    elif part[1] == "uniform":
        part[2] = sorted((part[2][0], rng.randint(1, case.capacity)))
    else:
        i = rng.randrange(len(part[2]))
        part[2][i] *= 1 + rng.uniform(-0.2, 0.2)
        if part[1] == "=":
            part[2][i] = max(1, round(part[2][i]))
    return case


# ----------------------------------------------------------------- search

class Search:
    def __init__(self, options):
        self.options = options
        self.kept = {"points from the bound": [], "points below blocks": []}
        if options.steps:
            self.kept["points lost by more depth, window or delay"] = []

    def scores(self, case):
        """By list: how bad it is, and the measurements."""
        options = self.options
        command = case.command(options.engine, options.sequences, bfd=1)
        reached, bound, blocks = run(command)[:3]
        text = "%.3f, bound %.3f, blocks %.3f" % (reached, bound, blocks)
        found = [bound - reached if case.shape == "random" else 0,
                 blocks - reached]
        if options.steps:
            more = [("depth", 2 * case.depth), ("window", 2 * case.window),
                    ("max_delay", 4 * case.window)]
            rows = [(run(case.command(options.engine, options.sequences,
                                      bound=0, **{name: value}))[0], name)
                    for name, value in more]
            least, name = min(rows)
            found.append(reached - least)
            text += ", twice the %s %.3f" % (name, least)
        return {name: (score, text) for name, score in zip(self.kept, found)}

    def batch(self, rng):
        options = self.options
        bad = [case for found in self.kept.values() for _, case, _ in found]
        return [change(rng, rng.choice(bad)) if bad and rng.random() < 0.5
                else draw_case(rng, options.windows) for _ in range(BATCH)]

    def keep(self, case, scores):
        for name, (score, text) in scores.items():
            if score < 0.0005:
                continue
            ordered = sorted(self.kept[name] + [(score, case, text)],
                             key=lambda one: -one[0])
            first = {}
            for one in ordered:
                first.setdefault(one[1].origin, one)
            self.kept[name] = list(first.values())[:self.options.keep]

    def report(self):
        for name, found in self.kept.items():
            print("%s:" % name.capitalize())
            for score, case, text in found:
                print("  %8.3f  (%s)\n      %s" % (
                    score, text,
                    " ".join(case.command("", self.options.sequences))))
            print(flush=True)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--engine")
    parser.add_argument("--tries", type=int, default=400)
    parser.add_argument("--keep", type=int, default=10)
    parser.add_argument("--sequences", type=int, default=60000)
    parser.add_argument("--windows", type=numbers, default="1024")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int,
                        default=len(os.sched_getaffinity(0)))
    parser.add_argument("build")
    options = parser.parse_args()
    options.engine = options.engine or os.path.join(options.build,
                                                    "tests/bench/engine")
    return options


def main():
    options = parse()
    os.nice(10)
    rng = random.Random(options.seed)
    search = Search(options)
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    try:
        for _ in range(0, options.tries, BATCH):
            cases = search.batch(rng)
            for case, scores in zip(cases, pool.map(search.scores, cases)):
                search.keep(case, scores)
    finally:
        pool.shutdown(cancel_futures=True)
        search.report()


if __name__ == "__main__":
    run_main(main)
