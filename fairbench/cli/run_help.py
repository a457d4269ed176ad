"""The help of ``fairbench run``: what a run is made of, and the options of what is chosen.

It is read from the files in ``conf``, whose comments explain options, and from the docstrings of
what they name; no component is imported.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fairbench.cli import choices
from fairbench.cli.command import TERMS, table
from fairbench.components import HOME

_WIDTH = 100
_EXPLAINED = (
    "split",
    "learner",
    "intervention",
    "method",
)  # whose choices are explained one by one
_HEAD = """\
fairbench run [-m] [GROUP=CHOICE ...] [OPTION=VALUE ...]

Run one configuration, or with -m a sweep of them: fit, evaluate, store and log.

  A run         fairbench run dataset=adult method=binomial_nll
  with options  fairbench run dataset=adult learner.max_depth=4 split.repeats=20 n_jobs=2
  A sweep       fairbench run -m dataset=adult,german method=ensemble,binomial_nll
  on a cluster  fairbench run -m dataset=adult,german hydra/launcher=submitit_slurm
  on a budget   fairbench run experiment=NAME resolve=error_rate budget=2h
  A plan        fairbench run plan=true dataset=adult
  All options   fairbench run --cfg job dataset=adult

python run.py does the same in a checkout."""


def run_help(words: Sequence[str]) -> str:
    """Return the help text of a run.

    Parameters
    ----------
    words : the words of the command line; the help has the options of the components they choose.
    """
    main = (HOME / "conf" / "config.yaml").read_text(encoding="utf-8")
    chosen = {
        name: str(choice)
        for default in yaml.safe_load(main)["defaults"]
        if isinstance(default, dict)
        for name, choice in default.items()
        if name in choices.GROUPS
    }
    typed = dict(word.split("=", 1) for word in words if "=" in word)
    chosen |= {name: choice for name, choice in typed.items() if name in chosen}
    parts = [_HEAD, _choices(), _settings(main)]
    parts.append(
        "Options of what is chosen; fairbench run learner=lightgbm --help has those of lightgbm"
    )
    parts += [text for group, choice in chosen.items() if (text := _options(group, choice))]
    return "\n\n".join([*parts, TERMS])


def _choices() -> str:
    """Return what there is to choose from, group by group."""
    lines = ["Choices; fairbench explain NAME says what one is, as does docs/choices.md"]
    for group, meaning in choices.GROUPS.items():
        lines.append(f"  {group}=  {meaning}")
        if group in _EXPLAINED:
            lines.append(table([(f"    {name}", text) for name, text in choices.sentences(group)]))
        else:
            lines.append(_filled(", ".join(choices.names(group))))
    folders = sorted(path.parent for path in (HOME / "conf" / "experiment").glob("*/*.yaml"))
    lines.append("  experiment=  a sweep that is configured, or all of a folder")
    for folder in dict.fromkeys(folders):
        names = [f"{folder.name}/{path.stem}" for path in sorted(folder.glob("*.yaml"))]
        lines.append(_filled(", ".join([folder.name, *names])))
    return "\n".join(lines)


def _filled(text: str) -> str:
    space = " " * 6
    return textwrap.fill(
        text, _WIDTH, initial_indent=space, subsequent_indent=space, break_on_hyphens=False
    )


def _settings(main: str) -> str:
    """Return the settings of every run, with the comments that explain them."""
    rows = []
    values = yaml.safe_load(main)
    comments = _comments(main)
    for name, value in values.items():
        if name in ("defaults", "hydra"):
            continue
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for part, part_value in parts:
            whole = f"{name}.{part}" if part else name
            rows.append((f"{whole}={_as_word(part_value)}", comments.get(part or name, "")))
    return f"Settings\n{table(rows, max(len(first) for first, _ in rows))}"


def _options(group: str, choice: str) -> str:
    """Return the options of a choice with their values; empty if there are none."""
    text = choices.text_of(group, choice)
    values: Mapping[str, Any] = yaml.safe_load(text) or {}
    meant = _parameter_texts(str(values.get("_target_", ""))) | _comments(text)
    rows = [
        (f"{group}.{name}={_as_word(value)}", meant.get(name, ""))
        for name, value in values.items()
        if name not in ("_target_", "defaults")
    ]
    if not rows:
        return ""
    return f"  {group}={choice}  {choices.sentence(group, choice)}".rstrip() + f"\n{table(rows)}"


def _comments(text: str) -> dict[str, str]:
    """Return the comment behind each option of a YAML file."""
    return dict(re.findall(r"^ *(\w+):[^#\n]*#\s*(.+)$", text, re.M))


def _parameter_texts(target: str) -> dict[str, str]:
    """Return the sentences on each parameter in the docstring of a class or a function."""
    module, _, name = target.rpartition(".")
    if not module:
        return {}
    path = Path(*module.removeprefix("fairbench.components.").split(".")).with_suffix(".py")
    files = [root / path for root in (HOME, Path(__file__).parents[2]) if (root / path).is_file()]
    if not files:
        return {}
    nodes = ast.parse(files[0].read_text(encoding="utf-8")).body
    definitions = (node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef))
    text = next(
        (
            ast.get_docstring(definition) or ""
            for definition in definitions
            if definition.name == name
        ),
        "",
    )
    entries = re.findall(r"^(\w+) : ((?:.+)(?:\n    .+)*)", text, re.M)
    return {
        entry: " ".join(meaning.split()).replace("``", "").removesuffix(".")
        for entry, meaning in entries
    }


def _as_word(value: Any) -> str:
    """Return a value as a command line has it."""
    if isinstance(value, list):
        return f"[{','.join(map(_as_word, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
