"""The help of ``fairbench run``: what a run is made of, and the options of what is chosen.

It is read from the files in ``conf``, whose comments explain options, and from the docstrings of
what they name; no component is imported.
"""

from __future__ import annotations

import ast
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from fairbench.cli import command as choices
from fairbench.cli.command import ALL, TERMS, filled, table
from fairbench.components import CONF, HOME, files_of, options_in
from fairbench.core.options import documented, value_word
from fairbench.core.text import said
from fairbench.experiments.configuration import usual_choices
from fairbench.results.catalogue import flat

_SPACE = " " * 6
_MAIN = ("seed", "protect", "n_jobs", "results", "plan")  # settings that are explained unasked


def run_help(words: Sequence[str]) -> str:
    """Return the help text of a run: what is usual, or with the word ``all`` everything.

    Parameters
    ----------
    words : the words of the command line; the help has the options of the components they choose.
    """
    whole = ALL in words
    main = (CONF / "config.yaml").read_text(encoding="utf-8")
    usual = usual_choices()
    defaults = {group: str(usual[group]) for group in choices.GROUPS}
    typed = dict(word.split("=", 1) for word in words if "=" in word)
    chosen = defaults | {name: choice for name, choice in typed.items() if name in defaults}
    explained = [group for group in chosen if whole or group in typed]
    parts = [said("cli", "help_of_run")]
    if whole or not explained:
        parts += [_choices(defaults, whole=whole), _settings(main, whole=whole)]
    if explained:
        parts.append(said("cli", "help_of_options"))
    parts += [text for group in explained if (text := _options(group, chosen[group]))]
    return "\n\n".join([*parts, TERMS if whole else f"{said('cli', 'help_of_more')}\n{TERMS}"])


def _choices(defaults: Mapping[str, str], *, whole: bool) -> str:
    """Return what there is to choose from, group by group."""
    lines = [said("cli", "help_of_choices")]
    first = yaml.safe_load((CONF / "help.yaml").read_text(encoding="utf-8"))
    for group, meaning in choices.GROUPS.items():
        names, usual = files_of(group), first.get(group, [])
        default = f" (default: {defaults[group]})" if defaults[group] != "default" else ""
        lines.append(f"  {group}=  {meaning}{default}")
        if not whole and usual:
            lines.append(f"{_SPACE}{', '.join(usual)}, and {len(names) - len(usual)} more")
        elif whole and usual and group != "dataset":  # fairbench data has the titles of data sets
            rows = [(f"    {name}", choices.sentence(group, name)) for name in names]
            lines += [table(rows), ""]
        elif whole and len(names) > 1:
            lines.append(filled(", ".join(names), _SPACE, _SPACE))
    return "\n".join([*lines, *_experiments(whole=whole)])


def _experiments(*, whole: bool) -> Iterator[str]:
    """Yield lines on the sweeps that are configured."""
    names = files_of("experiment")
    folders = sorted({name.partition("/")[0] for name in names})
    yield "  experiment=  a configured sweep, such as a table of a paper, or all of a folder"
    if not whole:
        yield f"{_SPACE}{', '.join(folders)}"
        return
    for folder in folders:
        inner = [name for name in names if name.startswith(f"{folder}/")]
        yield filled(", ".join([folder, *inner]), _SPACE, _SPACE)


def _settings(main: str, *, whole: bool) -> str:
    """Return the settings of every run, or the main ones, with the comments that explain them."""
    comments = _comments(main)
    settings = {key: node for key, node in yaml.safe_load(main).items() if key != "hydra"}
    del settings["defaults"]
    rows = [
        (f"{name}={value_word(value)}", comments.get(name.rpartition(".")[2], ""))
        for name, value in flat(settings).items()
        if whole or name in _MAIN
    ]
    if whole:
        launchers = sorted(path.stem for path in (CONF / "hydra/launcher").glob("*.yaml"))
        rows.append(("hydra/launcher=NAME", f"where a sweep is computed: {', '.join(launchers)}"))
    return f"Settings\n{table(rows, max(len(first) for first, _ in rows))}"


def _options(group: str, choice: str) -> str:
    """Return the options of a choice with their values; empty if there are none."""
    values = options_in(group, choice)
    rows = [
        (f"{group}.{name}={value_word(values[name])}", meaning)
        for name, meaning in _option_meanings(group, choice).items()
    ]
    if not rows:
        return ""
    heading = filled(f"{group}={choice}  {choices.sentence(group, choice)}", "  ", _SPACE)
    return f"{heading}\n{table(rows)}"


def _option_meanings(group: str, choice: str) -> dict[str, str]:
    """Return what each option of a choice means: the comment in its file, or the docstring's words.

    An option that neither explains has an empty text.
    """
    values = options_in(group, choice)
    meant = _parameter_texts(str(values.pop("_target_", "")))
    meant |= _comments_on(group, choice) if values else {}
    return {name: meant.get(name, "") for name in values}


def _comments_on(group: str, choice: str) -> dict[str, str]:
    """Return the comment behind each option of a choice, also of those that it builds on."""
    text = files_of(group)[choice].read_text(encoding="utf-8")
    bases = yaml.safe_load(text).get("defaults", [])
    of_bases = [_comments_on(group, base) for base in bases if base != "_self_"]
    return dict(ChainMap(_comments(text), *reversed(of_bases)))


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
    texts = {definition.name: ast.get_docstring(definition) or "" for definition in definitions}
    meant = documented(texts.get(name, ""))
    return {entry: text.replace("``", "").removesuffix(".") for entry, text in meant.items()}
