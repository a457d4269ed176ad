"""The command ``fairbench VERB name=value ...``: finds the verb, reads its options, runs it."""

from __future__ import annotations

import ast
import gc
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from fairbench.cli.command import ALL, TERMS, TYPED, Command, command_help, parts_help, table
from fairbench.cli.options import options_of, read
from fairbench.cli.output import outputs, print_failure
from fairbench.core import VERSION
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.failures import failure
from fairbench.core.memory import check_address_space, limit_memory
from fairbench.core.processes import source_date

INTERRUPTED = 130
_HELP = ("--help", "-h", "help")
_FOLDER = Path(__file__).resolve().parent / "verbs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit status: 0, 1 (failed), 2 (refused), 130 (stopped)."""
    _prepare_process()
    words = list(sys.argv[1:] if arguments is None else arguments)
    TYPED.set(tuple(words))
    return call_command(partial(_run_alone if arguments is None else run_command, words))


_COMPUTING = {"alternative", "paper", "run", "tune"}


def _run_alone(words: list[str]) -> int:
    """Run a verb in a process of its own, which takes no more memory than is allowed.

    Those that fit models are left alone: what they take is their configuration's.
    """
    check_address_space()
    source_date()
    if not _COMPUTING & {*words}:
        limit_memory()
    return run_command(words)


def call_command(command: Callable[[], int]) -> int:
    """Call a command, print in a line why it could not be done, and return the exit status."""
    with outputs() as written:
        return written.status(_status(command))


def _status(command: Callable[[], int]) -> int:
    """Return the exit status of a command; print why, where it was refused."""
    try:
        return command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BaseException as error:  # of a component, which may raise anything
        reason, trace = failure(error)
        return print_failure(" ".join(reason.split()), trace)


def run_command(words: list[str]) -> int:
    """Run the verb that is the first word without ``=``; its options may stand before it."""
    help_words = [word for word in words if word in _HELP]
    plain = [word for word in words if not ("=" in word or word in _HELP or word[:1] == "-")]
    if words[:1] == ["--version"]:
        print(f"fairbench {VERSION}")
        return 0
    if not plain:
        if words and not help_words:
            raise UserError("no verb is given, such as report: fairbench --help lists them")
        print(overview())
        return 0
    verb = plain[0]
    if verb not in verbs():
        raise unknown_name("verb", verb, verbs())
    words.remove(verb)
    module = importlib.import_module(f"fairbench.cli.verbs.{verb.replace('-', '_')}")
    return _run_verb(f"fairbench {verb}", module, words)


def verbs() -> list[str]:
    """Return the verbs, one for each file of the package."""
    names = (path.stem.replace("_", "-") for path in _FOLDER.glob("*.py"))
    return sorted(name for name in names if not name.startswith("-"))


def overview() -> str:
    """Return the text of ``fairbench --help``, without importing any verb."""
    by_section: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
    for verb in verbs():
        section, sentence = section_and_sentence(verb)
        by_section.setdefault(section, []).append((verb, sentence))
    widest = max(map(len, verbs()))
    return "\n\n".join(
        [
            "fairbench VERB [name=value ...]",
            "Is this model fair, and how sure are we?",
            *(f"{section}\n{table(rows, widest)}" for section, rows in by_section.items()),
            "fairbench VERB --help lists what a verb takes; fairbench --version is the version.",
            TERMS,
        ]
    )


# In the order of the help; each verb's file names its section.
SECTIONS = (
    "Audit predictions",
    "Run and tune",
    "Compare finished runs",
    "Results, MLflow and terms",
)


def section_and_sentence(verb: str) -> tuple[str, str]:
    """Return the section that a verb's file names, and the first sentence of its docstring."""
    source = ast.parse((_FOLDER / f"{verb.replace('-', '_')}.py").read_text(encoding="utf-8"))
    declared = (
        node.value.value
        for node in source.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "SECTION"
        and isinstance(node.value, ast.Constant)
    )
    sentence = (ast.get_docstring(source) or "").partition("\n")[0]
    return str(next(declared, "Other")), sentence


def _run_verb(name: str, module: ModuleType, words: list[str]) -> int:
    """Run a verb, or the part of it that the words name; return the status."""
    if hasattr(module, "main"):
        return int(module.main(words))
    text = module.__doc__ or ""
    if hasattr(module, "COMMANDS"):
        commands: Mapping[str, Command] = module.COMMANDS
        asks_for_help = any(word in _HELP for word in words)
        part_words = (
            word for word in words if not ("=" in word or word in _HELP or word[:1] == "-")
        )
        part = next(part_words, "")
        if asks_for_help and part == ALL:
            part = ""
        if "" in commands and commands[""].takes_argument:
            part = part if part in commands else ""
        elif not part and (asks_for_help or "" not in commands):
            return _no_part(name, text, commands, asked=asks_for_help)
        if part and part not in commands:
            raise _unknown_part(name, part, commands)
        if part:
            words.remove(part)
            name = f"{name} {part}"
            text = commands[part].sentence
        return run_words(name, text, commands[part], words)
    return run_words(name, text, module.COMMAND, words)


def _unknown_part(verb: str, part: str, commands: Mapping[str, Command]) -> UserError:
    """Return the error for a word that is no part of a verb; a file is what parts are given."""
    of_files = [name for name, each in commands.items() if "path" in options_of(each.options)]
    if of_files and Path(part).is_file():
        return UserError(
            f"{verb} needs to be told what to do with {part}: {', '.join(of_files)}; such as "
            f"{verb} {of_files[0]} {part}"
        )
    return unknown_name(f"part of {verb}", part, filter(None, commands))


def run_words(name: str, text: str, command: Command, words: Sequence[str]) -> int:
    """Do what the words ask of a command, or print its help; return the exit status.

    Parameters
    ----------
    name : as it is typed, such as ``fairbench report``.
    text : what the command does, for its help.

    Raises
    ------
    UserError : the words cannot be read, or what they ask for cannot be done.
    """
    if any(word in _HELP for word in words):
        print(command_help(name, text, command, whole=ALL in words))
        return 0
    return command.carry_out(read(command.options, words))


def _no_part(name: str, text: str, commands: Mapping[str, Command], *, asked: bool) -> int:
    if not asked:
        raise UserError(f"{name} needs to be told what: {', '.join(commands)}")
    print(parts_help(name, text, commands))
    return 0


def _prepare_process() -> None:
    """Set up what must be set before numpy is imported, and what a terminal may not be able to."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # parallelism is over processes, and bits must not depend on it
    # Importing allocates much and frees nothing: a tenth of the start is the collector looking.
    gc.set_threshold(1_000_000, 20, 100)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a sign that the terminal does not have becomes ?
            stream.reconfigure(errors="replace")
