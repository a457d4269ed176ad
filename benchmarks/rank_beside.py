"""What other rankings claim of the tables of :mod:`benchmarks.rank`, beside ``fairbench rank``.

``python -m benchmarks.rank_beside`` says how often all that a rule claims is right, how many true
differences it finds, and how wide its intervals are; options are written name=value: ``runs=50``
benchmarks of each population, and ``write=docs/coverage.md``, the page whose section is written.
``python -m benchmarks.rank_beside check=true``, in an environment that has the packages `bencheval`
and `autorank`, compares what is written here with what they answer.

Tables have no holes, five tasks or questions at least, and two to fifty methods, as the others ask
for or can read. They are given the mean of each task's splits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmarks.coverage.page import BESIDE_RANKINGS, write_sections
from benchmarks.rank import FLIPS, Codes, Population, draw, populations, table, task_means
from fairbench.cli.options import read
from fairbench.core.arrays import Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.options import option
from fairbench.inference.comparing.sign_flips import FEWEST, paired_units, simultaneous

ROUNDS = 100  # of the bootstrap, as bencheval makes by itself
_FRESH = 2000  # units that a true rating or mean rank is measured on
_FRESH_NUMBERS = 4_000_000
_ELO = 400 / np.log(10)  # points of a unit of log strength
_RIDGE = 0.5 / (1e6 * np.log(10) ** 2)  # bencheval's, which keeps ratings finite
_STEP = 3.0  # of log strength at most, so that Newton's steps do not leap
_SKEWED = ("lognormal", "one skewed")
_WRONG = 0.05


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a rule says of M methods.

    Attributes
    ----------
    above : (M, M) whether the row is claimed to be better than the column.
    lower, upper : ends of its intervals: of pairs, (P,), or of the ratings of methods, (M,).
    of : what they are of: ``scores``, ``ranks``, ``ratings`` or, where it has none, ``nothing``.
    """

    above: Mask
    lower: Floats
    upper: Floats
    of: str


def elo(of_task: Floats, random: np.random.Generator, rounds: int = ROUNDS) -> Ranking:
    """Rate methods by Elo, with 95 % intervals from resampled tasks, as bencheval does.

    One method is claimed to be above another where their intervals do not overlap.
    """
    tasks = of_task.shape[1]
    wins = stats.rankdata(of_task, axis=0) - 1
    times = random.multinomial(tasks, np.full(tasks, 1 / tasks), rounds)
    rating = ratings(np.vstack([wins.sum(axis=1), times @ wins.T]), tasks)
    lower, upper = np.quantile(rating[1:], [0.025, 0.975], axis=0)
    lower, upper = np.minimum(lower, rating[0]), np.maximum(upper, rating[0])
    return Ranking(lower[:, None] > upper, lower, upper, "ratings")


def ratings(wins: Floats, tasks: int) -> Floats:
    """Return the Elo ratings of a Bradley-Terry model, (B, M), of mean 1000.

    Parameters
    ----------
    wins : (B, M) methods beaten by each method, ties counting half, summed over the tasks. Where
        all methods were run on all tasks nothing else is needed.
    """
    methods = wins.shape[1]
    strength, one = np.zeros_like(wins), np.eye(methods)
    for _ in range(200):
        beats = special.expit(strength[:, :, None] - strength[:, None]) * (1 - one)
        gradient = wins - tasks * beats.sum(axis=2) - 2 * _RIDGE * strength
        curvature = tasks * beats * np.swapaxes(beats, 1, 2)
        slope = (curvature.sum(axis=2) + 2 * _RIDGE)[:, :, None] * one - curvature
        slope += slope.max(axis=(1, 2), keepdims=True) / methods  # which leaves the mean at 0
        step = np.linalg.solve(slope, gradient[:, :, None])[:, :, 0]
        step -= step.mean(axis=1, keepdims=True)
        strength += np.clip(step, -_STEP, _STEP)
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(1000 + _ELO * (strength - strength.mean(axis=1, keepdims=True)))


def nemenyi(of_task: Floats, random: np.random.Generator) -> Ranking:
    """Apply Friedman's test of all methods and, where it rejects, Nemenyi's of each pair."""
    del random
    methods, tasks = of_task.shape
    ranks = stats.rankdata(of_task, axis=0).mean(axis=1)
    reach = stats.studentized_range.ppf(1 - _WRONG, methods, np.inf)
    reach *= np.sqrt(methods * (methods + 1) / (12 * tasks))
    differ = methods == 2 or stats.friedmanchisquare(*of_task).pvalue < _WRONG
    return _within_reach(ranks, float(reach), differ=bool(differ), of="ranks")


def autorank(of_task: Floats, random: np.random.Generator) -> Ranking:
    """Apply autorank's rule, which tests for normality and equal variances choose.

    Two methods: the paired t-test or Wilcoxon's. More: ANOVA of repeated measures with Tukey's
    test, or Friedman's with Nemenyi's.
    """
    methods, tasks = of_task.shape
    normal = min(stats.shapiro(row).pvalue for row in of_task) >= _WRONG / methods
    if methods == 2:
        return _of_two(of_task, normal=normal)
    if not normal or not stats.bartlett(*of_task).pvalue >= _WRONG:
        return nemenyi(of_task, random)
    means = of_task.mean(axis=1)
    within = ((of_task - means[:, None]) ** 2).sum()
    rest = ((of_task - means[:, None] - of_task.mean(axis=0) + of_task.mean()) ** 2).sum()
    between = tasks * ((means - means.mean()) ** 2).sum()
    differ = special.fdtrc(methods - 1, (methods - 1) * (tasks - 1), between / (rest / (tasks - 1)))
    freedom = methods * (tasks - 1)
    reach = stats.studentized_range.ppf(1 - _WRONG, methods, freedom)
    reach *= np.sqrt(within / freedom / tasks)
    return _within_reach(means, float(reach), differ=bool(differ < _WRONG), of="scores")


def _of_two(of_task: Floats, *, normal: bool) -> Ranking:
    """Apply the paired t-test, or Wilcoxon's, one-sided towards the method of larger median."""
    first = int(np.median(of_task, axis=1).argmax())
    second = 1 - first
    above = np.zeros((2, 2), dtype=bool)
    if normal:
        test = stats.ttest_rel(of_task[0], of_task[1])
        ends = test.confidence_interval(1 - _WRONG)
        better = 0 if test.statistic > 0 else 1
        above[better, 1 - better] = test.pvalue < _WRONG
        return Ranking(above, np.array([ends.low]), np.array([ends.high]), "scores")
    if (of_task[0] != of_task[1]).any():
        test = stats.wilcoxon(of_task[first], of_task[second], alternative="greater")
        above[first, second] = test.pvalue < _WRONG
    return Ranking(above, np.empty(0), np.empty(0), "nothing")


def _within_reach(centres: Floats, reach: float, *, differ: bool, of: str) -> Ranking:
    first, second = np.triu_indices(len(centres), 1)
    gap = centres[first] - centres[second]
    above = centres[:, None] - centres > reach
    return Ranking(above & differ, gap - reach, gap + reach, of)


def paired_t(of_task: Floats, random: np.random.Generator) -> Ranking:
    """Apply Student's test to each pair by itself, whatever the number of pairs."""
    del random
    first, second = np.triu_indices(len(of_task), 1)
    tasks = of_task.shape[1]
    gap = of_task[first] - of_task[second]
    reach = special.stdtrit(tasks - 1, 1 - _WRONG / 2) * gap.std(axis=1, ddof=1) / tasks**0.5
    lower, upper = gap.mean(axis=1) - reach, gap.mean(axis=1) + reach
    above = np.zeros((len(of_task), len(of_task)), dtype=bool)
    above[first, second], above[second, first] = lower > 0, upper < 0
    return Ranking(above, lower, upper, "scores")


OTHERS: dict[str, Callable[[Floats, np.random.Generator], Ranking]] = {
    "Elo": elo,
    "autorank": autorank,
    "Friedman-Nemenyi": nemenyi,
    "paired t": paired_t,
}


def fairbench_rank(
    population: Population, values: Floats, group: Codes, random: np.random.Generator
) -> Ranking:
    """Return what ``fairbench rank`` claims."""
    questions = population.questions > 0 and population.tasks == 1
    unit = np.arange(len(group)) if questions else population.unit
    paired = paired_units(values, group, unit, binary=questions, generator=random)
    held = simultaneous(paired, generator=random, flips=FLIPS)
    judged = (paired.sizes >= FEWEST).all() and not questions
    return Ranking(held.better, held.lower, held.upper, "scores" if judged else "nothing")


def true_values(
    population: Population, true: Floats, random: np.random.Generator
) -> dict[str, Floats]:
    """Return what intervals are of, from fresh units: differences of pairs, and ratings."""
    numbers = len(true) * population.splits * max(population.questions, 1)
    size = min(_FRESH, max(_FRESH_NUMBERS // numbers, 100))
    more = replace(population, tasks=size, family=1)
    if population.questions and population.tasks == 1:
        more = replace(population, questions=_FRESH)
    values, group, _ = draw(more, true, random)
    of_task = task_means(values, group, int(group.max()) + 1)
    ranks = stats.rankdata(of_task, axis=0)
    first, second = np.triu_indices(len(true), 1)
    mean = ranks.mean(axis=1)
    return {
        "scores": true[first] - true[second],
        "ranks": mean[first] - mean[second],
        "ratings": ratings((ranks - 1).sum(axis=1)[None], of_task.shape[1])[0],
    }


def judge(answer: Ranking, true: Floats, values: dict[str, Floats]) -> dict[str, object]:
    """Return whether all claims are right, the share of true differences found, and widths."""
    ahead = true[:, None] > true + 1e-12
    row: dict[str, object] = {
        "right": float(not (answer.above & ~ahead).any()),
        "found": (answer.above & ahead).sum() / ahead.sum() if ahead.any() else np.nan,
        "of": answer.of,
    }
    if answer.of != "nothing":
        truth = values[answer.of]
        inside = (answer.lower <= truth + 1e-9) & (truth <= answer.upper + 1e-9)
        row |= {"inside": inside.mean(), "all inside": float(inside.all())}
        row["width"] = float(np.mean(answer.upper - answer.lower))
    return row


def readable(population: Population) -> bool:
    """Return whether the others can read such tables, in little time."""
    units = population.questions if population.tasks == 1 else population.tasks
    return population.holes == "none" and population.methods <= 50 and 5 <= units <= 2000


def compare(runs: int = 50) -> pd.DataFrame:
    """Return a row for each rule and benchmark, so many of each population."""
    chosen = [(number, one) for number, one in enumerate(populations()) if readable(one)]
    rows: list[dict[str, object]] = []
    for number, population in chosen:
        random = np.random.default_rng(number)
        for _ in range(runs):
            true = population.true(random)
            values, group, _ = draw(population, true, random)
            of_task = task_means(values, group, int(group.max()) + 1)
            answers = {"fairbench rank": fairbench_rank(population, values, group, random)}
            answers |= {name: rule(of_task, random) for name, rule in OTHERS.items()}
            truth = true_values(population, true, random)
            about = {
                "population": number,
                "families": population.family > 1,
                "skewed": population.tails in _SKEWED,
                "several": population.methods > 2,
            }
            rows += [
                {**about, "rule": name, **judge(answer, true, truth)}
                for name, answer in answers.items()
            ]
    return pd.DataFrame(rows)


_OWN = "fairbench rank"
_COLUMNS = {
    "right": "all claims of a benchmark are right",
    "found": "true differences found",
    "inside": "a single interval covers the truth",
    "all inside": "all intervals of a benchmark cover the truth",
}
_UNITS = {"scores": "units of the score", "ratings": "Elo points", "ranks": "ranks"}


def section(rows: pd.DataFrame) -> str:
    """Return means over populations, which count alike: coverage, power and widths of each rule."""
    runs, populations_ = len(rows) // rows["rule"].nunique(), rows["population"].nunique()
    plain = ~rows["families"] & ~rows["skewed"]
    parts = {
        "all": rows,
        "tasks independent, effects symmetric": rows[plain],
        "effects skewed": rows[rows["skewed"]],
        "tasks in families": rows[rows["families"]],
        "three methods or more": rows[rows["several"]],
    }
    rules = [_OWN, *OTHERS]
    lines = [["", "settings", *(f"`{name}`" if name == _OWN else name for name in rules)]]
    for column, words in _COLUMNS.items():
        for name, part in parts.items():
            of_population = part.groupby(["rule", "population"])[column].mean().astype(float)
            means = of_population.groupby("rule").mean()
            cells = [f"{100 * means[rule]:.1f} %" if rule in means else "" for rule in rules]
            shown = words if name == "all" else f"{words}: {name}"
            lines.append([shown, f"{part['population'].nunique()}", *cells])
    return "\n\n".join(
        [
            f"Several rules were applied to the same {runs:,} tables. The tables come from the "
            f"{populations_} of these settings that have no missing scores, at least five tasks or "
            "questions, and at most 50 methods. A claim says that one method is better than "
            "another; it is right if the method's true mean score is higher. An interval is "
            "compared with the true value of what it is for. *Elo* is a Bradley-Terry model with "
            f"95 % intervals from {ROUNDS} bootstraps of the tasks, as in bencheval and TabArena; "
            "it claims that a method is better if the two intervals do not overlap. *autorank* "
            "compares two methods by the t-test or Wilcoxon's test, and more than two by Tukey's "
            "or Nemenyi's. Only `fairbench rank` is told which tasks are of one family.",
            table(lines + _widths(rows, rules)),
        ]
    )


def _widths(rows: pd.DataFrame, rules: Sequence[str]) -> list[list[str]]:
    """Return the widths of intervals in their own unit, and of scores over those of t-tests."""
    widths = rows.groupby(["rule", "of", "population"])["width"].mean()
    scores = widths.xs("scores", level="of").unstack("rule")
    relative = scores.div(scores["paired t"], axis=0).median()
    lines = [["width relative to paired t-tests, median", f"{len(scores)}"]]
    lines[0] += [f"{relative[rule]:.2f}" if rule in relative else "" for rule in rules]
    of_unit = widths.groupby(["of", "rule"]).median()
    for unit, words in _UNITS.items():
        mine = of_unit.get(unit, pd.Series(dtype=float))
        cells = [f"{mine[rule]:.3g}" if rule in mine else "" for rule in rules]
        many = widths.index.get_level_values("of") == unit
        number = widths[many].index.get_level_values("population").nunique()
        lines.append([f"width in {words}, median", f"{number}", *cells])
    return lines


def check(rounds: int = 2000) -> None:
    """Print how far answers lie from those of the packages, on five tables."""
    from importlib.metadata import version  # noqa: PLC0415

    from autorank import autorank as by_package  # noqa: PLC0415
    from bencheval.evaluator import BenchmarkEvaluator  # noqa: PLC0415

    print(f"bencheval {version('bencheval')}, autorank {version('autorank')}")
    random = np.random.default_rng(0)
    board = BenchmarkEvaluator(method_col="method", task_col="task", error_col="metric_error")
    tables = [(2, 40, "normal"), (2, 40, "t2"), (5, 30, "normal"), (8, 40, "t2"),
              (10, 20, "lognormal")]  # fmt: skip
    for methods, tasks, tails in tables:
        population = Population(methods=methods, tasks=tasks, tails=tails, truth="far")
        values, group, _ = draw(population, population.true(random), random)
        of_task = task_means(values, group, tasks)
        frame = pd.DataFrame(of_task.T, columns=[f"m{place}" for place in range(methods)])
        long = frame.rename_axis("task").reset_index().melt("task", var_name="method")
        long["metric_error"] = 1 - long["value"]
        theirs = board.compute_elo(long, round_decimals=None, BOOTSTRAP_ROUNDS=rounds)
        theirs = theirs.reindex(frame.columns)
        rated = elo(of_task, random, rounds)
        single = ratings((stats.rankdata(of_task, axis=0) - 1).sum(axis=1)[None], tasks)[0]
        wide = (rated.upper - rated.lower) / (theirs["elo+"] + theirs["elo-"])
        print(
            f"{methods} methods, {tasks} tasks, {tails}: ratings differ by at most "
            f"{np.abs(single - theirs['elo']).max():.1e}, widths are {wide.min():.2f} to "
            f"{wide.max():.2f} of bencheval's"
        )
        ranked, answer = by_package(frame), autorank(of_task, random)
        wide = (ranked.rankdf["ci_upper"] - ranked.rankdf["ci_lower"]).iloc[0]
        reach = f", distance {wide if ranked.cd is None else ranked.cd:.5f}"
        here = f", distance {np.mean(answer.upper - answer.lower) / 2:.5f}"
        print(
            f"    autorank's {ranked.omnibus}: p {ranked.pvalue:.3g}{reach * (methods > 2)}; here "
            f"{answer.above.sum()} claims{here * (methods > 2)}"
        )


@dataclass(frozen=True)
class Options:
    """What ``python -m benchmarks.rank_beside`` takes."""

    runs: int = option(50, "Benchmarks of each population.", least=1)
    write: Path | None = option(None, "The page whose section is written; otherwise it is printed.")
    check: bool = option(False, "Compare with the packages bencheval and autorank, and no more.")


def main(words: Sequence[str]) -> int:
    """Measure, or check, what is asked for."""
    try:
        options = read(Options, words)
        if options.check:
            check()
            return 0
        text = section(compare(options.runs))
        if options.write:
            write_sections(options.write, {BESIDE_RANKINGS: text})
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"written: {options.write}" if options.write else text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
