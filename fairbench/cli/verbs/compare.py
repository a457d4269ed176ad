"""Compare finished runs: which is more accurate, and which treats groups more alike.

Of two runs, A and B, it prints how probable it is that one is better, and how far A is ahead in
each metric. Three runs or more are ranked. Rates and gaps are of counts, in which every row is one:
runs that weigh their rows are compared by what else they store alone, such as a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairbench.cli import command as cli
from fairbench.cli.command import command
from fairbench.cli.output import print_line
from fairbench.comparison import runs as comparing
from fairbench.comparison.runs import RunPredictions
from fairbench.core.errors import UserError
from fairbench.core.files import write_bytes, write_text
from fairbench.core.options import option
from fairbench.core.text import csv_text, file_name, listed, said
from fairbench.data.dataset import Task
from fairbench.inference.comparing import frontier
from fairbench.inference.verdicts import ranking
from fairbench.reporting import comparisons
from fairbench.reporting.charts import file_of, png_of, tradeoff_chart
from fairbench.reporting.document.terminal import print_document, progress
from fairbench.reporting.document.writing import FORMS, write_document
from fairbench.reporting.runs import document_of, runs_document, tidy, tradeoff_document
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

EVERY_RUN = ("all",)


@dataclass(frozen=True)
class _CompareOptions(cli.Results, comparing.Settings):
    """The options of a comparison, and which runs are compared.

    Attributes
    ----------
    runs : The runs, by id, the beginning of one, or name; all ranks all that can be compared.
    certainty : From which probability on one run ranks above another.
    """

    runs: tuple[str, ...] = option(
        (),
        argument="RUN",
        shown="[RUN,RUN,...]|all",
        needed="nothing to compare: name runs=[A,B], or runs=all",
    )
    certainty: float = option(0.95)


def _compare(options: _CompareOptions) -> None:
    """Compare the runs that the options name.

    Examples
    --------
    fairbench compare runs=3f2a,b71c objectives=accuracy,equal_opportunity rope=0.01,0.01
    fairbench compare runs=all results=elsewhere/results
    fairbench compare 3f2a b71c rho=relative
    """
    catalogue = Catalogue(options.results)
    if options.runs == EVERY_RUN:
        if not (sets := catalogue.comparable()):
            raise UserError(said("cli", "none_comparable", results=options.results))
        if len(sets) > 1:
            print(said("cli", "several_rankings", rankings=len(sets)))
        for comparable_runs in sets:
            _matrix(_told_once(list(comparable_runs)), options)
        return
    folders = [catalogue.one(word) for word in options.runs]
    if len(folders) < 2:
        raise UserError(f"runs= names {len(folders)} run; it needs at least two, or all")
    folders = _told_once(folders)
    if len(folders) < 2:
        raise UserError("there is nothing to compare: name runs of different models")
    if len(folders) > 2:
        _matrix(folders, options)
        return
    first, second = (comparing.load_predictions(run, tasks=tuple(Task)) for run in folders)
    _pair(first, second, options)


def _told_once(folders: list[Run]) -> list[Run]:
    """Return runs without copies of one another, and say which are left out."""
    distinct, notes = comparing.without_copies(folders)
    for note in notes:
        print_line(f"left out: {note}")
    return distinct


def _ratios(runs: Sequence[RunPredictions], options: _CompareOptions) -> comparing.Ratios | None:
    """Return the variance ratios behind a relative rho; all half-split runs must be there."""
    if not options.relative:
        return None
    ratios = comparing.VarianceRatios(Catalogue(options.results), options)
    ratios.check(runs)
    return cache(ratios)


def _pair(first: RunPredictions, second: RunPredictions, settings: _CompareOptions) -> None:
    """Print the comparison of two runs, and write its page, its probabilities and its figure."""
    settings = settings.about(first, second)
    ratios = _ratios([first, second], settings)
    compared = comparing.compare_pair(first, second, settings, ratios)
    regions = compared.regions(settings.level)
    everywhere, inside = compared.events(), compared.events(regions)
    shown_repeat = comparing.typical_repeat(inside)
    repeats = compared.repeats[shown_repeat]
    page = partial(
        comparisons.pair_document,
        [f"{run.name} ({run.id})" for run in (first, second)],
        compared.comparisons[shown_repeat],
        np.stack([comparing.observed_values(run, settings, repeats) for run in (first, second)]),
        everywhere=everywhere,
        inside=inside,
        level=settings.level,
        region=regions[shown_repeat],
        left_out=comparing.left_out((first, second), settings, repeats),
        tested=_tested(first, settings),
    )
    print_document(page())
    several = len(regions) > 1
    where = f" of repeat {shown_repeat}, the nearest to the medians," if several else ""
    size = f"{regions[shown_repeat].size:.4g}"
    region = f"The {100 * settings.level:g}% region{where} has the size {size}."
    computed = " ".join([*_pooled([first, second], settings, ratios), region])
    stem = settings.results / "report" / "comparison" / f"{first.id}_{second.id}"
    probabilities = inside if settings.repeats == comparing.TYPICAL else inside.set_axis(["all"])
    write_document(page(computed=computed), stem.parent, stem.name, ["html"])
    write_text(stem.with_suffix(".csv"), csv_text(probabilities.reset_index(names="repeat")))
    print_line(f"all of it, and how it was computed, is written: {stem}.html, {stem}.csv")


def _tested(run: RunPredictions, settings: comparing.Settings) -> str:
    """Say how many rows a comparison rests on; nothing if each repeat is compared by itself."""
    if settings.repeats == comparing.TYPICAL:
        return ""
    folds = next(iter(run.repeats.values()))
    repeats = len(run.repeats)
    times = f"each of {repeats} repeats" if repeats > 1 else "1 repeat"
    tested = "all" if len(folds) > 1 else f"{len(folds[0]['rows'])}"
    rows = f"like the {len(run.people)} rows of the data, {tested} of which are tested in {times}"
    pooled = "; a gap is that of all folds' rows together, not the mean of the folds' gaps"
    goals = settings.goals(run.people.task)
    of_folds = len(folds) > 1 and any(goal.of_counts and goal.metric.is_gap for goal in goals)
    return rows + pooled * of_folds


def _pooled(
    runs: Sequence[RunPredictions], settings: comparing.Settings, ratios: comparing.Ratios | None
) -> list[str]:
    """Say how far pooled folds count as independent rows, and by which variance ratios."""
    folds = len(next(iter(runs[0].repeats.values())))
    if folds == 1 or not all(goal.of_counts for goal in settings.goals(runs[0].people.task)):
        return []
    fractions = [
        _numbers(comparing.effective_sample_fraction(run, settings, ratios)) for run in runs
    ]
    counted, lesser = fractions[0], ""
    if ratios is not None:
        counted = " and ".join(
            f"{fraction} (run {name}, variance ratio {_numbers(ratios(run))})"
            for name, fraction, run in zip("AB", fractions, runs, strict=True)
        )
        lesser = ", and pairs of rows as the smaller of the two" if settings.paired else ""
    return [
        f"The rows of {folds} pooled folds count as {counted} of as many independent rows{lesser}."
    ]


def _numbers(values: NDArray[np.float64]) -> str:
    return "/".join(f"{value:.3f}" for value in values.ravel())


def _matrix(folders: Sequence[Run], options: _CompareOptions) -> None:
    """Print the matrix of all pairs of three runs or more."""
    runs, left_out = comparing.load_all(folders, options, tuple(Task))
    for reason in left_out:
        print_line(f"left out: {reason}")
    if len(runs) < 2:
        return
    options = options.about(*runs)
    shown = partial(progress, what="pairs")
    outperforms = comparing.every_pair(runs, options, _ratios(runs, options), shown).outperforms
    ranks = ranking(outperforms, options.certainty)
    by = " x ".join(options.protect or runs[0].protect)
    names, ids = [run.name for run in runs], [run.id for run in runs]
    ranked = comparisons.ranking_document(
        outperforms, ranks, names, ids, data=runs[0].people.name, groups=by,
        objectives=options.objectives, certainty=options.certainty,
    )  # fmt: skip
    print_document(ranked)


COMMAND = command(_compare)


def _draw_tradeoff(
    results: Path = cli.RESULTS,
    dataset: str = option(
        "", argument="DATASET", needed="no data set is named, such as dataset=german"
    ),
    protect: str = option("", shown="ATTRIBUTE"),
    purpose: tuple[str, ...] = cli.PURPOSE,
    repeats: str = option(comparing.AVERAGED, choices=(comparing.AVERAGED, comparing.TYPICAL)),
) -> None:
    """Print, draw and write the trade-offs of a data set's finished runs.

    Parameters
    ----------
    dataset : The data set whose runs are drawn.
    protect : Runs that protect this attribute (sex, or sex x race); what most do by default.
    repeats : The spread is that of the mean of all repeats; or, as the paper has it, of the typical
        repeat's test rows.

    Examples
    --------
    fairbench tradeoff dataset=german
    fairbench tradeoff adult protect=sex
    """
    catalogue, words = Catalogue(results), [f"dataset={dataset}"]
    runs_of_data = catalogue.matching(words)
    if not runs_of_data.runs:
        raise UserError(f"{catalogue.why_none(words)}; a trade-off needs two runs or more")
    counted = cli.counted_runs(runs_of_data, (), purpose)
    stored = comparing.candidates(dataset, protect, counted)
    names = comparing.names_of_parts(stored)
    protect = stored[0].protect
    others: dict[str, list[str]] = {}
    for run in counted:
        if run.protect == protect and run.id not in {of.id for of in stored}:
            why = "weighted_rows" if comparing.is_weighted(run) else "other_rows"
            others.setdefault(why, []).append(run.id)
    for why, found in others.items():
        print_line(said("cli", why, runs=listed(found, 3)))
    runs = [comparing.load_predictions(run) for run in stored]
    plain = [i for i, name in enumerate(names) if name["intervention"] == "none"]
    curve = frontier([stored[i].all_metrics() for i in plain], protect)
    base = ""
    if len(curve):
        name_of_base = names[plain[curve["base"].iloc[0]]]
        base = f"{name_of_base['learner']}, {name_of_base['method']}"
    table = comparing.tradeoff(runs, names, curve, repeats)
    title = f"{dataset} by {protect}, {len(runs)} runs"
    spread = comparing.SPREADS[repeats]
    print_document(
        tradeoff_document(table, table["metric"].unique(), title=title, base=base, spread=spread)
    )
    name = file_name(f"{dataset}_{protect.replace(' ', '')}")
    stem = results / "report" / "tradeoff" / name
    write_text(stem.with_suffix(".csv"), csv_text(table))
    about = f"{title}, with ellipses of 95 % of a normal with the spreads of {spread}"
    drawn = file_of(tradeoff_chart(table, curve, base), title=about, across=2)
    write_bytes(stem.with_suffix(".png"), png_of(drawn))
    if curve.empty:
        print(said("cli", "not_postprocessed"))
    print_line(f"files: {stem}.csv, {stem}.png")


class tradeoff:
    """Draw error against unfairness of a data set's finished runs, with posterior ellipses.

    Runs of one split are set beside one another, and beside what thresholds for each group would
    give. Every row counts as one: runs that weigh their rows are left out.
    """

    COMMAND = command(_draw_tradeoff)


_SUFFIXES = {".csv": "csv", ".tex": "latex", ".md": "markdown"}
_TERMINAL = "terminal"


@dataclass(frozen=True)
class _TableOptions(cli.Selection):
    """Which runs are in the table, and how it is written.

    Attributes
    ----------
    metrics : What is shown of each run; error, log loss and gap by default.
    format : How it is written; by default as out= ends, and otherwise for the terminal.
    out : A file that ends in .csv, .tex or .md; printed by default.
    """

    metrics: tuple[str, ...] = option((), shown="[METRIC,...]")
    format: str = option("", choices=("", _TERMINAL, *_SUFFIXES.values()))
    out: Path = option(Path, shown="FILE")

    @property
    def written_as(self) -> str:
        """The format, given or by the file's name.

        Raises
        ------
        UserError : the file's name ends otherwise, and no format is given.
        """
        if self.format or self.out == Path():
            return self.format or _TERMINAL
        if self.out.suffix not in _SUFFIXES:
            raise UserError(f"out={self.out}: end it in .csv, .tex or .md, or give format=")
        return _SUFFIXES[self.out.suffix]


def _print_table(options: _TableOptions) -> None:
    """Print or write the table of the runs that are asked for.

    Examples
    --------
    fairbench table
    fairbench table 3f2a
    fairbench table dataset=german method=ensemble,baseline
    fairbench table all out=runs.csv
    fairbench table dataset=german 'metrics=[accuracy,statistical_parity]' format=latex
    """
    written_as = options.written_as
    runs = _selected(options)
    is_single = len(runs) == 1 and not options.metrics
    if written_as == "csv":
        text = csv_text(tidy(runs, options.metrics))
    else:
        one = next(iter(runs))
        document = document_of(one) if is_single else runs_document(runs, options.metrics)
        if written_as == _TERMINAL and options.out == Path():
            print_document(document)
            if is_single:
                print_line(f"files: {one.path}")
            return
        text = str(FORMS[written_as][1](document))
    if options.out == Path():
        print(text, end="")
        return
    write_text(options.out, text)
    print_line(f"{len(runs)} run{'s' if len(runs) != 1 else ''} in {options.out}")


def _selected(options: _TableOptions) -> Catalogue:
    """Return the runs that are asked for; the last one where none is.

    Raises
    ------
    UserError : there is none.
    """
    named = [*options.ids, *options.key_words]
    catalogue = Catalogue(options.results)
    if not catalogue.runs:
        raise UserError(f"{options.results} has no finished run")
    if not named:
        return catalogue.only([max(catalogue, key=lambda run: run.finished)])
    return (replace(options, ids=()) if options.ids == EVERY_RUN else options).selected()


class table:
    """Print the table of one finished run or of several, also as CSV, LaTeX or Markdown.

    It is of the run that finished last unless runs are named; all names all. Of one run the table
    is that printed when the run ended. Several runs have a row each, with
    error, log loss and the gap between groups; a CSV file has a row for each metric of each run.
    """

    COMMAND = command(_print_table)
