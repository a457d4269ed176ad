"""Compare finished runs: which is more accurate, and which treats groups more alike.

Of two runs, A and B, it prints how probable it is that one is better, and how far A is ahead in
each metric. Three runs or more are ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from fairbench.cli.command import Results, command, components_folder
from fairbench.cli.output import print_line
from fairbench.comparison.runs import (
    TYPICAL,
    Ratios,
    RunPredictions,
    Settings,
    VarianceRatios,
    compare_pair,
    effective_sample_fraction,
    every_pair,
    load_predictions,
    observed_values,
    typical_repeat,
    without_copies,
)
from fairbench.core.errors import UserError
from fairbench.core.files import atomic, write_text
from fairbench.core.options import option
from fairbench.core.text import csv_text
from fairbench.inference.selection import ranking
from fairbench.reporting.comparisons import (
    pair_document,
    ranking_document,
    ranking_title,
)
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.document.writing import write_document
from fairbench.reporting.page.tables import load_all
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

SECTION = "Compare finished runs"

EVERY_RUN = ("all",)


@dataclass(frozen=True)
class CompareOptions(Results, Settings):
    """The options of a comparison, and which runs are compared."""

    runs: tuple[str, ...] = option(
        (), "The runs, by id, the beginning of one, or name; all ranks all that can be compared.",
        argument="RUN", shown="[RUN,RUN,...]|all",
    )  # fmt: skip
    certainty: float = option(0.95, "From which probability on one run ranks above another.")


def compare(options: CompareOptions) -> None:
    """Compare the runs that the options name.

    Examples
    --------
    fairbench compare runs=3f2a,b71c objectives=accuracy,equal_opportunity rope=0.01,0.01
    fairbench compare runs=all results=elsewhere/results
    fairbench compare 3f2a b71c rho=relative
    """
    if not options.runs:
        raise UserError("nothing to compare: name runs=[A,B], or runs=all")
    catalogue = Catalogue(options.results)
    if options.runs == EVERY_RUN:
        if not (sets := catalogue.comparable()):
            raise UserError(
                f"no two finished runs of {options.results} predict the same rows for the same "
                "groups: comparing needs two"
            )
        if len(sets) > 1:
            print(
                f"There are {len(sets)} rankings, as only runs that predict the same rows for "
                "the same groups can be compared.\n"
            )
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
    first, second = map(load_predictions, folders)
    _pair(first, second, options)


def _told_once(folders: list[Run]) -> list[Run]:
    """Return runs without copies of one another, and say which are left out."""
    distinct, notes = without_copies(folders)
    for note in notes:
        print_line(f"left out: {note}")
    return distinct


def _ratios(runs: Sequence[RunPredictions], options: CompareOptions) -> Ratios | None:
    """Return the variance ratios behind a relative rho; all half-split runs must be there."""
    if not options.relative:
        return None
    ratios = VarianceRatios(components_folder() / "conf", Catalogue(options.results), options)
    ratios.check(runs)
    return cache(ratios)


def _pair(first: RunPredictions, second: RunPredictions, settings: CompareOptions) -> None:
    """Print the comparison of two runs, and write its page, its probabilities and its figure."""
    ratios = _ratios([first, second], settings)
    compared = compare_pair(first, second, settings, ratios)
    regions = compared.regions(settings.level)
    everywhere, inside = compared.events(), compared.events(regions)
    shown_repeat = typical_repeat(inside)
    repeats = compared.repeats[shown_repeat]
    page = partial(
        pair_document,
        [f"{run.name} ({run.id})" for run in (first, second)],
        compared.comparisons[shown_repeat],
        np.stack([observed_values(run, settings, repeats) for run in (first, second)]),
        everywhere=everywhere,
        inside=inside,
        level=settings.level,
        tested=_tested(first, settings),
    )
    print_document(page())
    several = len(regions) > 1
    where = f" of repeat {shown_repeat}, the nearest to the medians," if several else ""
    size = f"{regions[shown_repeat].size:.4g}"
    region = f"The {settings.level:.0%} region{where} has the size {size}."
    computed = " ".join([*_pooled([first, second], settings, ratios), region])
    stem = settings.results / "report" / "comparison" / f"{first.id}_{second.id}"
    probabilities = inside if settings.repeats == TYPICAL else inside.set_axis(["all"])
    write_document(page(computed=computed), stem.parent, stem.name, ["html"])
    write_text(stem.with_suffix(".csv"), csv_text(probabilities, index_label="repeat"))
    written = [f"{stem}.html", f"{stem}.csv"]
    if len(settings.objectives) == 2:
        # Help works without matplotlib.
        from fairbench.reporting.comparison_figures import comparison_figure

        by = " x ".join(settings.protect or first.protect)
        heading = f"{first.people.name} by {by}, {settings.level:.0%} region"
        figure = comparison_figure(
            compared.comparisons[shown_repeat], regions[shown_repeat], heading, compared.names
        )
        with atomic(stem.with_suffix(".png")) as file:
            figure.savefig(file, format="png")
        written.append(f"{stem}.png")
    print_line(f"all of it, and how it was computed, is written: {', '.join(written)}")


def _tested(run: RunPredictions, settings: Settings) -> str:
    """Say how many rows a comparison rests on; nothing if each repeat is compared by itself."""
    if settings.repeats == TYPICAL:
        return ""
    folds = next(iter(run.repeats.values()))
    repeats = len(run.repeats)
    times = f"each of {repeats} repeats" if repeats > 1 else "1 repeat"
    tested = "all" if len(folds) > 1 else f"{len(folds[0]['rows'])}"
    return f"like the {len(run.people)} rows of the data, {tested} of which are tested in {times}"


def _pooled(runs: Sequence[RunPredictions], settings: Settings, ratios: Ratios | None) -> list[str]:
    """Say how far pooled folds count as independent rows, and by which variance ratios."""
    folds = len(next(iter(runs[0].repeats.values())))
    if folds == 1:
        return []
    fractions = [_numbers(effective_sample_fraction(run, settings, ratios)) for run in runs]
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


def _matrix(folders: Sequence[Run], options: CompareOptions) -> None:
    """Print the matrix of all pairs of three runs or more."""
    runs, left_out = load_all(folders)
    for reason in left_out:
        print_line(f"left out: {reason}")
    if len(runs) < 2:
        return
    outperforms = every_pair(runs, options, _ratios(runs, options)).outperforms
    ranks = ranking(outperforms, options.certainty)
    by = " x ".join(options.protect or runs[0].protect)
    names, ids = [run.name for run in runs], [run.id for run in runs]
    title = ranking_title(runs[0].people.name, by, options.objectives)
    print_document(
        ranking_document(outperforms, ranks, names, ids, title, certainty=options.certainty)
    )


COMMAND = command(compare)
