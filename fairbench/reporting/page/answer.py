"""The page's question answered: which of some stored runs is better, from their predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbench.comparison.runs import every_pair
from fairbench.comparison.settings import Settings
from fairbench.comparison.stored_runs import StoredRun, load_run
from fairbench.core.errors import UserError
from fairbench.inference.all_pairs import Pairs
from fairbench.reporting.page.better import Compared, Question
from fairbench.results.runs import RunFolder


def answer(question: Question, results: Path, conf: Path) -> Compared:
    """Compare stored runs, pair by pair; those that cannot be read are left out with the reason."""
    runs: list[StoredRun] = []
    left_out = []
    for id_ in question.ids:
        try:
            runs.append(load_run(RunFolder(results / "runs" / id_), conf))
        except UserError as error:
            left_out.append(str(error))
    settings = Settings(question.objectives, question.rope, draws=question.draws)
    try:
        return Compared([run.id for run in runs], every_pair(runs, settings), left_out)
    except UserError as error:
        nothing = np.empty((0, 0))
        return Compared([], Pairs(nothing, nothing, nothing), [*left_out, str(error)])
