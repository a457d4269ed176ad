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
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from fairbench.components import CONF, files_of
from fairbench.core.errors import UserError, did_you_mean, nearest, note, unknown_name
from fairbench.core.options import check_limits, declared_names, meanings, option, value_word
from fairbench.core.text import said
from fairbench.results.record import PURPOSES, refuse_pack

if TYPE_CHECKING:
    from fairbench.results.catalogue import Catalogue

GROUPS: Mapping[str, str] = {
    "dataset": "the rows, with their target and sensitive attributes",
    "split": "which rows are for training, validation and test",
    "learner": "the model that is fitted",
    "intervention": "what makes it fairer, before, while or after it is fitted",
    "method": "how models are fitted, and how uncertain a prediction is",
    "evaluator": "which metrics are computed, and how",
    "consistency": "an option that is varied, to see whether uncertainties stay the same",
    "tracking": "where finished runs are logged",
}


def options_of_run() -> list[str]:
    """Return what may stand before ``=`` or a dot in a run's words: its groups and settings."""
    import yaml

    settings = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))
    groups = (path.name for path in CONF.iterdir() if path.is_dir())
    return sorted({*groups, *map(str, settings)} - {"defaults", "hydra"})


def sentence(group: str, choice: str) -> str:
    """Return what a choice is: the comment that its file begins with; empty if there is none."""
    if (path := files_of(group).get(choice)) is None:
        return ""
    lines = re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))
    comment = lines.group() if lines else ""
    return " ".join(re.sub(r"^#", "", comment, flags=re.M).split())


def sentences(group: str) -> list[tuple[str, str]]:
    """Return every choice of a group with its sentence."""
    titles = {}
    if group == "dataset":  # whose datasheets have titles
        from fairbench.data.download import entries

        titles = {entry.name: entry.title for entry in entries()}
    return [(name, titles.get(name) or sentence(group, name)) for name in files_of(group)]


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
    title : the heading that ``--help`` has it under: that of the class that declares it.
    """

    name: str
    kind: type
    listed: bool
    default: Any
    sentence: str
    title: str
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


def options_of(*parts: type) -> dict[str, _Option]:
    """Return the options that dataclasses declare, by name, in the order of their fields.

    The first part that declares an option says what it is.
    """
    found: dict[str, _Option] = {}
    for part in parts:
        kinds, meant = get_type_hints(part), meanings(part)
        titles = {name: vars(of).get("title", "") for of in reversed(part.__mro__)
                  for name in vars(of).get("__annotations__", ())}  # fmt: skip
        for name in declared_names(part):
            field, kind = vars(part)["__dataclass_fields__"][name], kinds[name]
            if isinstance(kind, UnionType):
                (kind,) = (arg for arg in get_args(kind) if arg is not NoneType)
            listed = get_origin(kind) is tuple
            item = get_args(kind)[0] if listed else kind
            declared = _Option(
                name, item, listed, _default(field), meant[name], titles[name], field.metadata
            )
            found.setdefault(name, declared)
    return found


def _default(field: Any) -> Any:
    """Return the value of a field where none is given."""
    return field.default if field.default_factory is MISSING else field.default_factory()


class Asked:
    """The values of the options of a command, in parts that are not checked before they are taken.

    An option is an attribute, as of an instance of its part; `given` has the names of those that
    the command line has. A part whose rules hold together, such as the question of an audit, is
    checked when :meth:`taken_as` returns it: a policy, a run or a state may have what words lack.
    """

    def __init__(self, values: Mapping[str, Any], given: Iterable[str]) -> None:
        self.__dict__.update(values)
        self.given = frozenset(given)

    def __getattr__(self, name: str) -> Any:
        """Refuse a name that is no option; the values are attributes of their own."""
        raise AttributeError(f"the command has no option {name}")

    def taken_as(self, kind: type[T]) -> T:
        """Return the options that a dataclass declares; its own defaults where there are none."""
        values = vars(self)
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        return kind(**{name: values[name] for name in names if name in values})

    def filled(self, values: Mapping[str, Any]) -> Asked:
        """Return these options with those of some values that the command line does not have."""
        new = {name: value for name, value in values.items() if name not in self.given}
        return Asked({**vars(self), **new}, {*self.given, *new})

    def replaced(self, **values: Any) -> Asked:
        """Return these options with other values."""
        return Asked({**vars(self), **values}, self.given)


def _asked(parts: Sequence[type], words: Sequence[str]) -> Asked:
    """Read the words of a command line; the errors are those of :func:`read`."""
    texts = _texts(options_of(*parts), words)
    defaults = {field.name: _default(field) for part in parts[::-1] for field in fields(part)}
    return Asked({**defaults, **_values(options_of(*parts), texts)}, texts)


def read(options: type[T], words: Sequence[str]) -> T:
    """Read the words of a command line, and return the options with their values.

    Raises
    ------
    UserError : an unknown option, one that is given twice, a value that cannot be read, or a word
        that is no option.
    """
    declared = options_of(options)
    return options(**_values(declared, _texts(declared, words)))


def _texts(declared: dict[str, _Option], words: Sequence[str]) -> dict[str, Any]:
    """Return the text, or the texts, that the words give to each option."""
    texts: dict[str, Any] = {}
    for name, text in _words_by_option(declared, words):
        if declared[name].pairs or (declared[name].argument and declared[name].listed):
            texts.setdefault(name, []).append(text)
        elif name in texts:
            raise UserError(f"{name} is given twice: {name}={texts[name]} and {name}={text}")
        else:
            texts[name] = text
    return texts


def _values(declared: dict[str, _Option], texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that texts mean, by the names of fields."""
    values: dict[str, Any] = {}
    for name, text in texts.items():
        read_as = declared[name]
        if read_as.pairs:
            values[name] = tuple(text)
        elif isinstance(text, list):
            values[name] = tuple(value for item in text for value in read_as.read(item))
        elif (several := read_as.metadata.get("several")) and len(items(text, name)) > 1:
            values[several] = items(text, name)
        else:
            values[name] = "".join(items(text, name)) if several else read_as.read(text)
    return values


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


# The option ``results=``, which every command has.
RESULTS: Any = option(default_results, "The folder of runs, cells and reports.", shown="FOLDER")
# The option ``purpose=``, of commands that compare many runs.
PURPOSE: Any = option(
    (),
    "Runs that were made for one of these; by default demos and tuning are left out.",
    shown="[demo|tuning|paper|study,...]",
    choices=PURPOSES,
)


@dataclass(frozen=True)
class Results:
    """The option ``results=`` of a dataclass of options."""

    results: Path = RESULTS


def formats(*usual: str) -> Any:
    """Return the option ``formats=``, for commands that write a page."""
    sentence = (
        "What the page is written as: html, json, latex, markdown, word or pdf (by a browser)."
    )
    return option(usual, sentence, shown="[FORM,...]")


@dataclass(frozen=True)
class Page:
    """What a page is written as, and where.

    Attributes
    ----------
    out : The folder that the page is written to; one of the results folder by default.
    """

    formats: tuple[str, ...] = formats("html", "json")
    out: str = option("", shown="FOLDER")


@dataclass(frozen=True)
class Selection(Results):
    """Which finished runs a command is about.

    Attributes
    ----------
    ids : Runs whose ids begin so.
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


HELP = ("--help", "-h", "help")
ALL = "all"  # the word after these that explains every option


def typed_command() -> str:
    """Return the current command line, quoted so that it can be pasted into a shell."""
    import shlex

    return shlex.join(("fairbench", *TYPED.get()))


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
        raise UserError(said("cli", "run_or_file", path=path, command=of_run.format(path)))
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


_WIDTH = 100
_COLUMN = 30
_SCREEN = 40  # lines
_FEW = 2  # examples on a screen
_MOST_OPTIONS = 11  # on a screen
_NO_VALUE = (None, "", (), Path())
TERMS = "fairbench explain TERM says what a term means; docs/glossary.md has all of them."


@dataclass(frozen=True)
class Command:
    """A verb, or a part of one: its name, its options, its function and its examples.

    Attributes
    ----------
    options : a frozen dataclass whose fields are made with `fairbench.core.options.option`, or
        several, of which the function gets the :class:`Asked` values.
    run : a function of the options that returns the exit status; None stands for 0.
    examples : complete command lines, shown by ``--help``.
    sentence : a sentence on a part of a verb; that on a whole verb is the docstring of its file.
    holds : whether garbage collection of the results folder is locked out while it runs.
    """

    options: type[Any] | tuple[type[Any], ...]
    run: Callable[[Any], int | None]
    examples: Sequence[str] = ()
    sentence: str = ""
    holds: bool = True

    @property
    def declared(self) -> dict[str, _Option]:
        """The options by their names."""
        return options_of(*(self.options if isinstance(self.options, tuple) else [self.options]))

    def read(self, words: Sequence[str]) -> Any:
        """Return the options that words give; the errors are those of :func:`read`."""
        parts = self.options
        return _asked(parts, words) if isinstance(parts, tuple) else read(parts, words)

    def carry_out(self, words: Sequence[str], name: str, text: str) -> int:
        """Do what the words ask for, or print the help, and return the exit status.

        Parameters
        ----------
        name, text : as :meth:`help` takes them.

        Raises
        ------
        UserError : the words cannot be read, or what they ask for cannot be done.
        """
        from fairbench.core.processes import using

        if any(word in HELP for word in words):
            print(self.help(name, text, whole=ALL in words))
            return 0
        options = self.read(words)
        for option_name, declared in self.declared.items():
            needed = declared.metadata.get("needed")
            if needed and getattr(options, option_name) in _NO_VALUE:
                raise UserError(needed)
        folder = getattr(options, "results", None)
        if folder is None:
            return self.run(options) or 0
        refuse_pack(folder)
        with using(folder, make=False) if self.holds else nullcontext():
            return self.run(options) or 0

    def help(self, name: str, text: str, *, whole: bool = False) -> str:
        """Return the help text, which fits on a screen unless `whole` is true.

        What does not fit is left out: most examples, what the command does beyond its first
        sentence, the ends of sentences on options, and options that are not the first main ones.

        Parameters
        ----------
        name : as it is typed, such as ``fairbench report``.
        text : what the command does, the first sentence in a line of its own.
        """
        options = sorted(self.declared.values(), key=lambda option: option.name == "results")
        paragraphs = inspect.cleandoc(text).split("\n\n")
        page = f"{self._page(name, paragraphs, options)}\n\n{TERMS}"
        if whole or page.count("\n") < _SCREEN:
            return page
        shown = [option for option in options if option.metadata["main"] or option.argument]
        shown = shown if any(not option.argument for option in shown) else options
        shown = shown[:_MOST_OPTIONS]
        brief = self._page(name, paragraphs[:1], shown, brief=True)
        left_out = len(options) - len(shown)
        more = f"{left_out} further options" if left_out else "all of it"
        return f"{brief}\n\n{name} --help {ALL} explains {more}.\n{TERMS}"

    def _page(
        self, name: str, paragraphs: Sequence[str], options: Sequence[_Option], brief: bool = False
    ) -> str:
        """Return the help with these paragraphs and options.

        Parameters
        ----------
        brief : whether options are explained by their first sentences alone, with few examples.
        """

        def explained(option: _Option, more: str = "") -> str:
            """Return what an option means, and more."""
            text = option.sentence
            return f"{text.partition('. ')[0].removesuffix('.')}." if brief else f"{text}{more}"

        arguments = {
            f"{option.argument} ..." if option.listed else option.argument: option
            for option in options
            if option.argument
        }
        words = [*(f"[{word}]" for word in arguments), *["[OPTION=VALUE ...]"] * bool(options)]
        parts = [" ".join([name, *words]), _paragraphs("\n\n".join(paragraphs))]
        if arguments:
            also = {
                word: "" if argument.pairs else f" Or {argument.name}={_value_shown(argument)}."
                for word, argument in arguments.items()
            }
            rows = [(word, explained(option, also[word])) for word, option in arguments.items()]
            parts.append("Arguments\n" + table(rows))
        sections: dict[str, list[tuple[str, str]]] = {}
        untitled: list[tuple[str, str]] = []
        for named in options:
            if named.argument:
                continue
            rows = sections.setdefault(named.title, []) if named.title else untitled
            meaning = explained(named, _default_shown(named))
            rows.append((f"{named.name}={_value_shown(named)}", meaning))
        if untitled:
            sections["Output and everything else" if sections else _OPTIONS] = untitled
        widest = max((len(first) for rows in sections.values() for first, _ in rows), default=0)
        parts += [f"{title}\n{table(rows, widest)}" for title, rows in sections.items()]
        if examples := self.examples[: _FEW if brief else None]:
            parts.append("Examples\n" + "\n".join(f"  {example}" for example in examples))
        return "\n\n".join(parts)


def command(run: Callable[..., int | None], *parts: type[Any], holds: bool = True) -> Command:
    """Return the command of a function: its options are those that it takes.

    These are the fields of the dataclass that is its one parameter, or its parameters, declared as
    such fields are. The first paragraph of its docstring is the sentence, and the lines under
    ``Examples`` are the examples, of which indented lines continue the one before.

    Parameters
    ----------
    parts : the dataclasses of the options, of a function that takes what was :class:`Asked`.
    """
    options: Any = parts or next(iter(get_type_hints(run).values()))
    carry_out = run
    if not (parts or is_dataclass(options)):
        options, carry_out = _of_parameters(run)
    text, _, examples = (inspect.getdoc(run) or "").partition("\n\nExamples\n--------\n")
    lines = examples.replace("\n    ", " ").splitlines()
    return Command(options, carry_out, lines, text.partition("\n\n")[0], holds)


def _of_parameters(run: Callable[..., int | None]) -> tuple[Any, Callable[[Any], int | None]]:
    """Return the parameters of a function as a dataclass, and what calls it with one of these."""
    kinds, parameters = get_type_hints(run), inspect.signature(run).parameters
    declared = [(name, kinds[name], parameters[name].default) for name in parameters]
    options = make_dataclass(run.__name__, declared, namespace={"__doc__": run.__doc__})
    return options, lambda given: run(**vars(given))


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


def _default_shown(option: _Option) -> str:
    """Return the default of an option as its sentence ends with it; empty if there is none."""
    if option.default in _NO_VALUE:
        return ""
    is_folder = option.name == "results"  # which is shown as it is in a checkout
    return f" (default: {option.default.name if is_folder else value_word(option.default)})"


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
