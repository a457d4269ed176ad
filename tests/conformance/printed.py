"""Every command line that the project prints: in pages, docstrings, lessons, examples and help.

The changelog names commands of its time and is not read.
"""

import ast
import inspect
import itertools
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from fairbench.cli.main import _module_of, verbs
from fairbench.components import files_of
from fairbench.core.text import said
from tests.harness import CONF, ROOT

PAGES = sorted(
    path
    for place in ("*.md", "docs/**/*.md", "conf/**/*.md", "papers/**/*.md", "benchmarks/**/*.md",
                  "extensions/**/*.md", "results/*.md")
    for path in ROOT.glob(place)
    if path.name != "CHANGELOG.md" and "generated" not in path.parts
)  # fmt: skip
SHELL = ("", "bash", "sh", "console", "shell")  # of fenced blocks, what their lines are read as
CODE = ("fairbench", "datasets", "algorithms", "papers", "benchmarks", "extensions")
CAPITALS = re.compile(r"[A-Z][A-Z_]*|\.\.\.|…")


class Printed(NamedTuple):
    """A command line as words, and the file that prints it."""

    file: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file} prints '{shlex.join(self.words)}'"


def commands(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the command lines of this project that a page prints in spans and in blocks."""
    blocks = re.findall(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    outside = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    for _, span in re.findall(r"(`+)(.+?)\1", outside, re.DOTALL):
        yield from _commands_of(span.replace("\n", " "))
    for language, block in blocks:
        if language in SHELL:
            for line in re.sub(r"\\\n", " ", block).splitlines():
                yield from _commands_of(line)


def _commands_of(line: str) -> Iterator[tuple[str, ...]]:
    try:
        words = shlex.split(_without_options(line), comments=True)
    except ValueError:  # an apostrophe: prose, or output
        return
    parts: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", "||", "|", ";", ">"):
            parts.append([])
        elif word not in ("$", "..."):
            parts[-1].append(word)
    for part in parts:
        while part and re.match(r"\w+=", part[0]):
            yield from _commands_of(part[0].partition("=")[2]) if " " in part[0] else ()
            part = part[1:]
        name = part[0].removeprefix(".venv/bin/") if part[1:] else ""
        if name in ("python", "fairbench", "make"):
            yield (name, *part[1:])


def _without_options(line: str) -> str:
    """Return a line with the [words] that may be left out, as far as none is in capitals."""
    start, *rest = re.split(r"(?<=\s)\[([^][]*)\]", line)
    given = list(itertools.takewhile(lambda words: not re.search(r"\b[A-Z]+\b", words), rest[::2]))
    return start + "".join(map("".join, itertools.zip_longest(given, rest[1::2], fillvalue="")))


@cache
def printed() -> tuple[Printed, ...]:
    """Return every command once, with the first file that prints it."""
    result: dict[tuple[str, ...], str] = {}
    for file, text in _texts():
        for words in commands(text):
            result.setdefault(words, file)
    for file, words in _of_help():
        result.setdefault(words, file)
    for path in sorted((ROOT / "papers").glob("*/contents.yaml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            if "command" in entry:
                words = shlex.split(entry["command"])
                result.setdefault(tuple(words), _name(path))
                quick = shlex.split(str(entry.get("quick") or ""))
                result.setdefault((*words, *quick), _name(path))
    return tuple(Printed(file, words) for words, file in result.items())


def _of_help() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the examples of every verb, and what its help and that of all say can be asked."""
    yield "fairbench/cli/main.py", ("fairbench", "--help")
    yield "fairbench/cli/main.py", ("fairbench", "--version")
    for line in re.findall(r"(?m)^ +.*?  (fairbench run .*)", said("cli", "help_of_run")):
        yield "fairbench/cli/run_help.py", tuple(shlex.split(line))
    for verb in verbs():
        module = _module_of(verb)
        file = _name(Path(str(inspect.getsourcefile(module))))
        whole = getattr(module, "COMMAND", None)
        parts = getattr(module, "COMMANDS", {"": whole} if whole else {})
        yield file, ("fairbench", verb, "--help")
        for part, command in parts.items():
            if part:
                yield file, ("fairbench", verb, part, "--help")
            for example in command.examples:
                yield file, tuple(shlex.split(example))


def _texts() -> Iterator[tuple[str, str]]:
    """Yield names and texts of pages, of docstrings, and of the words of lessons."""
    for path in PAGES:
        yield _name(path), path.read_text(encoding="utf-8")
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not re.search(r"(fairbench|python|make) [\w-]", text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    yield _name(path), ast.get_docstring(node) or ""
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.py")):
        lines = re.findall(r"(?m)^# ?(.*)$", path.read_text(encoding="utf-8"))
        shell = [line for line in lines if line.startswith("   fairbench ")]
        yield _name(path), "\n".join([*lines, "```", *shell, "```"])


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def filled(word: str) -> str:
    """Return a word, with a value in place of one in capitals."""
    name, _, value = word.partition("=")
    if not CAPITALS.fullmatch(value):
        return word
    options = sorted(path.stem for path in (CONF / name).glob("*.yaml"))
    if name == "experiment":
        options = files_of("experiment")
    return f"{name}={options[0] if options else '1'}"
