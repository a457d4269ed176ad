"""Parts that commands with a gate share: the policy, the files they write, the exit status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairbench.cli.output import print_line
from fairbench.core.errors import UserError, refused
from fairbench.core.options import option

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


def with_policy(options: T, declared: type) -> T:
    """Return the options of a command, with those of its policy that it does not give itself.

    Parameters
    ----------
    declared : the dataclass of options that a policy may give.
    """
    current: Any = options
    if not current.policy:
        return options
    from fairbench.audits.gate.policy import policy_of

    values = {
        name: value
        for name, value in policy_of(current.policy, declared).items()
        if name not in current.given
    }
    changed: T = replace(current, **values, given=current.given | values.keys())
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
