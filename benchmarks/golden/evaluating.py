"""Asking ``fairbench.evaluate``: a script of its own, as it runs with any tree's library.

It is started with the names of two JSON files: the questions, and the answers that it writes.
"""

from __future__ import annotations

import json
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
    """Answer the questions of one file in another, its tables beside it; say whose library did."""
    import fairbench

    folder, answers = Path(answered).parent, []
    for place, question in enumerate(json.loads(Path(asked).read_text())):
        answer = evaluated(question)
        refused, name = isinstance(answer, str), f"answer-{place}.parquet"
        if not refused:
            answer.to_parquet(folder / name)
        answers.append({"table": "" if refused else name, "refusal": answer if refused else ""})
    content = {"library": str(Path(fairbench.__file__).resolve()), "answers": answers}
    Path(answered).write_text(json.dumps(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
