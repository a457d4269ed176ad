"""Asking ``fairbench.evaluate``: a script of its own, as it runs with any tree's library.

It is started with the names of two files: the questions in JSON, and a pickle of its answers.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# What the library raises for what its user can mend, by name: where it lies differs by tree.
REFUSAL = "UserError"


def evaluated(question: Mapping[str, Any]) -> Any:
    """Return the table that answers a question, or the sentence that refuses it."""
    import fairbench

    try:
        evaluator = fairbench.Evaluator(**question["evaluator"])
        return fairbench.evaluate(**question["arguments"], evaluator=evaluator)
    except Exception as error:
        if type(error).__name__ != REFUSAL:
            raise
        return str(error)


def main(asked: str, answered: str) -> None:
    """Answer the questions of one file in another; say whose library did."""
    import fairbench

    answers = [evaluated(question) for question in json.loads(Path(asked).read_text())]
    Path(answered).write_bytes(pickle.dumps((fairbench.__file__, answers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
