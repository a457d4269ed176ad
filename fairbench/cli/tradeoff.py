"""``report.py tradeoff dataset=german``: finding the runs, drawing, printing and writing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fairbench.comparison.stored_runs import load_run
from fairbench.comparison.tradeoff_points import tradeoff
from fairbench.comparison.tradeoff_runs import Candidate, candidates
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.files import atomic, write_text
from fairbench.inference.error_and_gaps import METRICS
from fairbench.inference.frontier import frontier
from fairbench.reporting.tradeoff_figure import tradeoff_figure
from fairbench.reporting.tradeoff_table import tradeoff_table

_DEFAULTS = {"dataset": "", "protect": "", "results": "results"}
_POSTPROCESS = "[0,0.02,0.05,0.1,0.2,0.3,1]"


def tradeoff_command(arguments: Sequence[str], conf: Path) -> None:
    """Draw and print the trade-offs of a data set's finished runs.

    Parameters
    ----------
    arguments : ``name=value`` words: ``dataset``, ``protect`` (``sex``, ``sex x race``; what most
        runs protect by default) and ``results``.
    """
    options = _options(arguments)
    results = Path(options["results"])
    found = candidates(options["dataset"], options["protect"], results)
    protect = str(found[0].folder.environment()["protect"])
    runs = [load_run(each.folder, conf) for each in found]
    plain = [each for each in found if each.names["intervention"] == "none"]
    curve = frontier([each.folder.metrics() for each in plain], protect)
    base = _name(plain[curve["base"].iloc[0]]) if len(curve) else ""
    table = tradeoff(runs, [each.names for each in found], curve, runs[0].protect)
    for metric in METRICS:
        Console(width=100).print(tradeoff_table(table[table["metric"] == metric], metric, base))
    stem = results / "report" / "tradeoff" / f"{options['dataset']}_{protect.replace(' ', '')}"
    write_text(stem.with_suffix(".csv"), table.to_csv(index=False))
    title = f"{options['dataset']} by {protect}, {len(runs)} runs"
    figure = tradeoff_figure(table, curve, title, base)
    with atomic(stem.with_suffix(".png")) as temporary:
        figure.savefig(temporary, format="png")
    if curve.empty:
        print(
            "no score was postprocessed: run the ones without intervention with "
            f"split.validation=0.2 'evaluator.relaxations={_POSTPROCESS}'"
        )
    print(f"files: {stem}.csv, {stem}.png")


def _name(candidate: Candidate) -> str:
    return f"{candidate.names['learner']}, {candidate.names['method']}"


def _options(arguments: Sequence[str]) -> dict[str, str]:
    options = dict(_DEFAULTS)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in options:
            raise unknown_name("option", name, options)
        options[name] = value
    if not options["dataset"]:
        raise UserError("no data set: say report.py tradeoff dataset=german")
    return options
