"""Commands with a gate: the policy, the files they write, the exit status, GitHub's Action."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairbench.cli.main import main
from fairbench.cli.output import USER_ERROR, print_line
from fairbench.core.errors import UserError, refused
from fairbench.core.options import option
from fairbench.core.text import markdown

if TYPE_CHECKING:
    from fairbench.evaluation.gate import Gate

T = TypeVar("T")


@dataclass(frozen=True)
class GateFiles:
    """The options of a gate that name files."""

    policy: str = option(
        "",
        "A YAML file of options and conditions, one per line, which Python and pytest read, too; "
        "options of the command line override those in the file.",
        shown="FILE.yaml",
    )
    junit: str = option("", "With fail_if=: a file for the verdict as JUnit's XML.",
                        shown="FILE.xml")  # fmt: skip
    sarif: str = option("", "With fail_if=: a file for the verdict in SARIF 2.1.0.",
                        shown="FILE.sarif")  # fmt: skip
    # What a policy that serves an audit as well says of options that this command has not.
    of_audits: Mapping[str, Any] = field(default_factory=dict)


def with_policy(options: T, declared: type) -> T:
    """Return the options of a command, with those of its policy that it does not give itself.

    Parameters
    ----------
    declared : the dataclass of options that a policy may give.
    """
    current: Any = options
    if not current.policy:
        return options
    from fairbench.audits.calls import policy_of

    values = {
        name: value
        for name, value in policy_of(current.policy, declared).items()
        if name not in current.given
    }
    of_audits = {name: values.pop(name) for name in [*values] if not hasattr(current, name)}
    given = current.given | values.keys()
    changed: T = replace(current, **values, of_audits=of_audits, given=given)
    return changed


def check_asked(options: Any) -> None:
    """Refuse verdict files without a condition, or in the place of an input file."""
    taken_paths = [realpath(name) for name in (options.path, options.policy) if str(name)]
    for name in ("junit", "sarif"):
        file = getattr(options, name)
        if file and not options.fail_if:
            raise UserError(f"{name}= is of a gate: give a condition, fail_if='impact_ratio<0.8'")
        if file and realpath(file) in taken_paths:
            raise UserError(f"{name}={file} would be written over a file that is read or written")
        taken_paths += [realpath(file)] if file else []


def settle(gate: Gate, options: Any, path: Path) -> int:
    """Write the verdict in the requested forms, print it, and return the exit status.

    Parameters
    ----------
    path : the file that was judged.
    """
    from fairbench.core.files import write_text
    from fairbench.reporting.gate_files import to_junit, to_sarif

    name = path.as_posix()
    try:
        if options.junit:
            write_text(Path(options.junit), to_junit(gate, name), mode=0o600)
        if options.sarif:
            write_text(Path(options.sarif), to_sarif(gate, name), mode=0o600)
    except OSError as error:
        raise UserError(f"not written: {refused(error)}") from error
    print_line(gate.line)
    return gate.exit_status


# The command of the GitHub Action: a gate whose options come from environment variables.
#
# Inputs of the action are variables, so that no shell ever reads them. The verdict is the exit
# status of ``fairbench gate``; it also becomes an annotation, the outputs ``outcome`` and
# ``line``, and a section of the job's summary.

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
    print(f"::{kind} title=fairbench::{_message(line)}")
    _append(environment.get("GITHUB_OUTPUT"), _output("outcome", outcome) + _output("line", line))
    _append(
        environment.get("GITHUB_STEP_SUMMARY"), f"### fairbench: {outcome}\n\n{markdown(line)}\n"
    )
    return status


def _message(text: str) -> str:
    """Return a text as a command of a workflow has it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


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
