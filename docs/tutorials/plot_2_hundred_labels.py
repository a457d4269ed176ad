"""
100 labels and a black box
==========================

A vendor gives you the scores of a model, and not the model. Labels are scarce: somebody has to
find out what became true of each person. What can be said with 100 labels, how many more would
settle the rest, and whom should you ask about next?
"""

# %%
# 5,000 scores, and 100 labels
# ----------------------------
#
# Rows without a label stay in the table, with an empty value. Everything that needs no label,
# such as who is selected, is known from all 5,000 rows.

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import fairbench

random = np.random.default_rng(3)
n = 5000
people = pd.DataFrame(
    {"group": random.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2])}
)
truth = random.uniform(0.05, 0.95, n)
people["score"] = truth.round(3)
# In the east, fewer are positive than the scores say.
lower = 0.5 * (people["group"] == "east")
labels = (random.uniform(size=n) < truth - lower * truth).astype(int)
order = random.permutation(n)
known = order[:100]
people["label"] = labels.iloc[known].reindex(range(n)).astype("Int64")
int(people["label"].notna().sum())

# %%
# What 100 labels can say
# -----------------------
#
# The verdicts rest on the labels. Scores help as far as they have foretold labels within each
# group, so that a black box that is wrong about a group cannot hide it.

report = fairbench.audit(people, target="label", score="score", groups="group")
report

# %%
# All questions are *open*: that is the honest answer of 100 labels.

columns = [
    "gap in",
    "size",
    "95 % interval lower",
    "95 % interval upper",
    "verdict",
]
gaps = report.tables["Gaps between groups"]
gaps[columns].round(3)

# %%
# How many more labels would settle a question hangs on the true gap. So each number supposes one
# that the interval leaves possible, and settles the question in four cases of five if that is the
# true gap. To show that no groups differ by 0.05, even all 4,900 other labels are too few; to show
# a gap of 0.2, some 900 to 1,400 will do.

report.tables["What would settle what is open"]

# %%
# Somebody finds out what became true of 900 more. Now two questions are settled: the precision and
# the false positive rate differ by more than 0.05.

more = order[:1000]
people["label"] = labels.iloc[more].reindex(range(n)).astype("Int64")
report = fairbench.audit(people, target="label", score="score", groups="group")
gaps = report.tables["Gaps between groups"]
gaps[columns].round(3)

# %%
# Before there are any data
# -------------------------
#
# ``fairbench audit plan`` answers the question of a budget: three groups, a true positive rate of
# about 0.7 among half of the people, and a gap of 0.1 that must not be missed.


def command(*words: str) -> None:
    """Run a command of fairbench as a terminal does, and print the beginning of what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "fairbench", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    print("\n".join((done.stdout + done.stderr).splitlines()[:32]))


command("audit", "plan", "groups=[0.6,0.3,0.1]", "rate=0.7", "gap=0.1", "among=0.5")

# %%
# Whom to ask about next
# ----------------------
#
# Labels drawn at random go mostly to the largest group, of which most is known already.
# ``fairbench label next`` names the rows whose labels settle most, and why. Its state is a small
# file, so that you can stop and go on whenever you like.

folder = Path(tempfile.mkdtemp())
people.drop(columns="label").assign(label="").to_csv(
    folder / "people.csv", index=False
)
state = f"state={folder / 'audit.json'}"
command(
    "label",
    "next",
    str(folder / "people.csv"),
    "target=label",
    "score=score",
    "positive=1",
    "group=group",
    state,
    "n=5",
)

# %%
# Answers are given as ``fairbench label ask state=audit.json 17=1 18=0``, from a file, or one by
# one in a dialogue; ``fairbench label report`` is the audit so far, with intervals that hold
# whenever you stop. :doc:`/generated/extensions/label` has what was measured.
