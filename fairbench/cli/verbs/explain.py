"""Explain a term of commands, tables and pages, or a choice of a run.

Terms are those of the glossary: metrics, statuses, verdicts, headings of tables, and words that
have a meaning of their own here. Choices are those of a run, such as ensemble; learner,
intervention or method lists all of them. Without a term, all terms are listed by theme.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from fairbench.cli import command as choices
from fairbench.cli.command import command, filled, table
from fairbench.components import HOME, files_of
from fairbench.core.errors import UserError, did_you_mean, unknown_name
from fairbench.core.options import option
from fairbench.core.text import said, shortened

_GLOSSARY_PATHS = (HOME / "docs" / "glossary.md", Path(__file__).parents[1] / "glossary.md")


Term: TypeAlias = tuple[str, str, str]  # its name, the sentence that explains it, and its theme


def _names(name: str, sentence: str) -> list[str]:
    """Return all names: ``ECE (expected calibration error)`` has three, and aliases follow."""
    short, _, rest = name.partition(" (")
    in_brackets = [] if rest.startswith("of ") else [rest.removesuffix(")")]
    also = re.findall(r"\(also: ([^()]*)\)", sentence)
    aliases = [alias for names in also for alias in names.split(", ")]
    return list(filter(None, [name, short, *in_brackets, *aliases]))


def _glossary() -> list[Term]:
    """Return every term of the glossary."""
    path = next(candidate for candidate in _GLOSSARY_PATHS if candidate.is_file())
    terms = []
    for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        theme, *lines = part.splitlines()
        rows = [line[4:].split("**: ", 1) for line in lines if line.startswith("- **")]
        terms += [(name, sentence, theme) for name, sentence in rows]
    return sorted(terms, key=lambda term: term[0].lower())


def _key(name: str) -> str:
    """Return a name as it is looked up: ``P(<0.05)`` is the heading of ``P(<0.8)``."""
    words = re.sub(r"\d+(\.\d+)?", "#", name.lower())
    words = " ".join(words.replace("#%", "# %").replace("_", " ").replace("-", " ").split())
    return words.removesuffix("s")


def _choice(group: str, name: str) -> tuple[str, str]:
    """Return a choice of a run, such as ``method=ensemble``, with its sentence."""
    sentences = dict(choices.sentences(group))
    if name not in sentences:
        raise unknown_name(group, name, sentences, listed_by=f"fairbench explain {group}")
    sentence = sentences[name].removesuffix(".")
    return f"{group}={name}", f"{sentence}. Options: fairbench run {group}={name} --help"


def _metrics(key: str) -> list[tuple[str, str]]:
    """Return the metrics that have a name or a label, with what each is."""
    from fairbench.metrics.registry import BINARY, declared

    matching = [metric for metric in declared() if key in (_key(metric.name), _key(metric.label))]
    rows: dict[tuple[str, str], str] = {}  # a metric that is the same in several tasks is one row
    for metric in sorted(matching, key=lambda metric: metric.task):
        sentence = f"{metric.sentence.removesuffix('.')}. Its name is {metric.name}."
        label = metric.label if metric.task == BINARY else f"{metric.label} ({metric.task})"
        rows.setdefault((metric.label, sentence), label)
    return [(label, sentence) for (_, sentence), label in rows.items()]


def _explained(name: str, terms: Sequence[Term]) -> list[tuple[str, str]]:
    """Return the terms, choices of a run and metrics that have this name, with a sentence each."""
    key, choice = _key(name), name.lower().replace("-", " ").replace("_", " ")
    rows = [(term, text) for term, text, _ in terms if key in map(_key, _names(term, text))]
    name = choice.replace(" ", "_")
    rows += [_choice(group, name) for group in choices.GROUPS if name in files_of(group)]
    if choice in choices.GROUPS:
        rows += choices.sentences(choice)
    return rows or _metrics(key)


def _explain(
    term: tuple[str, ...] = option((), argument="TERM"),
    choice: tuple[tuple[str, str], ...] = option(
        (), argument="GROUP=CHOICE", pairs=lambda name: name in choices.GROUPS
    ),
) -> None:
    """Print a term, a choice of a run or a metric; or what has it in its name or its sentence.

    Without a term, all terms are printed.

    Parameters
    ----------
    term : What is to be explained, such as calibration or ensemble.
    choice : A choice of a run, such as method=ensemble.

    Raises
    ------
    UserError : there is none; names the nearest.

    Examples
    --------
    fairbench explain
    fairbench explain calibration
    fairbench explain cannot be known
    fairbench explain 'P(<0.8)'
    fairbench explain method
    """
    terms = _glossary()
    wanted = " ".join(term)
    if choice:
        print(table([_choice(group, name) for group, name in choice]))
    elif not wanted:
        print(_overview(terms))
    if not wanted:
        return
    rows = _explained(wanted, terms)
    rows = rows or [(name, text) for name, text, _ in terms if _key(wanted) in _key(name)]
    if not rows:
        rows = _mentioned(wanted, terms)
        print(f"No term is called '{shortened(wanted)}'; these sentences mention it:")
    print(table(rows))


def _mentioned(wanted: str, terms: Sequence[Term]) -> list[tuple[str, str]]:
    """Return the terms whose sentences have a word that is no term itself.

    Raises
    ------
    UserError : no sentence has it; names the nearest term, metric or choice.
    """
    from fairbench.metrics.registry import declared

    word = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)", re.IGNORECASE)
    if rows := [(term, text) for term, text, _ in terms if word.search(text)]:
        return rows
    names = [known for term, text, _ in terms for known in _names(term, text)]
    names += [known for group in choices.GROUPS for known in files_of(group)]
    names += [known for metric in declared() for known in (metric.name, metric.label)]
    hint = did_you_mean(wanted.lower().replace("_", " "), names) or said("cli", "no_term")
    raise UserError(f"unknown term '{shortened(wanted)}': {hint}")


def _overview(terms: Sequence[Term]) -> str:
    """Return the names of all terms under the headings of their themes."""
    by_theme: dict[str, list[str]] = {}
    for term, _, theme in terms:
        by_theme.setdefault(theme, []).append(term.partition(" (")[0])
    parts = ["fairbench explain TERM says what one of these terms means:"]
    for theme, names in sorted(by_theme.items()):
        parts.append(f"{theme}\n{filled('; '.join(dict.fromkeys(names)), '  ', '  ')}")
    more = filled(said("cli", "explained_too", groups=", ".join(choices.GROUPS)))
    return "\n\n".join([*parts, more])


COMMAND = command(_explain)
