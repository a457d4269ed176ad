"""The pages that are made of the code: ``python -m docs.pages`` writes them.

``choices.md`` lists the choices of a run, as the files in ``conf`` say what they are, and
``datasets.md`` the data sets, as their loaders do; ``datasets.csv`` beside it has their groups. So
is ``fairbench/cli/options.toml``, by which the words of commands are completed.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pandas as pd

from fairbench.cli.command import GROUPS, Command, options_of_run, sentences
from fairbench.cli.main import _module_of, verbs
from fairbench.components import CHECKOUT, files_of
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.data.dataset import Datasheet
from fairbench.data.download import (
    Archive,
    DatasetEntry,
    MissingFileError,
    entries,
    sources_of,
)
from fairbench.experiments.build import constructor
from fairbench.experiments.configuration import configurations, usual_choices
from fairbench.results.catalogue import KEYS

HERE = Path(__file__).resolve().parent
_TASKS = {"binary": "two classes", "multiclass": "several classes", "regression": "numbers"}


def _head(page: str) -> str:
    """Return what a page says before its sections."""
    return (HERE / "templates" / page).read_text(encoding="utf-8")


def choices() -> str:
    """Return the page that lists the choices, as Markdown."""
    usual = usual_choices()
    parts = [_head("choices.md")]
    for group, meaning in GROUPS.items():
        if group == "dataset":
            continue
        tasks = _tasks(group) if group in ("learner", "intervention", "method") else {}
        items = []
        for name, text in sentences(group):
            mark = " **default**" if usual.get(group) == name and len(files_of(group)) > 1 else ""
            works_on = f" (*{tasks[name]}*)" if name in tasks else ""
            items.append(f"- `{name}`{mark}: {text.removesuffix('.')}{works_on}.")
        parts.append("\n".join([f"## {group}: {meaning}\n", *items, ""]))
    return "\n".join(parts)


def _tasks(group: str) -> dict[str, str]:
    """Return the tasks that each choice of a group works on, in words."""
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


def datasets(archive: Archive, tasks: Sequence[DatasetEntry]) -> tuple[str, str]:
    """Return the page that documents the data sets `tasks`, in Markdown; their groups, in CSV."""
    figures, groups, missing = [], [], []
    for entry in tasks:
        try:
            data = entry.load(archive)
        except UserError as error:
            missing.append(f"- There are no figures for `{entry.name}`: {_why(error)}.")
        else:
            own = [*entry.rates_by_group(data)]
            counts = Counter(attribute for _, attribute, *_ in own).items()
            of_groups = ", ".join(f"{attribute} {number}" for attribute, number in counts)
            figures.append({**entry.summary(data), "groups": of_groups})
            groups += own
    modules = dict.fromkeys(entry.module for entry in tasks)
    called = {m: [f"`{entry.name}`" for entry in tasks if entry.module is m] for m in modules}
    table = [*_table(figures[0], [row.values() for row in figures]), ""] if figures else []
    told = "\n".join(table)
    sections = [line for module in modules for line in _section(module, called[module], told)]
    lines = [*table, *missing, "", "## Sources, licences and known problems", "", *sections]
    text = "\n".join([_head("datasets.md"), *lines, ""])
    columns = ["dataset", "attribute", "group", "rows", "rate"]
    return text, pd.DataFrame(groups, columns=columns).to_csv(index=False)


def _section(module: ModuleType, called: Sequence[str], told: str) -> list[str]:
    """Return what is to be known of one loader's data sets, as items of a list.

    Their title is left out where the table that was `told` before has it.
    """
    sheet: Datasheet = module.DATASHEET
    files_of = ", ".join(f"`{file.path}`" for file in sources_of(module))
    said = [sheet.source, f"Licence: {sheet.licence}", f"Files: {files_of or 'none'}"]
    title = "" if sheet.title in told else f" {sheet.title}."
    return [
        f"- **{', '.join(called)}**.{title} {' '.join(text.rstrip('.') + '.' for text in said)}",
        f"  - *Here.* {sheet.paper_differences}",
        f"  - *Problems.* {sheet.criticism}",
    ]


def _why(error: UserError) -> str:
    """Return the reason without the folders that were searched: they differ between machines."""
    if isinstance(error, MissingFileError):
        return f"the file {error.path} was missing when this page was written"
    return str(error)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    rule = ["---" for _ in head]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]


def _words_of_commands() -> Iterator[str]:
    """Yield the lines of the table of what each command takes."""
    for verb in verbs():
        module = _module_of(verb)
        commands: Mapping[str, Command | None] = getattr(module, "COMMANDS", {})
        for part, of_part in (commands or {"": getattr(module, "COMMAND", None)}).items():
            yield f"\n[{shlex.quote(f'{verb} {part}'.strip())}]"
            declared = of_part.declared.values() if of_part else ()
            for taken in declared:
                choices = ["true", "false"] if taken.kind is bool else taken.metadata["choices"]
                if not taken.pairs:
                    yield f"{taken.name} = {[*filter(None, choices)]}"
            if not of_part or any(taken.pairs for taken in declared):
                of_run = KEYS if of_part else options_of_run()
                own = [taken.name for taken in declared]
                yield from (f"{name} = []" for name in of_run if name not in own)


if __name__ == "__main__":
    page, csv = datasets(Archive(download=False), entries())
    table = "\n".join(["# Written by python -m docs.pages.", *_words_of_commands(), ""])
    written = {
        HERE / "choices.md": choices(),
        HERE / "datasets.md": page,
        HERE / "datasets.csv": csv,
        CHECKOUT / "fairbench" / "cli" / "options.toml": table,
    }
    for path, text in written.items():
        write_text(path, text)
        print(f"wrote {path}")
