"""``fairbench paper W table=N run=true quick=true``, as a reader gives it: nothing is replaced.

It is started in a clone and from the wheel in an empty folder, until it has stored a result, by
``make test-slow``: every table and figure.
"""

import pytest

from fairbench.components.papers.engine.mapping import Paper, papers_in
from tests import warm
from tests.conformance import trees
from tests.harness import ROOT

PAPERS = papers_in(ROOT / "papers")
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


def started(place, *words):
    """Start a command of a paper until it has stored more; return what is wrong, if anything."""
    folder, tree = place
    before = stored(folder / "results")
    done = warm.run(
        ["-m", "fairbench", "paper", *words, "run=true", "quick=true"], cwd=folder, tree=tree,
        timeout=SECONDS, fresh=True, environment={"FAIRBENCH_DATA": trees.raw_files()},
        until=lambda *_: stored(folder / "results") > before,
    )  # fmt: skip
    missing = "the raw file" in done.stderr and not trees.raw_files()
    works = missing or done.returncode == 0 or stored(folder / "results") > before
    said = f"{' '.join(words)}: exit {done.returncode}, {done.stdout}{done.stderr}"
    return "" if works and "Traceback" not in done.stderr else said


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_table_and_figure_of_a_paper_is_run(name, place):
    paper = Paper.read(name, ROOT / "papers")
    asked = [f"table={table}" for table in paper.tables]
    asked += [f"figure={figure}" for figure in paper.figures]
    told = list(filter(None, (started(place, name, word) for word in asked)))
    print(f"{name}: {len(asked) - len(told)} of {len(asked)} start")
    assert not told, f"{len(told)} of {len(asked)} do not start:\n" + "\n\n".join(told)
