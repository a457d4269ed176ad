"""Every table, figure and printed summary of every paper can be made, of stand-ins of its data.

Runs are the first job of each experiment, in this process: that sweeps are started, as processes
and on the data themselves, is for ``tests/conformance/commands.yaml``. Computations and figures
have the smallest effort and few published rows. No number is looked at.
"""

import os
import sys
from dataclasses import replace
from functools import partial
from unittest import mock

import pytest
from matplotlib import rcParams

from fairbench.cli.main import main
from fairbench.cli.verbs.run import run_words
from fairbench.components.papers.engine import running
from fairbench.components.papers.engine.mapping import Paper, papers_in, rule_of
from fairbench.components.papers.engine.matching import Effort
from fairbench.components.papers.engine.pages import print_paper
from fairbench.experiments import build
from fairbench.experiments.configuration import REPEATS, Presets
from tests.harness import ROOT
from tests.papers import stand_ins

PAPERS = ROOT / "papers"
NAMES = papers_in(PAPERS)
# Of this one a figure needs two kinds of networks: the last job is run, too.
BOTH_ENDS = ("uncertainty_fairness/figure6",)
# Of these a single job takes ten seconds; they are planned, and nothing is drawn of them.
LONG = ("fairlyuncertain/figure9", "uncertainty_fairness/sequences")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a results folder for all papers; files are stand-ins, presets are composed once."""
    folder, presets = tmp_path_factory.mktemp("papers"), Presets()
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        patch.setattr(Presets, "experiment", partial(Presets.experiment, presets))
        stand_ins.read_only(stand_ins.write(folder / "raw"), patch.setattr)
        patch.setattr(build, "_KEPT", 1000)
        patch.setitem(rcParams, "savefig.dpi", 20)
        forget()
        yield folder / "results"
    forget()


def forget():
    """Have the modules of papers/ read data again, which other tests read from other files."""
    for name, module in list(sys.modules.items()):
        if name.startswith("papers."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def few_rows(paper):
    """Return a paper with the first row of each table, rule, data set, attribute and metric.

    Of numbers of single groups each group's is kept: ratios are of two.
    """
    rows = paper.rows
    rules = [
        str(rule_of(paper.tables[row["table"]]["rules"], row)) for row in rows.to_dict("records")
    ]
    kinds = rows[["table", "dataset", "sensitive_attribute", "metric"]]
    groups = rows["setting"].where(rows["setting"].str.startswith("group="), "")
    return replace(paper, rows=rows[~kinds.assign(rule=rules, group=groups).duplicated()])


def first_job(words, results, effort):
    """Run the first job of a sweep in this process, so that its tables have a run to be made of."""
    name = words[0].removeprefix("experiment=")
    if name in LONG:
        return
    _, varied, _ = Presets().experiment(name)
    given = {option: text.split(",") for option, _, text in (w.partition("=") for w in words)}
    shared = (f"{REPEATS}=1", f"results={results}", "tracking=none", "figures=false")
    for place in (0, -1) if name in BOTH_ENDS else (0,):
        job = [f"{key}={[*given.get(key, values)][place]}" for key, values in varied.items()]
        status = run_words(["-m", words[0], *job, *shared])
        assert status == 0, f"conf/experiment/{name}.yaml: its job {' '.join(job)} fails"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")  # so few rows divide by 0 here and there
def test_every_table_and_figure_of_a_paper(name, results, monkeypatch, capsys):
    mapping, paper = f"papers/{name}/mapping.yaml", few_rows(Paper.read(name, PAPERS))
    monkeypatch.setattr(running, "run_sweep", first_job)
    place = (paper, results, (), Effort.FIRST)
    every = [*running.table_parts(*place), *running.figure_parts(*place)]
    told = [
        f"{mapping}, {failure.part.name}: {failure.trace or failure.reason}"
        for failure in running.carry_out(every)
        if not any(long in failure.reason for long in LONG)
    ]
    assert not told, "\n".join(told)
    for path in (results / "papers" / name).glob("table*-first.*"):
        lines = path.read_text().splitlines()
        assert path.suffix != ".csv" or lines[1:], f"{mapping}: {path.stem} has no number"
        path.rename(str(path).replace("-first.", "."))  # so that it is printed
    capsys.readouterr()
    print_paper(paper, results, "all")
    printed = capsys.readouterr().out
    missing = [table for table in paper.tables if f"table {table}: " not in printed]
    assert not missing, f"{mapping}: tables {missing} are not printed"
    assert main(["paper", name, f"results={results}"]) == 0, mapping
