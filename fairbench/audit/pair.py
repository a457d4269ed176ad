"""Two classifiers' gaps compared on the same rows, labelled or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console

from fairbench.assessment.few_labels.paired import (
    PATTERNS,
    margins,
    paired_calibration,
    split_by_pattern,
)
from fairbench.assessment.few_labels.table import PartlyLabelled
from fairbench.audit.completion import MOST_BY_GROUP, MOST_CALIBRATED, complete
from fairbench.audit.gaps import RATE_OF
from fairbench.audit.options import Options
from fairbench.audit.reading import AuditTable, read_audit_table
from fairbench.audit.terminal import WIDTH, table_of
from fairbench.audit.words import RATES, chance, interval, number, signed
from fairbench.metrics.group import gap
from fairbench.metrics.rates import accuracy
from fairbench.posterior import central_interval
from fairbench.seeds import rng

Floats = NDArray[np.float64]
DRAWS, MINIMUM = 2048, 30
# Cells that a row can fall in: where only the first says 1 there are none of its negatives.
_POSSIBLE = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=bool)


@dataclass(frozen=True)
class Compared:
    """A metric of two classifiers, and the second's less the first's.

    Attributes
    ----------
    attribute : empty for the accuracy of everyone. metric : a gap's size, or the accuracy.
    first, second : raw, of the mean counts.
    difference, lower, upper : mean and interval of the difference's posterior.
    lesser : the probability that the second's is smaller.
    """

    attribute: str
    metric: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    lesser: float


def report_pair(options: Options, table: AuditTable, frame: pd.DataFrame) -> tuple[str, str]:
    """Print how two scores compare; return no page, and the comparison as JSON."""
    other = read_audit_table(replace(options, score=options.against), frame=frame)
    rows = list(compare_tables(table, other, options.seed))
    _print(options, table, rows)
    content = {
        "options": {**asdict(options), "path": str(options.path)},
        "rows": len(table),
        "labels": len(table.known),
        "comparison": [asdict(row) for row in rows],
    }
    return "", json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def compare_tables(first: AuditTable, second: AuditTable, seed: int) -> Iterator[Compared]:
    """Yield the accuracies, and the gaps of every attribute with two groups of enough rows."""
    for place, (attribute, groups) in enumerate(first.groups.items()):
        draws = population_pair(
            first.partly_labelled(groups),
            second.partly_labelled(groups),
            rng(seed, "pair", attribute),
        )
        if not place:
            everyone = [each.sum(axis=1, keepdims=True) for each in draws]
            yield _compared("", "accuracy", lambda each: accuracy(each)[..., 0], everyone)
        size = np.bincount(groups.cat.codes, minlength=draws[0].shape[1])
        enough = np.flatnonzero(size >= MINIMUM)
        if len(enough) > 1:
            compared = [each[:, enough] for each in draws]
            for metric, rate in RATE_OF.items():
                yield _compared(attribute, metric, partial(gap, rate), compared)


def population_pair(
    first: PartlyLabelled, second: PartlyLabelled, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw both classifiers' shares of TN, FP, FN, TP in the population, two (T, G, 4).

    The shares of a group sum to its share of the rows. Few labels are extended by paired
    calibration, many by those of the same group and decisions.
    """
    split, labels = split_by_pattern(first, second), len(first.labelled)
    few = labels <= MOST_CALIBRATED and labels * split.n_groups <= MOST_BY_GROUP
    if few and labels < len(first.score):
        counts = paired_calibration(first, second, generator, draws=DRAWS).calibration.counts
    else:
        counts = complete(split, generator, has_score=True).counts
    joint = np.broadcast_to(counts, (DRAWS, *counts.shape[1:]))
    groups = joint.reshape(DRAWS, -1, PATTERNS, 4)
    # Half a row in each of eight cells is one in each of a classifier's four.
    gammas = generator.standard_gamma(groups + 0.5) * _POSSIBLE
    size = groups.sum(axis=(2, 3), keepdims=True)
    shares = gammas / gammas.sum(axis=(2, 3), keepdims=True) * size / len(first.score)
    return margins(shares)


def _compared(
    attribute: str, metric: str, function: Callable[[Floats], Floats], draws: Sequence[Floats]
) -> Compared:
    """Summarise draws of both; the two values are those of the mean counts, less widened by noise.

    The difference is the mean of its posterior, as its interval is the posterior's: noise need not
    widen both gaps alike.
    """
    first, second = (float(function(each.mean(axis=0))) for each in draws)
    difference = function(draws[1]) - function(draws[0])
    lower, upper = map(float, central_interval(difference))
    lesser = float((difference < 0).mean())
    mean = float(difference.mean())
    return Compared(attribute, metric, first, second, mean, lower, upper, lesser)


def _print(options: Options, table: AuditTable, rows: list[Compared]) -> None:
    one, other = options.score, options.against
    console = Console(width=WIDTH, highlight=False)
    size, labels = f"{len(table):,} rows", f"{len(table.known):,} of them with a label"
    console.print(f"{other} against {one} on the {size} of {options.path.name}, {labels}.")
    if not len(table.known):
        warning = "WARNING: without labels both scores are believed alike"
        console.print(warning, style="bold red")
    names = ("gap in", "first, raw", "second, raw", "difference", "95 % interval", "P(smaller)")
    columns = [("groups", False), *((name, name != "gap in") for name in names)]
    listed = table_of(f"Sizes of gaps: the first {one}, the second {other}", columns)
    for row in rows:
        listed.add_row(
            row.attribute or "everyone",
            RATES.get(row.metric, "accuracy itself"),
            number(row.first),
            number(row.second),
            signed(row.difference),
            interval(row.lower, row.upper),
            chance(row.lesser),
        )
    console.print(listed)
