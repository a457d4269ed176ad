"""What the GitHub Action runs: a gate whose options come from environment variables.

Inputs of the action are variables, so that no shell ever reads them. The verdict is the exit status
of ``fairbench gate``; it also becomes an annotation, the outputs ``outcome`` and ``line``, and a
section of the job's summary.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from fairbench.cli.main import main
from fairbench.cli.output import USER_ERROR
from fairbench.core.text import markdown

# Exit status of a gate -> its name in the action's outputs and annotations.
_OUTCOMES = {0: ("passes", "notice"), 1: ("fails", "error"), 3: ("open", "error")}
_INPUTS = ("policy", "fail_if", "require", "junit", "sarif")


def arguments(environment: Mapping[str, str]) -> list[str]:
    """Return the words of ``fairbench gate`` that the inputs of the action mean.

    ``INPUT_OPTIONS`` has one ``name=value`` a line.
    """
    inputs = {name: environment.get(f"INPUT_{name.upper()}", "").strip() for name in _INPUTS}
    predictions = environment.get("INPUT_PREDICTIONS", "").strip()
    lines = environment.get("INPUT_OPTIONS", "").splitlines()
    return [
        *([f"path={predictions}"] if predictions else []),
        *[f"{name}={value}" for name, value in inputs.items() if value],
        *filter(None, map(str.strip, lines)),
    ]


def act(environment: Mapping[str, str]) -> int:
    """Judge, tell GitHub, and return the exit status."""
    printed = StringIO()
    with redirect_stdout(printed):
        status = main(["gate", *arguments(environment)])
    text = printed.getvalue()
    sys.stdout.write(text)
    outcome, kind = _OUTCOMES.get(status, ("refused", "error"))
    line = (text.strip().splitlines() or ["the gate was refused: the log says why"])[-1]
    if status == USER_ERROR or not text.strip():
        outcome, line = "refused", "the gate was refused: the log says why"
    message = line.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{kind} title=fairbench::{message}")
    _append(environment.get("GITHUB_OUTPUT"), _output("outcome", outcome) + _output("line", line))
    _append(
        environment.get("GITHUB_STEP_SUMMARY"), f"### fairbench: {outcome}\n\n{markdown(line)}\n"
    )
    return status


def _output(name: str, value: str) -> str:
    """Return an output as the file of outputs has it; nothing in a value can end it."""
    end = f"end_{secrets.token_hex(8)}"
    return f"{name}<<{end}\n{value}\n{end}\n"


def _append(path: str | None, text: str) -> None:
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(act(os.environ))
