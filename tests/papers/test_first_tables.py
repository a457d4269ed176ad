"""``fairbench paper W table=N run=true quick=true``, as a reader gives it: nothing is replaced.

It is started in a clone and from the wheel in an empty folder, until it has stored a result.
"""

import pytest

from fairbench.reporting.papers.mapping import Paper, papers_in
from tests import warm
from tests.conformance import trees
from tests.harness import ROOT

PAPERS = [Paper.read(name, ROOT / "papers") for name in papers_in(ROOT / "papers")]
FIRST = [(paper.name, next(iter(paper.tables))) for paper in PAPERS if paper.tables]
SECONDS = 250


@pytest.fixture(scope="module", params=["clone", "wheel"])
def place(request, tmp_path_factory):
    """Return the folder that commands are given in, and the one that has ``fairbench``."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "clone":
        tree = trees.clone(folder / "clone")
        return tree, tree
    (folder / "empty").mkdir()
    return folder / "empty", trees.wheel(folder)


def stored(results):
    """Return the results in a folder: finished runs and fits, and numbers of papers."""
    patterns = ("runs/*", "cells/*/*", "papers/*/*.csv", "report/*/*/*")
    return {path for pattern in patterns for path in results.glob(pattern)}


@pytest.mark.thorough
@pytest.mark.parametrize(("paper", "table"), FIRST, ids=lambda value: value)
def test_a_first_table_is_run(place, paper, table):
    folder, tree = place
    words = ["-m", "fairbench", "paper", paper, f"table={table}", "run=true", "quick=true"]
    before = stored(folder / "results")
    done = warm.run(
        words, cwd=folder, timeout=SECONDS, tree=tree, fresh=True,
        environment={"FAIRBENCH_DATA": trees.raw_files()},
        until=lambda _: stored(folder / "results") > before,
    )  # fmt: skip
    missing = "the raw file" in done.stderr and not trees.raw_files()
    assert missing or stored(folder / "results") > before, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
