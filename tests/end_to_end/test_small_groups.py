"""Every command on runs in whose groups metrics, limits or draws are undefined."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.experiments.execute import carry_out
from tests.harness import configuration, quick

VERBS = (
    ("report",),
    ("leaderboard",),
    ("choose",),
    ("choose", "minimise=predictive_parity", "where=positive_predictive_value>=0"),
    ("compare", "runs=all"),
    ("tradeoff", "dataset=table"),
)


def two_runs(folder, groups, repeats, *, rare=False):
    """Carry out two runs on 400 rows of some groups; if `rare`, three rows have label 1."""
    generator = np.random.default_rng(0)
    group = generator.integers(0, groups, 400)
    x = generator.normal(size=400)
    y = np.arange(400) < 3 if rare else x + generator.normal(size=400) > 0
    table = pd.DataFrame({"x": x, "group": [f"g{g:02d}" for g in group], "y": y.astype(int)})
    table.to_csv(folder / "table.csv", index=False)
    words = (
        "dataset=table", f"dataset.path={folder / 'table.csv'}", "dataset.target=y",
        "dataset.sensitive=[group]", f"split.repeats={repeats}", "tracking=none", "figures=false",
    )  # fmt: skip
    for learner in ("logistic_regression", "gaussian_nb"):
        carry_out(configuration(*words, f"learner={learner}", results=folder / "results"))
    return sorted(path.name for path in (folder / "results" / "runs").iterdir())


@pytest.mark.parametrize(
    ("groups", "repeats", "rare"),
    quick(
        [(1, 2, False), (2, 1, False), (8, 2, False), (15, 2, False), (40, 2, False)]
        + [(2, 2, True), (15, 1, True)],
        kept=[(15, 2, False)],
        several=True,
    ),
)
def test_commands_answer_or_refuse_in_a_line(groups, repeats, rare, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run, other = two_runs(tmp_path, groups, repeats, rare=rare)
    refused = set()
    for words in (*VERBS, ("table", run), ("table", run, other, "out=both.csv"), ("audit", run)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                run_command([*words, f"results={tmp_path / 'results'}"])
            except UserError as error:
                assert "\n" not in str(error)
                refused.add(words[0])
    if (groups, repeats) == (15, 2):
        assert "chosen" in capsys.readouterr().out
        assert refused == {"leaderboard", "tradeoff", "compare"}  # a group has no negatives
        ids = f"runs=[{run},{other}]"
        objectives = "objectives=[error_rate,statistical_parity]"
        run_command(["compare", ids, objectives, f"results={tmp_path / 'results'}"])
        page = (tmp_path / "results" / "report" / "index.html").read_text()
        assert "gap in selection rate gap</text>" in page
        assert "gap in equalized odds gap</text>" not in page  # no row of some group is negative
