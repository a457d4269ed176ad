"""
Compare and choose
==================

Several models, each with and without a fairness intervention: which one is better, is that more
than chance, and how fair is the one that looks fairest?
"""

# %%
# Some runs
# ---------
#
# ``fairbench.run`` takes the words of the command line and returns the finished run. The same
# words a second time fit nothing: they return what is stored.

import subprocess
import sys
import tempfile

import fairbench
from fairbench.results import Catalogue

results = f"results={tempfile.mkdtemp()}"
common = [
    "dataset.n_samples=1500",
    "split.repeats=5",
    "figures=false",
    "tracking=none",
    results,
]
for choice in (
    ["method=baseline"],
    ["method=baseline", "intervention=reweighing"],
    ["method=ensemble"],
    ["method=baseline", "learner=logistic_regression"],
):
    run = fairbench.run([*common, *choice])
    print(run.id, run.name)

# %%
# All of them in one table. The gap is of the headline attribute: the mean of the splits' gaps.

runs = Catalogue(run.results)
runs

# %%
# Which is better?
# ----------------
#
# Runs of the same data and splits are compared row by row, so that what is hard for every model
# does not blur the difference. A difference under 0.01 counts as none unless you say otherwise.


def command(*words: str) -> None:
    """Run a command of fairbench as a terminal does, and print what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "fairbench", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout + done.stderr)


command("compare", "runs=all", results)

# %%
# Which is the fairest?
# ---------------------
#
# The fairest of several runs looks fairer than it is, because it was chosen for that. ``fairbench
# choose`` corrects for it, and names the runs that cannot be told from the one it chose.

command("choose", "objective=equalized_odds", results)

# %%
# The same question as a picture: error against fairness, each run with the region that it may lie
# in. ``fairbench tradeoff`` writes it as a page; ``fairbench report`` makes one page of every
# finished run.
