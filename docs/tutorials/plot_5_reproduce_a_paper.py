"""
Reproduce a paper
=================

A published table, and the same numbers from your own computer beside it. The example is Table 1
of *Uncertainty as a Fairness Measure* (Kuzucu, Cheong, Gunes and Kalkan, JAIR 2024), whose data
sets are simulated, so that nothing has to be downloaded.
"""

# %%
# What was printed
# ----------------
#
# The numbers of every paper lie in ``papers/<paper>/published.csv``, one per row, with the
# run that each is claimed of.

import tempfile
from pathlib import Path

import pandas as pd

import fairbench
from fairbench.results import Catalogue

root = Path(fairbench.__file__).resolve().parents[1]
published = pd.read_csv(
    root / "papers/uncertainty_fairness/published.csv", dtype={"table": str}
)
wanted = {
    "accuracy": "accuracy",
    "epistemic": "epistemic_uncertainty",
    "aleatoric": "aleatoric_uncertainty",
}
printed = published.query("table == '1' and dataset == 'sd1' and metric in @wanted")
printed = printed.set_index(["metric", "setting"])["value"].unstack()
printed

# %%
# What we find
# ------------
#
# The paper's setting is an *experiment*: a file in ``conf/experiment`` that composes the data,
# the learner and the method. The printed numbers are of one simulated population. We draw four,
# since a number that changes from one population to the next says little about the model.

results = tempfile.mkdtemp()
for seed in range(4):
    run = fairbench.run(
        [
            "experiment=uncertainty_fairness/sd1_3",
            "dataset=sd1",
            f"dataset.seed={seed}",
            "tracking=none",
            f"results={results}",
        ]
    )
runs = Catalogue(Path(results))
ours = runs.metrics.query(
    "metric in @wanted.values() and statistic == 'value' "
    "and attribute == 'group' and group != ''"
)
names = {name: short for short, name in wanted.items()}
ours = ours.assign(
    metric=ours["metric"].astype(str).map(names),
    setting="group=" + ours["group"].astype(str),
)
summary = ours.groupby(["metric", "setting"])["value"].agg(["min", "mean", "max"])
summary.unstack().round(4)

# %%
# Beside one another
# ------------------
#
# A printed number of one population is matched if it lies among those of the populations that we
# drew. With four of them this is a first look. The verdicts of the project rest on twenty.

beside = summary.assign(printed=printed.stack())
beside["among ours"] = beside["printed"].between(
    beside["min"] - 0.005, beside["max"] + 0.005
)
beside.round(4)

# %%
# The whole paper
# ---------------
#
# One command runs all of a paper's tables and sets the printed numbers beside ours, each with a
# verdict: it *agrees* if the two means differ by at most two standard errors and half a printed
# digit. If it does not, we look for the one setting that, changed, makes it agree, and run it: the
# *cause* of the difference. What has none is *unexplained*.
#
# .. code-block:: sh
#
#    fairbench paper uncertainty_fairness table=1 run=true
#
# A number that does not agree is no accusation: :doc:`/deviations` lists where we knowingly differ,
# and :doc:`/findings` what came out. ``make help`` lists the other papers, and how long each
# takes.
