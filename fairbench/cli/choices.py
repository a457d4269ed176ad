"""What a run is made of: the groups of choices, the choices of each, and a sentence on each.

All is read from the files in ``conf``, whose first comment says what a choice is; no component is
imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import yaml

from fairbench.components import HOME, conf_folders

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
"""


def page() -> str:
    """Return the page of the documentation that lists the choices, as Markdown."""
    parts = [_PAGE_HEAD]
    for group, meaning in GROUPS.items():
        if group != "dataset":
            rows = [f"| `{name}` | {text} |" for name, text in sentences(group)]
            header = f"| `{group}=` | what it is |"
            parts.append(
                "\n".join([f"## {group}: {meaning}\n", header, "| --- | --- |", *rows, ""])
            )
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
