"""Draw error against unfairness of a data set's finished runs, with posterior ellipses.

Runs of one split are set beside one another, and beside what thresholds for each group would give.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Results, command, purposes, with_note
from fairbench.cli.output import print_line
from fairbench.comparison.runs import (
    AVERAGED,
    SPREADS,
    TYPICAL,
    candidates,
    load_predictions,
    tradeoff,
)
from fairbench.core.errors import UserError
from fairbench.core.files import atomic, write_text
from fairbench.core.options import option
from fairbench.core.text import csv_text, file_name
from fairbench.inference.comparing import METRICS, frontier
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.runs import tradeoff_document
from fairbench.results.catalogue import Catalogue

SECTION = "Compare finished runs"

_POSTPROCESS = "[0,0.02,0.05,0.1,0.2,0.3,1]"


@dataclass(frozen=True)
class TradeoffOptions(Results):
    """Which runs are drawn."""

    dataset: str = option("", "The data set whose runs are drawn.", argument="DATASET")
    protect: str = option(
        "", "Runs that protect this attribute (sex, or sex x race); what most do by default.",
        shown="ATTRIBUTE",
    )  # fmt: skip
    purpose: tuple[str, ...] = purposes()
    repeats: str = option(
        AVERAGED,
        "The spread is that of the mean of all repeats; or, as the paper has it, of the typical "
        "repeat's test rows.",
        choices=(AVERAGED, TYPICAL),
    )


def draw_tradeoff(options: TradeoffOptions) -> None:
    """Print, draw and write the trade-offs of a data set's finished runs.

    Examples
    --------
    fairbench tradeoff dataset=german
    fairbench tradeoff adult protect=sex
    """
    from fairbench.reporting.comparison_figures import tradeoff_figure  # help does without

    if not options.dataset:
        raise UserError("no data set is named, such as dataset=german")
    results = options.results
    catalogue, words = Catalogue(results), [f"dataset={options.dataset}"]
    runs_of_data = catalogue.matching(words)
    if not runs_of_data.runs:
        raise UserError(f"{catalogue.why_none(words)}; a trade-off needs two runs or more")
    counted = with_note(*runs_of_data.counted(options.purpose))
    stored, names = candidates(options.dataset, options.protect, counted)
    protect = stored[0].protect
    runs = [load_predictions(run) for run in stored]
    plain = [i for i, name in enumerate(names) if name["intervention"] == "none"]
    curve = frontier([stored[i].all_metrics() for i in plain], protect)
    base = ""
    if len(curve):
        name_of_base = names[plain[curve["base"].iloc[0]]]
        base = f"{name_of_base['learner']}, {name_of_base['method']}"
    table = tradeoff(runs, names, curve, runs[0].protect, repeats=options.repeats)
    title = f"{options.dataset} by {protect}, {len(runs)} runs"
    print_document(
        tradeoff_document(table, METRICS, title=title, base=base, spread=SPREADS[options.repeats])
    )
    name = file_name(f"{options.dataset}_{protect.replace(' ', '')}")
    stem = results / "report" / "tradeoff" / name
    write_text(stem.with_suffix(".csv"), csv_text(table))
    figure = tradeoff_figure(table, curve, title, base, SPREADS[options.repeats])
    with atomic(stem.with_suffix(".png")) as file:
        figure.savefig(file, format="png")
    if curve.empty:
        print(
            "no score was postprocessed: run the ones without intervention with "
            f"split.validation=0.2 'evaluator.relaxations={_POSTPROCESS}'"
        )
    print_line(f"files: {stem}.csv, {stem}.png")


COMMAND = command(draw_tradeoff)
