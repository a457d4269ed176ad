"""
Audit your model
================

You have a model that decides about people. Does it treat some of them worse, and how sure is
that? This lesson takes its predictions from a data frame to a page for a committee, and to a
table for a paper. You need ``pip install '.[audit]'`` in a clone, and nothing else.
"""

# %%
# The predictions
# ---------------
#
# A table with one row per person: what became true (``repaid``), the score of the model (the
# predicted probability that the loan is repaid), and the groups to compare. Here are 3,000
# simulated loans. In this world, women of the same income repay as often as men; the model,
# however, has learned to give women a lower score.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import fairbench

random = np.random.default_rng(7)
n = 3000
loans = pd.DataFrame(
    {
        "sex": random.choice(["women", "men"], n, p=[0.4, 0.6]),
        "age": random.choice(["under 40", "40 and over"], n),
        "income": random.normal(size=n),
    }
)
chance = 1 / (1 + np.exp(-0.4 - 1.2 * loans["income"]))
loans["repaid"] = (random.uniform(size=n) < chance).map({True: "yes", False: "no"})
unfair = 0.7 * (loans["sex"] == "women")
loans["score"] = 1 / (1 + np.exp(-0.4 - 1.2 * loans["income"] + unfair))
loans.head()

# %%
# The report
# ----------
#
# One call. ``positive="yes"`` says which label the score is the probability of; with labels 0 and
# 1 it can be left out. The last line shows the report, here as in a notebook.

report = fairbench.audit(
    loans,
    target="repaid",
    score="score",
    positive="yes",
    groups=["sex", "age"],
    name="loans",
)
report

# %%
# It opens with a summary: what was found, how sure that is, what was not looked at, and what to
# do next. A *gap* is the largest difference between two groups in a rate, such as the share of
# people who get a loan. Next to each stands its 95 % interval: how large the gap may be among all
# people of whom these 3,000 are a sample. A gap is called *large* only if the labels surely show
# more than 0.05 (``epsilon=0.02`` would ask for less), *small* only if they surely show less, and
# *open* in between. Open does not mean fair: it means that these labels cannot tell.
#
# The numbers
# -----------
#
# ``report.table`` has everything that was computed in one tidy data frame, a row for each metric
# and group, and more rows for what else is known of some: the column ``statistic`` says which is
# the value. Who is selected, and how surely?

values = report.table.query("statistic == 'value'")
rates = values.query("metric == 'selection_rate' and attribute == 'sex'")
rates[["group", "value", "lower", "upper", "n"]].round(3)

# %%
# ``report.tables`` has the tables of the page by their titles.

print("\n".join(report.tables))

# %%
# Figures
# -------
#
# Each is a drawing of the page as SVG: ``.savefig("gaps.svg")`` writes what a paper needs. The shaded
# band is what you said makes no practical difference.

report.figures["gaps"]

# %%
# Calibration asks whether a score means the same for everybody: among women with a score of one
# half, do half repay? Here more do. Their scores are too low.

report.figures["reliability of women"]

# %%
# Files
# -----
#
# A folder gets the page, the report for Word, in Markdown and in LaTeX, the numbers as CSV and
# JSON, and every figure as PNG, SVG and PDF. A name with an ending gets one of them:
# ``report.save("audit.html")``.

folder = report.save(Path(tempfile.mkdtemp()) / "audit")
print("\n".join(sorted(path.name for path in folder.iterdir())))

# %%
# From the command line
# ---------------------
#
# The same audit of a file, which may be CSV, Parquet or a spreadsheet:
#
# .. code-block:: sh
#
#    fairbench audit loans.csv target=repaid score=score positive=yes 'group=[sex,age]'
#
# Where to go next: with labels for only a few of your rows, read the next lesson. What a word of
# the report means, the :doc:`glossary </glossary>` says in one sentence.
