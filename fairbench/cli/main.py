"""The command ``fairbench VERB name=value ...``: finds the verb, reads its options, runs it."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairbench.cli import command as cli
from fairbench.cli import extensions
from fairbench.cli.command import Command
from fairbench.cli.output import printed_errors, set_up_threads
from fairbench.core import VERSION
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.memory import limit_memory
from fairbench.core.processes import source_date

_FOLDER = Path(__file__).resolve().parent / "verbs"
# The verbs of fairbench itself, under the titles of the help.
EXTENSIONS = "Extensions"
SECTIONS: Mapping[str, Sequence[str]] = {
    "Audit predictions": ("audit", "gate"),
    "Run": ("data", "run"),
    "Compare finished runs": ("compare", "paper", "report", "table", "tradeoff"),
    "Results, MLflow and terms": ("completion", "explain", "store", "sync", "ui"),
    EXTENSIONS: (),
}
OWN_VERBS = {verb for verbs_of_it in SECTIONS.values() for verb in verbs_of_it}
# Those that are a class in the file of another.
_BESIDE = {
    "gate": "audit", "table": "compare", "tradeoff": "compare", "ui": "sync",
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit status: 0, 1 (failed), 2 (refused), 130 (stopped)."""
    set_up_threads()  # before numpy is imported
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a sign that the terminal does not have becomes ?
            stream.reconfigure(errors="replace")
    words = list(sys.argv[1:] if arguments is None else arguments)
    cli.TYPED.set(tuple(words))
    kept = "interrupted: finished cells are kept; the same command goes on"
    computing = bool(_COMPUTING & {*words})
    with printed_errors(kept if computing else "interrupted") as output:
        if arguments is None:  # this process runs nothing else
            # What models take is their configuration's.
            limit_memory(fits=computing)
            source_date()
        output.status = _call_of(words)() or 0
    return output.status


_COMPUTING = {"alternative", "paper", "resolve", "run", "tune"}


def run_command(words: list[str]) -> int:
    """Run a command line in this process, and raise what it refuses."""
    return _call_of(words)() or 0


def _call_of(words: list[str]) -> Callable[[], int | None]:
    """Return what runs the verb, the first word without ``=``; its options may stand before it."""
    plain = _plain(words)
    if words[:1] == ["--version"]:
        return partial(print, f"fairbench {VERSION}")
    if not plain:
        if words and not {*words} & {*cli.HELP}:
            raise UserError("no verb is given, such as report: fairbench --help lists them")
        return lambda: print(_overview())
    verb = plain[0]
    module = _module_of(verb)
    words.remove(verb)
    if hasattr(module, "main"):
        return partial(module.main, words)
    return partial(run_verb, f"fairbench {verb}", module, words)


def _plain(words: Sequence[str]) -> list[str]:
    """Return the words that are no options, and do not ask for help."""
    return [word for word in words if not ("=" in word or word in cli.HELP or word[:1] == "-")]


def _module_of(verb: str) -> Any:
    """Import the module of a verb, or the class beside another: our own, or of an extension.

    Raises
    ------
    UserError : there is no such verb; names the nearest.
    """
    if verb in OWN_VERBS:
        module = importlib.import_module(f"fairbench.cli.verbs.{_BESIDE.get(verb, verb)}")
        return getattr(module, verb) if verb in _BESIDE else module
    # Also those of extensions of ours that are not installed.
    others = {*extensions.added(extensions.VERBS), *extensions.OURS[extensions.VERBS]}
    if verb in others:
        return extensions.verb_module(verb)
    raise unknown_name("verb", verb, sorted({*OWN_VERBS, *others}))


def verbs() -> list[str]:
    """Return the verbs that there are: those of fairbench itself, and of extensions."""
    return sorted({*OWN_VERBS, *extensions.added(extensions.VERBS)})


def _overview() -> str:
    """Return the text of ``fairbench --help``, without importing any verb."""
    tables = {
        section: [(verb, _first_line(verb)) for verb in verbs_of_it]
        for section, verbs_of_it in SECTIONS.items()
    }
    tables[EXTENSIONS] = [(v, _of_extension(v)) for v in verbs() if v not in OWN_VERBS]
    widest = max(len(verb) for rows in tables.values() for verb, _ in rows)
    parts = ["fairbench VERB [name=value ...]", "Is this model fair, and how sure are we?"]
    parts += [f"{section}\n{cli.table(rows, widest)}" for section, rows in tables.items() if rows]
    more = "fairbench VERB --help lists what a verb takes; fairbench --version is the version."
    return "\n\n".join([*parts, more, cli.TERMS])


def _of_extension(verb: str) -> str:
    """Return the first sentence on a verb that an extension adds, or why it cannot be used."""
    problem = extensions.problem_of(verb)
    return f"({problem})" if problem else _first_line(verb)


def _first_line(verb: str) -> str:
    """Return the first line of the docstring on a verb, without importing it."""
    own = _FOLDER / f"{_BESIDE.get(verb, verb)}.py"
    path = own if verb in OWN_VERBS else extensions.file_of(verb)
    node: Any = ast.parse(path.read_text(encoding="utf-8") if path else "")
    if verb in _BESIDE:
        (node,) = (part for part in node.body if getattr(part, "name", "") == verb)
    return (ast.get_docstring(node) or "").partition("\n")[0]


def run_verb(name: str, module: Any, words: list[str]) -> int:
    """Run a verb, or the part of it that the words name; return the status.

    Parameters
    ----------
    name : as it is typed, such as ``fairbench report``.
    module : what has the verb's ``COMMAND`` or ``COMMANDS``, and its docstring.
    """
    text = module.__doc__ or ""
    if hasattr(module, "COMMAND"):
        command: Command = module.COMMAND
        return command.carry_out(words, name, text)
    commands: Mapping[str, Command] = module.COMMANDS
    asks_for_help = any(word in cli.HELP for word in words)
    part = next((word for word in _plain(words) if not (asks_for_help and word == cli.ALL)), "")
    of_verb = commands[""].declared.values() if "" in commands else ()
    takes_words = any(option.argument for option in of_verb)
    if part in commands and part:
        words.remove(part)
        return commands[part].carry_out(words, f"{name} {part}", commands[part].sentence)
    if part and not takes_words:
        raise unknown_name(f"part of {name}", part, filter(None, commands))
    if asks_for_help and not takes_words:
        print(cli.parts_help(name, text, commands))
        return 0
    if "" not in commands:
        raise UserError(f"{name} needs to be told what: {', '.join(commands)}")
    return commands[""].carry_out(words, name, text)
