"""Rank the methods of any benchmark: which are better, which may be the best, and what is open.

Give any table with a row for each score: methods by tasks, by splits or by questions, with holes.
The page says which ranks each method can have, all at once; who may be the best on average; how
probable it is that each is within a margin of the best on a new task; how any two differ; and how
many more tasks, splits or questions would tell those apart that are not.
Tasks of one source go together if you name their family; splits of a task share its rows, and are
averaged. Columns that are called method, task, split, item or family need not be named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fairbench.cli.command import Command, Printed, Results, narrow_options
from fairbench.cli.verbs.audit import print_and_write
from fairbench.comparison.rank.question import RankOptions
from fairbench.core.errors import UserError
from fairbench.core.escaping import file_name
from fairbench.core.options import option
from fairbench.data.benchmark_logs.table import BenchmarkTable

SECTION = "Compare finished runs"


@dataclass(frozen=True)
class _Options(Results, Printed, RankOptions):
    """What is ranked, and in which forms the page is written."""

    formats: tuple[str, ...] = option(
        ("html", "json"), "What is written: html, json, latex, markdown, pdf or word.",
        shown="[FORM,...]",
    )  # fmt: skip
    experiment: str = option(
        "", "An experiment of MLflow's that is ranked, in place of a file; method=, task=, split= "
        "and family= name parameters or tags of its runs.",
    )  # fmt: skip
    uri: str = option("", "MLflow's server or database; else MLFLOW_TRACKING_URI, or mlflow.db.")


def rank(options: _Options) -> None:
    """Print what the scores say, and write it."""
    from fairbench.reporting.document.writing import check_forms
    from fairbench.reporting.rank import report_of

    check_forms(options.formats)
    if options.experiment:
        options, read = _read_experiment(options)
        report = report_of(narrow_options(options, RankOptions), read=read)
    elif options.path == Path():
        raise UserError(
            "nothing to rank: give a table of scores, such as scores.csv score=auc, or a folder by "
            "its name"
        )
    else:
        report = report_of(narrow_options(options, RankOptions))
    folder = Path(options.out) if options.out else _folder(options.path)
    print_and_write(report.document, lambda: folder, "rank", options.formats, detail=options.detail)


def _read_experiment(options: _Options) -> tuple[_Options, BenchmarkTable]:
    """Return the scores of an experiment's runs, and the options without what named these."""
    from fairbench.tracking.experiment_scores import experiment_table
    from fairbench.tracking.importer import Tracking

    if options.path != Path():
        raise UserError(
            f"{options.path} and experiment={options.experiment} are both to be ranked: give one"
        )
    if len(options.split) > 1:
        raise UserError("split= names one parameter of an experiment's runs")
    parameters = {"method": options.method, "task": options.task, "family": options.family,
             "split": "".join(options.split)}  # fmt: skip
    named_parameters = {part: name for part, name in parameters.items() if name}
    address = Tracking(uri=options.uri or None).address
    read = experiment_table(address, options.experiment, options.score, named=named_parameters)
    path = Path(file_name(options.experiment))
    return replace(options, path=path, method="", task="", family="", split=()), read


def _folder(path: Path) -> Path:
    return path.parent / f"{path.name.partition('.')[0]}-rank"


COMMAND = Command(
    _Options,
    rank,
    examples=(
        "fairbench rank scores.csv method=model task=dataset score=auc split=fold",
        "fairbench rank scores.csv score=auc family=source within=0.005",
        "fairbench rank answers.parquet score=correct item=question family=document",
        "fairbench rank scores.csv 'score=[auc,log_loss]' crashed=worst cost=seconds",
        "fairbench rank lm_eval_output score=acc",
    ),
)
