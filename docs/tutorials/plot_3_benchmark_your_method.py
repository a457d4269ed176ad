"""
Benchmark your method
=====================

You have an idea for measuring a model's uncertainty. This lesson adds it to
fairbench as one Python file and one line of YAML, runs it beside existing methods on the same
splits, and reads the results.
"""

# %%
# The method
# ----------
#
# A method says how models are fitted and how their outputs are read. This one fits a plain model
# and calls it the less certain, the nearer its probability is to one half.

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import fairbench
from fairbench.results import Catalogue

root = Path(fairbench.__file__).resolve().parents[1]
method = (root / "docs/examples/method/margin.py").read_text()
print(method)

# %%
# Where it goes
# -------------
#
# The Python file goes to ``algorithms/methods``, and the line that names it to ``conf/method``: of
# the checkout, or of any folder that you work in, such as this empty one.

folder = Path(tempfile.mkdtemp())
new = {
    "algorithms/methods/margin.py": method,
    "conf/method/margin.yaml": "_target_: algorithms.methods.margin.Margin\n",
}
for name, text in new.items():
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(text)

# %%
# A sweep
# -------
#
# One command runs it beside two others. Every method gets the same rows in the same splits, and
# models that several methods need are fitted once.

words = (
    "-m", "method=margin,baseline,selective_ensemble", "dataset.n_samples=1000", "split.repeats=4",
    "figures=false", "tracking=none",
)  # fmt: skip
done = subprocess.run(
    [sys.executable, "-m", "fairbench", "run", *words],
    cwd=folder, env={**os.environ, "PYTHONPATH": str(root)},
    capture_output=True, text=True, check=True,
)  # fmt: skip
print(done.stdout)

# %%
# The results
# -----------
#
# Finished runs lie in the folder ``results``, and are found by what they are made of.

runs = Catalogue(folder / "results")
runs

# %%
# Every metric of every run is in one data frame. When people about whom the model is unsure are
# left without a decision, does the error of the others fall?

names = {run.id: run.choices["method"] for run in runs}
asked = "metric == 'abstention_error_rate' and attribute == 'group' and group == ''"
left_out = runs.metrics.query(asked)
by_method = left_out["run"].map(names).astype(str).rename("method")
means = left_out.groupby([by_method, "rate"])["value"].mean()
means.unstack("rate").iloc[:, ::2].round(3)

# %%
# The columns are the share of people left out, the values the error rate of the others.
#
# Each combination that cannot work, such as a
# method that needs probabilities with a learner that has none, is refused in a sentence. Losses,
# learners, interventions, data sets and metrics are added in the same way: ``docs/examples`` has
# one of each.
