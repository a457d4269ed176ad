"""A command: its choices and options, how its words are read, and its help.

First the choices of a run, read from the files in ``conf``, whose first comment says what each is;
no component is imported for them. Then words: ``name=value`` in any order and any place
(:func:`read`). Then the :class:`Command`, with the dataclass of its options, and options that
several commands have.
"""

from __future__ import annotations

import csv
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from fairbench.components import CHECKOUT, HOME, conf_folders, is_installed
from fairbench.core.errors import UserError, did_you_mean, nearest, note, unknown_name
from fairbench.core.options import check_limits, declared_names, meanings, option, value_word
from fairbench.core.text import said
from fairbench.results.record import PURPOSES, refuse_pack

if TYPE_CHECKING:
    from fairbench.results.catalogue import Catalogue

GROUPS = MappingProxyType(
    {
        "dataset": "the rows, with their target and sensitive attributes",
        "split": "which rows are for training, validation and test",
        "learner": "the model that is fitted",
        "intervention": "what makes it fairer, before, while or after it is fitted",
        "method": "how models are fitted, and how uncertain a prediction is",
        "evaluator": "which metrics are computed, and how",
        "consistency": "an option that is varied, to see whether uncertainties stay the same",
        "tracking": "where finished runs are logged",
    }
)


def options_of_run(conf: Path) -> list[str]:
    """Return what may stand before ``=`` or a dot in a run's words: its groups and settings."""
    import yaml

    settings = yaml.safe_load((conf / "config.yaml").read_text(encoding="utf-8"))
    groups = (path.name for path in conf.iterdir() if path.is_dir())
    return sorted({*groups, *map(str, settings)} - {"defaults", "hydra"})


def names(group: str) -> list[str]:
    """Return the names of a group's choices, those of the user's own folders among them."""
    files = (path for conf in conf_folders() for path in (conf / group).glob("*.yaml"))
    return sorted({path.stem for path in files})


def _file_of(group: str, choice: str) -> Path | None:
    """Return the file of a choice, one of the user's own folders before ours; None without one."""
    files = (conf / group / f"{choice}.yaml" for conf in conf_folders())
    return next(filter(Path.is_file, files), None)


def text_of(group: str, choice: str) -> str:
    """Return the text of a choice's file, after those that it builds on; empty if there is none."""
    import yaml

    if (path := _file_of(group, choice)) is None:
        return ""
    text = path.read_text(encoding="utf-8")
    bases = (yaml.safe_load(text) or {}).get("defaults", [])
    built_on = [text_of(group, base) for base in bases if base != "_self_"]
    return "\n".join([*built_on, re.sub(r"^defaults:\n(  - .*\n)+", "", text, flags=re.M)])


def sentence(group: str, choice: str) -> str:
    """Return what a choice is: the comment that its file begins with; empty if there is none."""
    if (path := _file_of(group, choice)) is None:
        return ""
    lines = re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))
    comment = lines.group() if lines else ""
    return " ".join(re.sub(r"^#", "", comment, flags=re.M).split())


def sentences(group: str) -> list[tuple[str, str]]:
    """Return every choice of a group with its sentence."""
    if group == "dataset":
        return _data_sets()
    return [(name, sentence(group, name)) for name in names(group)]


def groups_with(choice: str) -> Iterator[str]:
    """Yield the groups that have a choice of this name."""
    return (group for group in GROUPS if choice in names(group))


def _data_sets() -> list[tuple[str, str]]:
    """Return every data set with the title of its datasheet, or with the comment of its file."""
    from fairbench.data.download import entries

    titles = {entry.name: entry.title for entry in entries(HOME / "conf")}
    return [(name, titles.get(name) or sentence("dataset", name)) for name in names("dataset")]


_TASKS = MappingProxyType(
    {"binary": "two classes", "multiclass": "several classes", "regression": "numbers"}
)


def usual_choices() -> dict[str, str]:
    """Return the choice that a run takes from each group unless another is named."""
    import yaml

    defaults = yaml.safe_load((HOME / "conf/config.yaml").read_text(encoding="utf-8"))["defaults"]
    pairs = (pair for entry in defaults if isinstance(entry, dict) for pair in entry.items())
    return {group: str(name) for group, name in pairs if group in GROUPS}


def page() -> str:
    """Return the page of the documentation that lists the choices, as Markdown."""
    usual = usual_choices()
    parts = [said("cli", "page_of_choices")]
    for group, meaning in GROUPS.items():
        if group == "dataset":
            continue
        tasks = _tasks(group) if group in ("learner", "intervention", "method") else {}
        header = [f"`{group}=`", "what it is", *["tasks"] * bool(tasks)]
        rows = [header, ["---"] * len(header)]
        for name, text in sentences(group):
            mark = " **default**" if usual.get(group) == name and len(names(group)) > 1 else ""
            rows.append([f"`{name}`{mark}", text, *[tasks.get(name, "")] * bool(tasks)])
        table = [f"| {' | '.join(row)} |" for row in rows]
        parts.append("\n".join([f"## {group}: {meaning}\n", *table, ""]))
    return "\n".join(parts)


def _tasks(group: str) -> dict[str, str]:
    """Return the tasks that each choice of a group works on, in words."""
    from fairbench.experiments.build import constructor
    from fairbench.experiments.configuration import configurations

    tasks = {}
    for name, options in configurations(group).items():
        try:
            works_on = {task.value for task in constructor(group, options)().capabilities.tasks}
        except UserError:  # it has an option without a default, such as a file of weights
            tasks[name] = "known once its options are given"
            continue
        words = [words for task, words in _TASKS.items() if task in works_on]
        tasks[name] = "all" if len(words) == len(_TASKS) else ", ".join(words)
    return tasks


if __name__ == "__main__":
    print(page(), end="")


# Reading a command line into the dataclass that declares a command's options.
#
# Every command reads its words here, so that all of them agree: ``name=value`` in any order and
# any place, lists as ``[a,b]``, ``true`` or ``false``, and ``null`` for the default.

T = TypeVar("T")


@dataclass(frozen=True)
class _Option:
    """One option as a dataclass declares it.

    Attributes
    ----------
    kind : the type of a value, or of a list's items.
    listed : whether the value is a list.
    default : the value where none is given.
    sentence : what it means.
    """

    name: str
    kind: type
    listed: bool
    default: Any
    sentence: str
    metadata: Any

    @property
    def argument(self) -> str:
        """What the value is called where it may be given without its name, if it may."""
        return str(self.metadata.get("argument", ""))

    @property
    def pairs(self) -> bool:
        """Whether the option collects other ``name=value`` words."""
        return self.metadata.get("pairs") is not None

    def read(self, text: str) -> Any:
        """Return the value that a text means.

        Raises
        ------
        UserError : it means none.
        """
        if text == "null":
            return self.default
        if not self.listed:
            return self._single_value(text)
        return tuple(self._single_value(item) for item in items(text, self.name))

    def _single_value(self, text: str) -> Any:
        """Return a single value of the option's type."""
        choices = self.metadata.get("choices")
        if choices and text not in choices:
            raise unknown_name(self.name, text, filter(None, choices))
        if self.kind is bool:
            if text.lower() not in ("true", "false"):
                raise UserError(f"{self.name} is '{text}'; it must be true or false")
            return text.lower() == "true"
        if self.kind in (int, float):
            return self._number(text)
        if self.kind is Path and not text:
            raise UserError(f"{self.name}= has no value: name a file or folder")
        return self.kind(text)

    def _number(self, text: str) -> float:
        """Return a finite number that the option's declaration takes."""
        try:
            number: float = self.kind(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            expected = "a whole number" if self.kind is int else "a number"
            raise UserError(f"{self.name} is '{text}'; it must be {expected}")
        check_limits(self.name, number, self.metadata)
        return number


def options_of(options: type) -> dict[str, _Option]:
    """Return the options that a dataclass declares, by name, in the order of its fields."""
    kinds, meant = get_type_hints(options), meanings(options)
    found: dict[str, _Option] = {}
    for field in (field for field in fields(options) if field.name in declared_names(options)):
        kind, default = kinds[field.name], field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if isinstance(kind, UnionType):
            (kind,) = (arg for arg in get_args(kind) if arg is not NoneType)
        listed = get_origin(kind) is tuple
        item = get_args(kind)[0] if listed else kind
        found[field.name] = _Option(
            field.name, item, listed, default, meant[field.name], field.metadata
        )
    return found


def read(options: type[T], words: Sequence[str]) -> T:
    """Read the words of a command line, and return the options with their values.

    A field called ``given`` gets the names of the options that the words have.

    Raises
    ------
    UserError : an unknown option, one that is given twice, a value that cannot be read, or a word
        that is no option.
    """
    declared = options_of(options)
    texts: dict[str, Any] = {}
    for name, text in _words_by_option(declared, words):
        if declared[name].pairs or (declared[name].argument and declared[name].listed):
            texts.setdefault(name, []).append(text)
        elif name in texts:
            raise UserError(f"{name} is given twice: {name}={texts[name]} and {name}={text}")
        else:
            texts[name] = text
    values = dict(_value(declared[name], text) for name, text in texts.items())
    if "given" in {field.name for field in fields(options)}:  # type: ignore[arg-type]
        values["given"] = frozenset(texts)
    return options(**values)


def _value(option: _Option, text: Any) -> tuple[str, Any]:
    """Return the name of a field and the value that a text sets it to."""
    if option.pairs:
        return option.name, tuple(text)
    if isinstance(text, list):
        return option.name, tuple(value for item in text for value in option.read(item))
    if list_option := option.metadata.get("several"):
        values = items(text, option.name)
        return (list_option, values) if len(values) > 1 else (option.name, "".join(values))
    return option.name, option.read(text)


def _words_by_option(
    declared: dict[str, _Option], words: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """Yield for each word the name of its option, and the text of the value."""
    slots = [option for option in declared.values() if option.argument and not option.pairs]
    collecting = [option for option in declared.values() if option.pairs]
    for word in words:
        name, equals, text = word.partition("=")
        if equals and name in declared and not declared[name].pairs:
            slots = [slot for slot in slots if slot.name != name or slot.listed]
            yield name, text
        elif word.startswith("--"):
            raise _unknown_word(word, declared)
        elif slots and (not equals or Path(word).is_file()):
            yield slots[0].name, word
            slots = slots if slots[0].listed else slots[1:]
        else:
            takers = (taker for taker in collecting if equals and taker.metadata["pairs"](name))
            if (taker := next(takers, None)) is None:
                raise _unknown_word(word, declared)
            yield taker.name, (name, text)


# What other commands and libraries call the columns of groups.
_COLUMNS_OF_GROUPS = ("sensitive", "sensitive_features", "protect", "protected", "attribute")


def _unknown_word(word: str, declared: dict[str, _Option]) -> UserError:
    """Return the error for a word that no option takes."""
    name, equals, _ = word.partition("=")
    name = name.lstrip("-").replace("-", "_") if word.startswith("-") else name
    valid = [option.name for option in declared.values() if not option.pairs]
    if not declared:
        return UserError(f"unexpected word '{word}': this command has no options")
    if name in valid and declared[name].kind is bool:
        return UserError(f"'{word}' is no option: write {name}=true or {name}=false")
    if name in valid and equals:
        return UserError(f"'{word}' begins with dashes: write {word.lstrip('-')}")
    if name in valid:
        return UserError(f"'{word}' has no value: write {name}={_value_shown(declared[name])}")
    if name in _COLUMNS_OF_GROUPS and "group" in valid:
        return UserError(f"unknown option '{name}': columns of groups are named with group=")
    if equals or word.startswith("-"):
        near = nearest(name, [*valid, *GROUPS, "experiment"], 1)
        if near and near[0] not in valid:
            return UserError(said("cli", "option_of_run", name=name, near=near[0]))
        return unknown_name("option", name, valid)
    hint = did_you_mean(name, valid, "{}=") or "--help lists the options"
    return UserError(said("cli", "unexpected_word", word=word, hint=hint))


def items(text: str, name: str) -> tuple[str, ...]:
    """Return the items of a list such as ``[a,"b,c"]``; the brackets may be left out.

    Raises
    ------
    UserError : an unmatched bracket or quotation mark.
    """
    if text.startswith("[") != text.endswith("]"):
        raise UserError(f"{name}={text} cannot be read: a list is written [a,b]")
    line = text.removeprefix("[").removesuffix("]")
    try:
        cells = next(csv.reader([line], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UserError(f"{name}={text} cannot be read: {error}") from None
    return tuple(item for cell in cells if (item := cell.strip()))


def _value_shown(option: _Option) -> str:
    """Return the text that ``--help`` shows for an option's value."""
    if declared := option.metadata.get("shown"):
        return str(declared)
    if choices := option.metadata.get("choices"):
        return "|".join(filter(None, choices))
    placeholders = {bool: "true|false", int: "NUMBER", float: "NUMBER", Path: "PATH"}
    placeholder = placeholders.get(option.kind, "NAME")
    return f"[{placeholder},...]" if option.listed else placeholder


# A command: the dataclass of its options, the function that is called with it, and its help.

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
    """The option ``results=``, which every command has.

    Attributes
    ----------
    results : The folder of runs, cells and reports.
    """

    results: Path = option(default_results, shown="FOLDER")


def purposes() -> Any:
    """Return the option ``purpose=``, for commands that compare many runs."""
    return option(
        (),
        "Runs that were made for one of these; by default demos and tuning are left out.",
        shown="[demo|tuning|paper|study,...]",
        choices=PURPOSES,
    )


def formats(*usual: str) -> Any:
    """Return the option ``formats=``, for commands that write a page."""
    sentence = (
        "What the page is written as: html, json, latex, markdown, word or pdf (by a browser)."
    )
    return option(usual, sentence, shown="[FORM,...]")


@dataclass(frozen=True)
class Selection(Results):
    """Which finished runs a command is about.

    Attributes
    ----------
    ids : Runs whose ids begin so; all by default.
    keys : Runs with these values, such as dataset=adult,german or learner.max_depth=6.
    """

    ids: tuple[str, ...] = option((), argument="RUN")
    keys: tuple[tuple[str, str], ...] = option((), argument="KEY=VALUE", pairs=lambda name: True)

    @property
    def key_words(self) -> list[str]:
        """The values as words.

        Raises
        ------
        UserError : an unknown key; names the nearest.
        """
        from fairbench.results.catalogue import KEYS

        declared = options_of(type(self)).values()
        own = [option.name for option in declared if not (option.argument and option.listed)]
        for name, _ in self.keys:
            if name not in KEYS and "." not in name:
                raise unknown_name("key", name, [*KEYS, *own])
        return [f"{name}={text}" for name, text in self.keys]

    def selected(self) -> Catalogue:
        """Return the finished runs that are meant.

        Raises
        ------
        UserError : an id means no run or several, or no run has these values.
        """
        from fairbench.results.catalogue import Catalogue

        words, runs = self.key_words, Catalogue(self.results)
        if self.ids:
            runs = runs.only([runs.one(run_id) for run_id in self.ids])
        if not (selected := runs.matching(words)).runs:
            raise UserError(runs.why_none(words))
        return selected


def counted_runs(runs: Catalogue, words: Sequence[str], purposes: Sequence[str] = ()) -> Catalogue:
    """Return the runs that ids and ``key=value`` words select, of those that count as studies.

    Demos and runs of tuning are left out, with a note on the error stream, unless they are asked
    for by id or purpose.
    """
    selected = runs.matching(words)
    if not any("=" not in word or word.startswith("purpose=") for word in words):
        selected, left_out = selected.counted(purposes)
        if left_out:
            note(left_out)
    return selected


ALL = "all"  # the word after --help that explains every option


def typed_command() -> str:
    """Return the current command line, quoted so that it can be pasted into a shell."""
    import shlex

    return shlex.join(("fairbench", *TYPED.get()))


def narrow_options(options: Any, kind: type[T]) -> T:
    """Return the part of a command's options that another dataclass declares.

    What the command has no option for is as its policy says, or as it is by default.
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    values = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return kind(**{**values, **getattr(options, "of_audits", {})})


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
    from fairbench.data.tables import check_file

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
    UserError : it is a file, or lies under one.
    """
    for path in (*([out] if not new else []), *out.parents):
        if path.exists() and not path.is_dir():
            raise UserError(f"out={out}: {path} is a file; name another place, out=FOLDER")


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


def check_run_words(names: Iterable[str], own: Sequence[str], conf: Path) -> None:
    """Refuse words of a command that are no option of it, nor of a run.

    Parameters
    ----------
    own : the options of the command.
    conf : the folder of the configurations.

    Raises
    ------
    UserError : an unknown name; the message has the nearest.
    """
    valid = options_of_run(conf)
    for name in names:
        group = re.split("[./]", name)[0]
        if group not in (*valid, "hydra"):
            raise unknown_name("option", group, [*own, *valid])


_WIDTH = 100
_COLUMN = 30
_NO_VALUE = (None, "", (), Path())
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

    def carry_out(self, options: Any) -> int:
        """Do what the options ask for, and return the exit status."""
        from fairbench.core.processes import using

        for declared in fields(options):
            needed = declared.metadata.get("needed")
            if needed and getattr(options, declared.name) in _NO_VALUE:
                raise UserError(needed)
        folder = getattr(options, "results", None)
        if folder is None:
            return self.run(options) or 0
        refuse_pack(folder)
        with using(folder, make=False) if self.holds else nullcontext():
            return self.run(options) or 0


def command(run: Callable[[Any], int | None], *, holds: bool = True) -> Command:
    """Return the command of a function: its options are those that it takes.

    The first paragraph of its docstring is the sentence, and the lines under ``Examples`` are the
    examples, of which indented lines continue the one before.
    """
    options = next(iter(get_type_hints(run).values()))
    text, _, examples = (inspect.getdoc(run) or "").partition("\n\nExamples\n--------\n")
    lines = examples.replace("\n    ", " ").splitlines()
    return Command(options, run, lines, text.partition("\n\n")[0], holds)


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
    by_name = [option for option in all_options if not option.argument]
    arguments = {
        f"{argument.argument} ..." if argument.listed else argument.argument: argument
        for argument in all_options
        if argument.argument
    }
    words = [*(f"[{word}]" for word in arguments), *["[OPTION=VALUE ...]"] * bool(all_options)]
    parts = [" ".join([name, *words]), _paragraphs(text)]
    if arguments:
        rows = []
        for word, argument in arguments.items():
            also = "" if argument.pairs else f" Or {argument.name}={_value_shown(argument)}."
            rows.append((word, argument.sentence + also))
        parts.append("Arguments\n" + table(rows))
    seldom = () if whole else _seldom_used(command.options)
    usual = [option for option in by_name if option.name not in seldom]
    sections = {
        title: [
            (f"{option.name}={_value_shown(option)}", _described(option))
            for option in titled_options
        ]
        for title, titled_options in _sections(command.options, usual).items()
    }
    widest = max((len(first) for rows in sections.values() for first, _ in rows), default=0)
    parts += [f"{title}\n{table(rows, widest)}" for title, rows in sections.items()]
    if further := [option for option in by_name if option.name in seldom]:
        lines = [
            filled(f"{title}: {' '.join(f'{option.name}=' for option in titled)}", "  ", "    ")
            for title, titled in _sections(command.options, further).items()
        ]
        parts.append("\n".join([f"Further options, explained by {name} --help {ALL}", *lines]))
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


def _sections(kind: type[Any], options: Sequence[_Option]) -> dict[str, list[_Option]]:
    """Return options under the titles that their dataclass gives them, in their order."""
    titles: Mapping[str, Sequence[str]] = getattr(kind, "sections", {})
    title_of = {name: title for title, names in titles.items() for name in names}
    by_title: dict[str, list[_Option]] = {title: [] for title in (*titles, _OPTIONS)}
    for declared in options:
        by_title[title_of.get(declared.name, _OPTIONS)].append(declared)
    nonempty = {title: titled for title, titled in by_title.items() if titled}
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
    return "\n\n".join([usage, _paragraphs(text), table(rows), hint, examples_text, TERMS])


def _paragraphs(text: str) -> str:
    """Return the paragraphs of a docstring, each filled."""
    return "\n\n".join(map(filled, inspect.cleandoc(text).replace("``", "").split("\n\n")))


def _described(option: _Option) -> str:
    if option.default in _NO_VALUE:
        return option.sentence
    is_folder = option.name == "results"  # which is shown as it is in a checkout
    default = option.default.name if is_folder else value_word(option.default)
    return f"{option.sentence} (default: {default})"


def filled(text: str, first: str = "", then: str = "") -> str:
    """Return a text in lines that fit in 100 characters, the first and the others indented."""
    return textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=then, break_on_hyphens=False
    )


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
