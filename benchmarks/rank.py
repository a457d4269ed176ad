"""How often what ``fairbench rank`` says is right, over a hundred generated benchmarks.

``python -m benchmarks.rank`` prints a line for each population and what all of them come to.
Options are written name=value: ``populations=100``, ``seconds=1200`` (of CPU, shared between the
populations) and ``write=docs/coverage.md``, the page whose tables on rankings are written.

The truth of each population is known: methods that are alike, tied at the top, near or far apart;
tasks with normal, heavy and skewed effects, in families or not, measured in splits whose noise goes
together; holes at random, or methods that ran on half of the tasks; questions that are right or
wrong, of one source or of many.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.measure import ROOT, command, exact_interval, fill, markdown
from fairbench.core.arrays import Floats
from fairbench.core.text import counted
from fairbench_rank.new_tasks import MOST_OF_FEW, on_new_task, units_needed, usual_spread
from fairbench_rank.ranking import means_of
from fairbench_rank.sign_flips import FEWEST, paired_units, simultaneous, unseen_share

Codes = NDArray[np.intp]
Drawn = tuple[Floats, Codes, Codes]
PAGE = ROOT / "docs" / "coverage.md"
EPSILON = 0.01
BINS = 10
FLIPS = 499
TARGET = 0.94
ENOUGH = 80  # benchmarks of a population that may be named as the worst
_NEW_TASKS = 300
_SCALE = 0.02  # of what a method has on a task of its own
_FAILURE = 25  # what a failure costs, in this scale


_TRUTHS = {
    "alike": "equally good",
    "tied": "several tied for best",
    "near": "close together",
    "far": "far apart",
}
_TAILS = {
    "normal": "normal effects",
    "t3": "t(3) effects",
    "t2": "t(2) effects",
    "lognormal": "lognormal effects",
    "one skewed": "skewed effects of every second method",
}
_HOLES = {
    "none": "no scores missing",
    "random": "a tenth of scores missing",
    "half": "one method on half of the tasks",
}


@dataclass(frozen=True)
class Population:
    """What a benchmark is drawn from.

    Attributes
    ----------
    truth : ``alike``, ``tied`` at the top, ``near`` or ``far``.
    tails : of the effects of tasks. holes : ``none``, ``random`` or ``half``.
    questions : of each task; 0 where scores are real numbers. noise : of splits over effects.
    failures : on which share of tasks the first method fails badly, and the last on twice as many.
    """

    methods: int
    tasks: int
    splits: int = 1
    family: int = 1
    truth: str = "near"
    tails: str = "normal"
    holes: str = "none"
    questions: int = 0
    noise: float = 0.5
    failures: float = 0.0

    @property
    def name(self) -> str:
        """What it is, in a line."""
        what = self.questions or self.splits, "question" if self.questions else "split"
        families = "1 family" if self.units == 1 else f"{self.units} families"
        fail = f", failures from {100 * self.failures:.1f} % on" if self.failures else ""
        return (
            f"{self.methods} methods ({_TRUTHS[self.truth]}), {counted(self.tasks, 'task')} in "
            f"{families}, {counted(*what)}, {_TAILS[self.tails]}{fail}, {_HOLES[self.holes]}"
        )

    @property
    def units(self) -> int:
        """How many families there are."""
        return -(-self.tasks // self.family)

    @property
    def unit(self) -> Codes:
        """The family of each task."""
        return np.arange(self.tasks) // self.family

    def true(self, random: np.random.Generator) -> Floats:
        """Return true means of the methods, other ones in every benchmark, (M,), best first."""
        spread = {"alike": 0.0, "tied": 0.03, "near": 0.015, "far": 0.06}[self.truth]
        spread *= np.exp(0.7 * random.standard_normal())
        place = np.sort(random.random(self.methods))[::-1]
        if self.truth == "tied":
            place[: max(self.methods // 2, 2)] = place[0]
        return np.asarray(np.minimum(0.7 + spread * place, 0.97))


def _one_skewed(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Every second method loses much now and then; the others are normal."""
    effects = 0.5 * random.standard_normal(shape)
    effects[1::2] = 1 - random.standard_exponential(effects[1::2].shape)
    return effects


EFFECTS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "t3": lambda random, shape: random.standard_t(3, size=shape),
    "t2": lambda random, shape: random.standard_t(2, size=shape),
    "lognormal": lambda random, shape: 1.65 - np.exp(random.standard_normal(shape)),
    "one skewed": _one_skewed,
}


def draw(population: Population, true: Floats, random: np.random.Generator) -> Drawn:
    """Return one benchmark: values (M, C), the task of each cell and the unit of each task."""
    tasks, unit = population.tasks, population.unit
    if population.questions:
        values, group, unit = _draw_answers(population, true, random)
    else:
        effects = task_effects(population, true, random)
        shared = 0.3**0.5 * random.standard_normal(effects.shape)
        own = 0.7**0.5 * random.standard_normal((*effects.shape, population.splits))
        noise = population.noise * _SCALE * (shared[:, :, None] + own)
        values = (effects[:, :, None] + noise)[:, :tasks].reshape(len(true), -1)
        group = np.repeat(np.arange(tasks), population.splits)
    if population.holes == "random":
        missing = random.random((len(values), group.max() + 1)) < 0.1
        values[missing[:, group]] = np.nan
    elif population.holes == "half":
        values[1, group >= (group.max() + 1) // 2] = np.nan
    return values, group, unit


def task_effects(population: Population, true: Floats, random: np.random.Generator) -> Floats:
    """Return what methods truly are on the tasks of whole families, (M, K)."""
    methods, units, family = len(true), population.units, population.family
    kind = EFFECTS[population.tails]
    share = 0.6 if family > 1 else 0.0
    common = kind(random, (methods, units)).repeat(family, axis=1)
    own = kind(random, (methods, units * family))
    difficulty = 0.1 * random.standard_normal(units * family)
    effects = np.sqrt(share) * common + np.sqrt(1 - share) * own
    if population.failures:
        often = population.failures * np.linspace(1, 2, methods)[:, None]
        effects -= _FAILURE * ((random.random(effects.shape) < often) - often)
    return np.asarray(true[:, None] + difficulty + _SCALE * effects)


def _draw_answers(population: Population, true: Floats, random: np.random.Generator) -> Drawn:
    """Return right and wrong answers; of one task, questions are the unit."""
    tasks, several = population.tasks, population.tasks > 1
    group = np.repeat(np.arange(tasks), population.questions)
    hard = random.standard_normal(len(group))
    own = 0.4 * random.standard_normal((len(true), tasks)) * several
    cut = special.ndtri(true)[:, None] * np.sqrt(1 + 1 + 0.16 * several) + own[:, group] + hard
    values = (random.standard_normal(cut.shape) < cut).astype(float)
    if several:
        return values, group, np.arange(tasks)
    cells = np.arange(len(group))
    return values, cells, cells


@dataclass
class Tally:
    """What was counted of a population.

    Attributes
    ----------
    held : how often each of `CLAIMS` held in `runs` benchmarks.
    tenths : of each benchmark, (3, BINS): sums over its methods of the probabilities on new tasks
        that are said, of what came true, and their number; methods share a weight of 1.
    capped : what came true of those said to be so much or more, and their number.
    plans : planned over truly needed units of the first pair.
    """

    runs: int = 0
    held: Counter[str] = field(default_factory=Counter)
    tenths: list[Floats] = field(default_factory=list)
    capped: Floats = field(default_factory=lambda: np.zeros(2))
    plans: list[float] = field(default_factory=list)

    def add(self, population: Population, random: np.random.Generator) -> None:
        """Draw a benchmark, and count what is right of it."""
        true = population.true(random)
        values, group, unit = draw(population, true, random)
        questions = population.questions > 0 and population.tasks == 1
        paired = paired_units(values, group, unit, binary=questions, generator=random)
        held = simultaneous(paired, generator=random, flips=FLIPS)
        gap = true[paired.first] - true[paired.second]
        inside = (held.limits.lower <= gap + 1e-9) & (gap <= held.limits.upper + 1e-9)
        claims = {
            "ranks": not (held.better & (true[:, None] <= true + 1e-12)).any(),
            "intervals": bool((inside | (paired.sizes < FEWEST)).all()) or questions,
            "best": bool(held.may_be_best[true == true.max()].all()),
        }
        self.runs += 1
        self.held.update(claims | {"page": all(claims.values())})
        if questions:
            return
        new = on_new_task(
            means_of(values, group, len(unit)), unit, epsilon=EPSILON, generator=random
        )
        # Tasks of new families, measured as those of the benchmark are.
        more = replace(population, tasks=_NEW_TASKS, family=1, holes="none")
        values, group, unit = draw(more, true, random)
        fresh = means_of(values, group, len(unit))
        came = (fresh >= fresh.max(axis=0) - EPSILON).mean(axis=1)
        bins = np.minimum((new.near * BINS).astype(int), BINS - 1)
        share = np.full(len(came), 1 / len(came))
        capped = new.few & (new.near >= MOST_OF_FEW)  # which is said to be that or more
        self.capped += np.array([(came * share)[capped].sum(), share[capped].sum()])
        share[capped] = 0.0
        sums = [np.bincount(bins, each * share, BINS) for each in (new.near, came, 1.0)]
        self.tenths.append(np.stack(sums))
        spread = float(usual_spread(paired.errors[0], paired.sizes[0]))
        if population.units >= 7 and np.isfinite(spread) and population.tails != "t2":
            # Of scores, means do not matter.
            means = (float(true[0]), float(true[1])) if population.questions else (0.0, 0.0)
            needs = np.array([spread, _true_spread(population, means)])
            planned, needed = units_needed(needs, EPSILON, held.critical)
            self.plans.append(float(planned / needed))


Tallies = Sequence[tuple[Population, Tally]]


@cache
def _true_spread(population: Population, true: tuple[float, float]) -> float:
    """Return the standard deviation of a unit's difference of two methods."""
    random, family = np.random.default_rng(0), population.family
    size = min(4000, 1_000_000 // max(population.questions, population.splits * family))
    more = replace(population, methods=2, tasks=size * family, holes="none")
    values, group, unit = draw(more, np.array(true), random)
    paired = paired_units(values, group, unit, generator=random)
    return float(paired.errors[0] * paired.sizes[0] ** 0.5)


def populations(count: int = 100, seed: int = 0) -> list[Population]:
    """Return so many populations, a third of them of questions."""
    random = np.random.default_rng(seed)

    def pick(*values: object) -> object:
        return values[int(random.integers(len(values)))]

    result: list[Population] = []
    while len(result) < count:
        truth, holes = pick("alike", "tied", "near", "far"), pick("none", "none", "random", "half")
        if len(result) % 3 == 2:
            tasks = int(pick(1, 1, 8, 30))  # type: ignore[call-overload]
            size = int(pick(100, 500, 2000, 20_000))  # type: ignore[call-overload]
            size = size if tasks == 1 else max(min(size, 2000) // tasks, 10)
            options = {"tasks": tasks, "questions": size, "methods": pick(2, 3, 5, 10, 50)}
        else:
            options = {
                "methods": pick(2, 3, 5, 10, 20, 50, 200),
                "tasks": pick(3, 5, 8, 10, 20, 40, 100, 300),
                "splits": pick(1, 3, 10, 50),
                "family": pick(1, 1, 2, 4),
                "tails": pick("normal", "t3", "t2", "lognormal", "one skewed"),
                "noise": pick(0.2, 1.0),
            }
        population = Population(truth=truth, holes=holes, **options)  # type: ignore[arg-type]
        size = population.methods * population.tasks * max(population.splits, population.questions)
        if size <= 1_500_000 and population.units > 1 or population.questions:
            result.append(population)
    return result


# Methods that are all alike, and such as fail on the fewest tasks that statements are about.
FIXED = (
    *(Population(methods, tasks, truth="alike") for methods in (6, 12, 20) for tasks in (20, 100)),
    *(
        replace(
            Population(*of, truth="alike", noise=0.2), failures=unseen_share(of[1], of[0], 0.05)
        )
        for of in ((3, 10), (3, 20), (3, 50), (3, 200), (6, 20), (20, 40))
    ),
)


def fails(held: int, runs: int) -> bool:
    """Say whether what is said holds in surely too few benchmarks of a population."""
    return exact_interval(held, runs, 0.999)[1] < TARGET


def measure(count: int = 100, seconds: float = 1200.0) -> Tallies:
    """Return what was counted of so many populations, and print a line for each.

    Benchmarks are drawn for a share of the seconds of CPU, four at least and 400 at most.
    """
    tallies: list[tuple[Population, Tally]] = []
    every = [*populations(count), *FIXED]
    for number, population in enumerate(every):
        random, tally = np.random.default_rng(number), Tally()
        end = time.process_time() + seconds / len(every)
        while tally.runs < 4 or (time.process_time() < end and tally.runs < 400):
            tally.add(population, random)
        tallies.append((population, tally))
        print(f"{number}, {population.name}: done", file=sys.stderr, flush=True)
    return tallies


CLAIMS = {
    "ranks": "ranks",
    "intervals": "all intervals of differences",
    "best": "which methods may be the best",
    "page": "all three at once",
}


def parts(tallies: Tallies) -> dict[str, str]:
    """Return what the page says of all populations: claims, new tasks, plans, and in short."""
    claims, tenths, plans = _claims(tallies), _tenths(tallies), _plans(tallies)
    return {
        "rankings in short": markdown([SHORT, *_in_short(claims, tenths, plans)], ["---"] * 6),
        "claims of rankings": markdown(claims),
        "new tasks": f"{markdown(tenths)}\n\n{_capped(tallies)}",
        "plans": markdown(plans),
    }


SHORT = ("claims", "simulated in", "promised", "measured", "lowest", "where")


def _in_short(
    claims: Sequence[Sequence[str]], tenths: Sequence[Sequence[str]], plans: Sequence[Sequence[str]]
) -> Iterator[Sequence[str]]:
    """Yield what holds at once, and what is said of new tasks, from the tables of them."""
    _, settings, runs, share, _, failed, lowest = claims[-1]
    yield (
        "Ranks, all differences and which methods may be the best, together (`fairbench rank`)",
        f"{settings} settings, {runs} benchmarks",
        "95 % of benchmarks",
        f"{share} of benchmarks; {failed} setting{'' if failed in ('no', '1') else 's'} failed",
        *lowest.split(": ", 1),
    )
    off = [abs(float(row[1])) for row in tenths[1:]]
    stated, points, error, of_all = tenths[1 + int(np.argmax(off))]
    planned, right, *_ = plans[1]
    yield (
        "The probability of being near the best on a new task; plans of how many tasks are needed",
        f"{runs} benchmarks; {planned} settings",
        "probabilities are right within 3 points, plans within 20 %",
        f"{sum(each <= 3 for each in off)} of {len(off)} ranges of probabilities; plans in {right} "
        "of settings",
        f"{points} points too high (standard error {error})",
        f"stated probabilities of {stated}, {of_all} of all",
    )


def _claims(tallies: Tallies) -> list[list[str]]:
    """Return how often each claim holds, over benchmarks and over populations."""
    header = ["claim", "settings", "benchmarks", "holds in", "mean over settings"]
    rows = [[*header, "settings that failed", "lowest"]]
    sizes = np.array([tally.runs for _, tally in tallies])
    runs, enough = sizes.sum(), sizes >= ENOUGH
    for name, claim in CLAIMS.items():
        held = np.array([tally.held[name] for _, tally in tallies])
        failed = sum(map(fails, held, sizes))
        worst = int(np.argmin(np.where(enough, held / sizes, 1.0))) if any(enough) else 0
        rows.append([
            claim, f"{len(tallies)}", f"{runs:,}", f"{100 * held.sum() / runs:.1f} %",
            f"{100 * np.mean(held / sizes):.1f} %", f"{failed or 'no'}",
            f"{100 * held[worst] / sizes[worst]:.1f} % of {sizes[worst]}: {tallies[worst][0].name}",
        ])  # fmt: skip
    return rows


def calibration(tallies: Sequence[Tally]) -> tuple[Floats, Floats, Floats]:
    """Return by how much each tenth of probabilities is too high, its standard error and share.

    Populations count alike, and are given; benchmarks of one are drawn at random. (BINS,) each, NaN
    of a tenth in which nothing was said.
    """
    kept = [np.stack(tally.tenths) for tally in tallies if tally.tenths]
    said, came, weight = np.sum([each.mean(axis=0) for each in kept], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        off = (said - came) / weight
        variance = np.zeros(BINS)
        for each in kept:
            residual = each[:, 0] - each[:, 1] - np.where(each[:, 2] > 0, off, 0) * each[:, 2]
            if len(each) > 1:
                variance += residual.var(axis=0, ddof=1) / len(each)
        return off, np.sqrt(variance) / weight, weight / weight.sum()


def _tenths(tallies: Tallies) -> list[list[str]]:
    off, error, share = calibration([tally for _, tally in tallies])
    rows = [["stated", "too high by", "standard error", "share of all"]]
    for place in np.flatnonzero(share > 0):
        ends = f"{place / BINS:.1f} to {(place + 1) / BINS:.1f}"
        figures = [f"{100 * each[place]:.1f}" for each in (off, error, share)]
        rows.append([ends, *figures[:2], f"{figures[2]} %"])
    return rows


def _capped(tallies: Tallies) -> str:
    capped = np.sum([tally.capped / tally.runs for _, tally in tallies], axis=0)
    return (
        "With few tasks or families, a high probability is stated only as "
        f"{100 * MOST_OF_FEW:.0f} % or more; it came true in "
        f"{100 * capped[0] / max(capped[1], 1e-9):.0f} % of these cases."
    )


def _plans(tallies: Tallies) -> list[list[str]]:
    ratios = [float(np.median(tally.plans)) for _, tally in tallies if tally.plans]
    near = np.mean([0.8 <= ratio <= 1.25 for ratio in ratios])
    ends = [f"{each:.2f}" for each in np.quantile(ratios, [0, 0.5, 1])]
    header = ["settings", "right within 20 %", "lowest", "median", "highest"]
    return [header, [f"{len(ratios)}", f"{100 * near:.0f} %", *ends]]


def main(populations: int = 100, seconds: float = 1200.0, write: Path | None = None) -> bool:
    """Measure what is asked for; say whether no population surely fails.

    Parameters
    ----------
    seconds : of CPU, shared between the populations.
    write : the page whose tables are written; otherwise they are printed.
    """
    tallies = measure(populations, seconds)
    if write:
        fill(write, parts(tallies), words=PAGE)
    else:
        print("\n\n".join(parts(tallies).values()))
    return not any(fails(of.held[name], of.runs) for name in CLAIMS for _, of in tallies)


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
