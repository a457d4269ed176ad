"""A command: the dataclass of its options, the function that is called with it, and its help."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairbench.cli.options import Option, options_of, value_shown
from fairbench.components import CHECKOUT, HOME, is_installed
from fairbench.core.errors import UserError, note, unknown_name
from fairbench.core.options import option
from fairbench.results.record import PURPOSES

if TYPE_CHECKING:
    from fairbench.results.catalogue import Catalogue

T = TypeVar("T")
# The words of the current command line, as they were typed.
TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


def default_results() -> Path:
    """Return ``results``: in a checkout as it is, elsewhere with the folder that one is in.

    Every command names the folder that it read or wrote, so that outside a checkout the whole path
    is printed.
    """
    is_checkout = Path("conf", "config.yaml").is_file()
    return Path("results") if is_checkout else Path.cwd() / "results"


@dataclass(frozen=True)
class Results:
    """The option ``results=``, which every command has."""

    results: Path = option(
        default_results, "The folder of runs, cells and reports.", shown="FOLDER"
    )


def purposes() -> Any:
    """Return the option ``purpose=``, for commands that compare many runs."""
    return option(
        (),
        "Runs that were made for one of these; by default demos and tuning are left out.",
        shown="[demo|tuning|paper|study,...]",
        choices=PURPOSES,
    )


def check_keys(pairs: Sequence[tuple[str, str]], *others: str) -> None:
    """Refuse words that select runs by unknown keys; `others` are options of the command.

    Raises
    ------
    UserError : an unknown key; names the nearest.
    """
    from fairbench.results.catalogue import KEYS

    for name, _ in pairs:
        if name not in KEYS and "." not in name:
            raise unknown_name("key", name, [*KEYS, *others, "results"])


def with_note(runs: Catalogue, left_out: str) -> Catalogue:
    """Return the runs, after printing a note on those left out, if any, on the error stream."""
    if left_out:
        note(left_out)
    return runs


SUMMARY, ALL = "summary", "all"


@dataclass(frozen=True)
class Printed:
    """The option ``detail=`` of commands that print a report."""

    detail: str = option(
        SUMMARY,
        "What is printed: the summary, in at most 60 lines, or all that is on the page.",
        choices=(SUMMARY, ALL),
    )


def typed_command() -> str:
    """Return the current command line, quoted so that it can be pasted into a shell."""
    import shlex

    return shlex.join(("fairbench", *TYPED.get()))


def narrow_options(options: Any, kind: type[T]) -> T:
    """Return the part of a command's options that a parent dataclass declares."""
    declared = fields(kind)  # type: ignore[arg-type]
    return kind(**{field.name: getattr(options, field.name) for field in declared})


# The command that makes a file of a run's predictions.
EXPORTED = "fairbench store export {} run.csv, and then this command with run.csv"


def check_predictions(path: Path, of_run: str) -> None:
    """Refuse a file of predictions that is not there, before its columns are asked for.

    Parameters
    ----------
    of_run : the command that does the same, or comes first, for a finished run; ``{}`` is its id.

    Raises
    ------
    UserError : there is no such file; names similar ones, or the command if it looks like an id.
    """
    from fairbench.data.any_table import check_file

    if re.fullmatch("[0-9a-f]{3,12}", str(path)) and not path.exists():
        command = of_run.format(path)
        raise UserError(
            f"{path} is not a file of predictions; if it is a finished run, give {command}"
        )
    check_file(path)


def check_folder(out: Path, *, new: bool = False) -> None:
    """Refuse a path that cannot become a folder, before anything is computed.

    Parameters
    ----------
    new : whether to leave it to the caller to refuse an existing file at `out`.

    Raises
    ------
    UserError : it is a file, or lies under one or in a pack.
    """
    from fairbench.results.packs import is_pack

    for path in (*([out] if not new else []), *out.parents):
        if path.exists() and not path.is_dir():
            raise UserError(f"out={out}: {path} is a file; name another place, out=FOLDER")
        if is_pack(path):
            raise UserError(
                f"out={out}: {path} is a pack, which stays as it is; name a place beside it"
            )


def components_folder(*, writing: str = "") -> Path:
    """Return the folder that has ``conf``, ``datasets``, ``algorithms`` and ``papers``.

    Parameters
    ----------
    writing : what is written into ``docs`` beside them, if anything: the folder is then the
        checkout itself, which has ``docs``, too.

    Raises
    ------
    UserError : something is to be written, and this is an installed package.
    """
    if writing and is_installed():
        raise UserError(f"{writing} is written into a checkout: clone the repository for that")
    return CHECKOUT if writing else HOME


def check_run_words(names: Sequence[str], own: Sequence[str], root: Path) -> None:
    """Refuse words of a command that are no option of it, nor of a run.

    Parameters
    ----------
    own : the options of the command.
    root : the folder that has ``conf``.

    Raises
    ------
    UserError : an unknown name; the message has the nearest.
    """
    from fairbench.cli.choices import options_of_run

    valid = options_of_run(root / "conf")
    for name in names:
        group = re.split("[./]", name)[0]
        if group not in (*valid, "hydra"):
            raise unknown_name("option", group, [*own, *valid])


_WIDTH = 100
_COLUMN = 30
TERMS = "fairbench explain TERM says what a term means; docs/glossary.md has all of them."


@dataclass(frozen=True)
class Command:
    """A verb, or a part of one: its name, its options, its function and its examples.

    Attributes
    ----------
    options : a frozen dataclass whose fields are made with `fairbench.core.options.option`.
    run : a function of an instance that returns the exit status; None stands for 0.
    examples : complete command lines, shown by ``--help``.
    sentence : a sentence on a part of a verb; that on a whole verb is the docstring of its file.
    holds : whether garbage collection of the results folder is locked out while it runs.
    """

    options: type[Any]
    run: Callable[[Any], int | None]
    examples: Sequence[str] = ()
    sentence: str = ""
    holds: bool = True

    @property
    def takes_argument(self) -> bool:
        """Whether a word without ``name=`` is a value."""
        return any(option.argument for option in options_of(self.options).values())

    def carry_out(self, options: Any) -> int:
        """Do what the options ask for, and return the exit status."""
        from fairbench.core.locks import using
        from fairbench.results.packs import is_pack

        folder = getattr(options, "results", None)
        if folder is None or not self.holds or is_pack(folder):
            return self.run(options) or 0
        with using(folder, make=False):
            return self.run(options) or 0


def command_help(name: str, text: str, command: Command, *, whole: bool = False) -> str:
    """Return the help text of a command.

    If its options declare which are the `usual` ones, the others are listed by name alone, unless
    `whole` is true.

    Parameters
    ----------
    name : as it is typed, such as ``fairbench report``.
    text : what the command does, the first sentence in a line of its own.
    """
    all_options = list(options_of(command.options).values())
    all_options.sort(key=lambda option: option.name == "results")  # common to all commands: last
    arguments = [option for option in all_options if option.argument]
    by_name = [option for option in all_options if not option.argument]
    words = [
        *(f"[{_argument(argument)}]" for argument in arguments),
        *(["[OPTION=VALUE ...]"] if all_options else []),
    ]
    parts = [" ".join([name, *words]), text.strip().replace("``", "")]
    if arguments:
        rows = [
            (_argument(argument), argument.metadata["sentence"] + _by_name(argument))
            for argument in arguments
        ]
        parts.append("Arguments\n" + table(rows))
    seldom = () if whole else _seldom_used(command.options)
    usual = [option for option in by_name if option.name not in seldom]
    sections = {
        title: [
            (f"{option.name}={value_shown(option)}", _described(option))
            for option in titled_options
        ]
        for title, titled_options in _sections(command.options, usual).items()
    }
    widest = max((len(first) for rows in sections.values() for first, _ in rows), default=0)
    parts += [f"{title}\n{table(rows, widest)}" for title, rows in sections.items()]
    if further := [option for option in by_name if option.name in seldom]:
        lines = [
            f"{title}: {' '.join(f'{option.name}=' for option in titled_options)}"
            for title, titled_options in _sections(command.options, further).items()
        ]
        filled = [
            textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="    ")
            for line in lines
        ]
        parts.append("\n".join([f"Further options, explained by {name} --help {ALL}", *filled]))
    if command.examples:
        parts.append("Examples\n" + "\n".join(f"  {example}" for example in command.examples))
    return "\n\n".join([*parts, TERMS])


def _seldom_used(kind: type[Any]) -> set[str]:
    """Return the options of a dataclass that are not among the `usual` ones that it names.

    Options that a subclass adds to such a dataclass are not among them.
    """
    for base in kind.__mro__:
        if usual := vars(base).get("usual"):
            return {field.name for field in fields(base)} - {*usual}
    return set()


def _sections(kind: type[Any], options: Sequence[Option]) -> dict[str, list[Option]]:
    """Return options under the titles that their dataclass gives them, in their order."""
    titles: Mapping[str, Sequence[str]] = getattr(kind, "sections", {})
    title_of = {name: title for title, names in titles.items() for name in names}
    by_title: dict[str, list[Option]] = {title: [] for title in (*titles, _OPTIONS)}
    for declared in options:
        by_title[title_of.get(declared.name, _OPTIONS)].append(declared)
    nonempty = {
        title: titled_options for title, titled_options in by_title.items() if titled_options
    }
    if len(nonempty) > 1 and _OPTIONS in nonempty:
        nonempty["Output and everything else"] = nonempty.pop(_OPTIONS)
    return nonempty


_OPTIONS = "Options, in any place"


def parts_help(name: str, text: str, commands: Mapping[str, Command]) -> str:
    """Return the help text of a verb that has several parts."""
    rows = [(f"{name} {part}".strip(), command.sentence) for part, command in commands.items()]
    examples = [example for command in commands.values() for example in command.examples[:1]]
    hint = f"{name} PART --help lists the options of a part."
    examples_text = "Examples\n" + "\n".join(f"  {line}" for line in examples)
    usage = f"{name} {'|'.join(filter(None, commands))} [OPTION=VALUE ...]"
    return "\n\n".join([usage, text.strip(), table(rows), hint, examples_text, TERMS])


def _argument(option: Option) -> str:
    return f"{option.argument} ..." if option.listed else option.argument


def _by_name(option: Option) -> str:
    return "" if option.pairs else f" Or {option.name}={value_shown(option)}."


def _described(option: Option) -> str:
    sentence = str(option.metadata["sentence"])
    if option.default in (None, "", (), Path()):
        return sentence
    return f"{sentence} (default: {_text(option.default, option.name)})"


def _text(value: Any, name: str) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return value.name if isinstance(value, Path) and name == "results" else str(value)


def table(rows: Sequence[tuple[str, str]], widest: int = 0) -> str:
    """Return rows of two columns, the second wrapped, that fit in 100 characters.

    Parameters
    ----------
    widest : the width of the first column, to align several tables; fits this one by default.
    """
    width = min(_COLUMN, widest or max(len(first) for first, _ in rows))
    lines = []
    for first, second in rows:
        wrapped = textwrap.wrap(second, _WIDTH - width - 4) or [""]
        if len(first) > width:
            lines.append(f"  {first}")
            first = ""
        lines.append(f"  {first:<{width}}  {wrapped[0]}".rstrip())
        lines += [" " * (width + 4) + line for line in wrapped[1:]]
    return "\n".join(lines)
