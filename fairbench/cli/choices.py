"""What a run is made of: the groups of choices, the choices of each, and a sentence on each.

All is read from the files in ``conf``, whose first comment says what a choice is. Only the page of
the documentation imports components, for the tasks that they work on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import yaml

from fairbench.components import HOME, conf_folders
from fairbench.core.errors import UserError

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
    settings = yaml.safe_load((conf / "config.yaml").read_text(encoding="utf-8"))
    groups = (path.name for path in conf.iterdir() if path.is_dir())
    return sorted({*groups, *map(str, settings)} - {"defaults", "hydra"})


def names(group: str) -> list[str]:
    """Return the names of a group's choices, those of the user's own folders among them."""
    files = (path for conf in conf_folders() for path in (conf / group).glob("*.yaml"))
    return sorted({path.stem for path in files})


def text_of(group: str, choice: str) -> str:
    """Return the text of a choice's file, after those that it builds on; empty if there is none."""
    for conf in conf_folders():
        if (path := conf / group / f"{choice}.yaml").is_file():
            text = path.read_text(encoding="utf-8")
            bases = (yaml.safe_load(text) or {}).get("defaults", [])
            built_on = [text_of(group, base) for base in bases if base != "_self_"]
            return "\n".join([*built_on, re.sub(r"^defaults:\n(  - .*\n)+", "", text, flags=re.M)])
    return ""


def sentence(group: str, choice: str) -> str:
    """Return what a choice is: the comment that its file begins with; empty if there is none."""
    for conf in conf_folders():
        if (path := conf / group / f"{choice}.yaml").is_file():
            lines = re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))
            comment = lines.group() if lines else ""
            return " ".join(re.sub(r"^#", "", comment, flags=re.M).split())
    return ""


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
    from fairbench.data.catalogue import entries

    titles = {entry.name: entry.title for entry in entries(HOME / "conf")}
    return [(name, titles.get(name) or sentence("dataset", name)) for name in names("dataset")]


_PAGE_HEAD = """# The choices of a run

A run is made of one choice from each group, such as `method=ensemble` on the command line.
`fairbench run method=ensemble --help` lists the options of a choice, and
`fairbench explain ensemble` says what it is. The [data sets](datasets.md) have a page of their own.
Papers are cited in full where a choice is implemented, in `algorithms/`.

A run takes the choice that is marked **default** unless you name another. The column *tasks* says
what a choice can predict: *two classes*, *several classes*, *numbers*, or *all* of them.
"""
_TASKS = MappingProxyType(
    {"binary": "two classes", "multiclass": "several classes", "regression": "numbers"}
)


def page() -> str:
    """Return the page of the documentation that lists the choices, as Markdown."""
    settings = yaml.safe_load((HOME / "conf/config.yaml").read_text(encoding="utf-8"))
    usual = {
        group: name
        for entry in settings["defaults"]
        if isinstance(entry, dict)
        for group, name in entry.items()
    }
    parts = [_PAGE_HEAD]
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
