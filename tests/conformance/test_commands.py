"""Every command that a page, a docstring of papers/ or a list of a paper's contents prints exists.

Words of ``fairbench`` and ``run.py`` are read by their own parsers and composed; modules and make
targets are there. What is in capitals stands for something of the reader's: it is given a value
that the parser takes. The changelog names commands of its time and is not read.
"""

import ast
import contextlib
import itertools
import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
import yaml

from fairbench.cli import alternative, resolving, tuning
from fairbench.cli import run as running
from fairbench.cli.command import Command
from fairbench.cli.command_line import hydra_of
from fairbench.cli.main import main
from fairbench.cli.options import read
from fairbench.cli.run import run
from fairbench.core.errors import UserError
from fairbench.data.download import MissingFileError
from fairbench.experiments.presets import experiments_in
from tests import warm
from tests.harness import CONF, ROOT, quick
from tests.papers import stand_ins
from tests.papers.commands import options_class

PAGES = sorted(
    path
    for place in ("*.md", "docs/**/*.md", "conf/**/*.md", "papers/**/*.md", "benchmarks/**/*.md",
                  "results/*.md")
    for path in ROOT.glob(place)
    if path.name != "CHANGELOG.md" and "generated" not in path.parts
)  # fmt: skip
SHELL = ("", "bash", "sh", "console", "shell")  # of fenced blocks, what their lines are read as
CAPITALS = re.compile(r"[A-Z][A-Z_]*|\.\.\.|…")
RUN = ("python", "run.py")


class Printed(NamedTuple):
    """A command line as words, and the file that prints it."""

    file: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file} prints '{shlex.join(self.words)}'"


def test_commands_are_found_in_spans_and_blocks():
    text = """See `make
test` and ``fairbench paper NAME``, or `fairbench`.
```bash
X=1 fairbench run dataset=adult \\
  seed=3  # one
cd x && python -m papers.black_box [runs=2] [NAME] [last] | head
run="python run.py -m a=b"
```
```python
fairbench.run()
```
"""
    assert list(commands(text)) == [
        ("make", "test"),
        ("fairbench", "paper", "NAME"),
        ("fairbench", "run", "dataset=adult", "seed=3"),
        ("python", "-m", "papers.black_box", "runs=2"),
        ("python", "run.py", "-m", "a=b"),
    ]


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
    for path in sorted((ROOT / "papers").glob("*/contents.yaml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            if "command" in entry:
                words = shlex.split(entry["command"])
                result.setdefault(tuple(words), _name(path))
                quick = shlex.split(str(entry.get("quick") or ""))
                result.setdefault((*words, *quick), _name(path))
    return tuple(Printed(file, words) for words, file in result.items())


def _texts() -> Iterator[tuple[str, str]]:
    """Yield names and texts of pages, and of the docstrings of papers and benchmarks."""
    for path in PAGES:
        yield _name(path), path.read_text(encoding="utf-8")
    for folder in ("papers", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    yield _name(path), ast.get_docstring(node) or ""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def of(*start: str) -> list[Printed]:
    """Return the printed commands that begin so."""
    return [command for command in printed() if command.words[: len(start)] == start]


def test_make_targets_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    asked = of("make")
    assert len(asked) > 10
    for command in asked:
        for target in command.words[1:]:
            pattern = re.sub("[A-Z]+", "[a-z-]+", target)
            there = any(re.fullmatch(pattern, known) for known in targets)
            assert "=" in target or there, f"{command}: the Makefile has no target {target}"


def modules() -> list[str]:
    """Return the modules of papers and benchmarks that are commands."""
    paths = [path for name in ("papers", "benchmarks") for path in (ROOT / name).rglob("*.py")]
    return sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for path in paths
        if path.stem == "__main__" or '__name__ == "__main__"' in path.read_text()
    )


def test_modules_exist_and_know_their_words():
    # Imported here: they import every benchmark, and collecting tests is to be quick.
    from benchmarks.__main__ import BENCHMARKS
    from benchmarks.coverage.__main__ import Options
    from benchmarks.faults.__main__ import FAULTS

    asked, wrong = of("python", "-m"), []
    assert len(asked) > 40
    for command in asked:
        _, _, module, *words = command.words
        if CAPITALS.search(module):
            continue
        if module.partition(".")[0] not in ("papers", "benchmarks"):
            assert find_spec(module), f"{command}: there is no module {module}"
            continue
        assert module in modules(), f"{command}: there is no module {module} with a main function"
        words = [word for word in map(filled, words) if not CAPITALS.fullmatch(word)]
        known = {
            "benchmarks": BENCHMARKS,
            "benchmarks.faults": FAULTS,
            "benchmarks.golden": ["write"],
        }
        if module in known:
            names = [word for word in words if word.isalpha()][:1]
            assert set(names) <= set(known[module]), (
                f"{command}: it knows {', '.join(known[module])}"
            )
        if module == "benchmarks.coverage":
            assert read(Options, words), command
        if module.startswith("papers."):
            wrong += unreadable(command, options_class(module), words)
    assert not wrong, "\n".join(wrong)


def unreadable(each: Printed, options: type, words: list[str]) -> list[str]:
    """Return why a command's words cannot be read, as a list of one or none."""
    try:
        read(options, words)
    except UserError as error:
        return [f"{each}: {error}"]
    return []


def filled(word: str) -> str:
    """Return a word, with a value in place of one in capitals."""
    name, _, value = word.partition("=")
    if not CAPITALS.fullmatch(value):
        return word
    options = sorted(path.stem for path in (CONF / name).glob("*.yaml"))
    if name == "experiment":
        options = experiments_in(CONF)
    return f"{name}={options[0] if options else '1'}"


@pytest.fixture
def parsed(monkeypatch):
    """Have commands be read and composed, and nothing be carried out."""
    carried_out = Command.carry_out

    def only_searches(self, options):
        searches = self.options.__name__ in ("TuneOptions", "AlternativeOptions")
        return carried_out(self, options) if searches else 0

    def asked(options):
        if not options.stored:
            with hydra_of(CONF):
                words = alternative.Asked(options, CONF)
                assert words.line.compose(words.fixed)
                if "dataset.path" not in dict(options.words):  # a file of the reader's
                    with without_raw_files():
                        assert words.in_use and words.families
        return 0

    def composed(line, *rest):
        first = line[0] if isinstance(line, list) else line
        return 0 if first.compose(first.jobs[0]) else 1

    monkeypatch.setattr(Command, "carry_out", only_searches)
    monkeypatch.setattr(alternative, "carry_out", asked)
    carried_out_by = (
        (running, "_single"),
        (running, "_sweep"),
        (tuning, "tune"),
        (resolving, "resolve"),
    )
    for module, name in carried_out_by:
        monkeypatch.setattr(module, name, composed)
    with mock.patch.dict(os.environ):
        yield


@contextlib.contextmanager
def without_raw_files() -> Iterator[None]:
    """Let what reads a data set go, where its raw files are not at hand and there is no network."""
    with contextlib.suppress(MissingFileError):
        yield


def readable(each: Printed) -> list[str]:
    """Return the words of a command as somebody would type them, without choices of their own."""
    text, own = (ROOT / each.file).read_text(encoding="utf-8"), {}
    for group, name in re.findall(r"(?:conf|examples)/(\w+)/(\w+)\.yaml", text):
        own.setdefault(group, set()).add(name)
    words = []
    for word in map(filled, each.words):
        group, _, names = word.partition("=")
        if group in own:
            names = ",".join(name for name in names.split(",") if name not in own[group])
            word = f"{group}={names}" if names else ""
        words += [] if not word or CAPITALS.fullmatch(word) else [word]
    return words


SHOWN = {"--cfg", "job"}  # Hydra's own, which show what would be run


@pytest.mark.parametrize(
    "start",
    quick([("fairbench",), ("python", "-m", "fairbench"), RUN], [("fairbench",)]),
    ids=" ".join,
)
def test_verbs_options_and_choices_exist(start, parsed, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for command in of(*start):
        words = readable(command)[len(start) :]
        asks_help = "--help" in words or "-h" in words
        if not asks_help and (start == RUN or words[:1] == ["run"]):
            words = [word for word in words if word not in SHOWN]
        elif len(words) == 1:  # a verb that is spoken of
            words.append("--help")
        status = run(words, ROOT) if start == RUN else main(words)
        said = capsys.readouterr()
        if status or "Traceback" in said.err:
            wrong.append(f"{command}: {said.err.strip() or said.out}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy of papers/, which some studies write to, beside what they read; and raw files.

    The raw files are stand-ins.
    """
    folder = tmp_path_factory.mktemp("studies")
    stand_ins.write(folder / "raw")
    shutil.copytree(ROOT / "papers", folder / "papers")
    for name in ("conf", "datasets", "algorithms", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


STARTED = ROOT / "tests" / "papers" / "started.py"
SECONDS = "0.3"  # of CPU time, in which no study fails that works
MADE_BY = re.compile(r"python (run\.py|-m) |fairbench |make ")


STUDIES = [name for name in modules() if name.startswith("papers.")]
FIRST = {name.split(".")[1]: name for name in reversed(STUDIES)}  # of each paper


@pytest.mark.parametrize("module", quick(STUDIES, list(FIRST.values())[:2]))
def test_every_study_starts_or_says_in_a_line_what_it_misses(module, checkout):
    own = Printed(module.replace(".", "/"), ("python", "-m", module))
    for study in of(*own.words) or [own]:
        shutil.rmtree(checkout / "results", ignore_errors=True)
        words = [word for word in map(filled, study.words[2:]) if not CAPITALS.fullmatch(word)]
        done = warm.run(
            [str(STARTED), str(checkout / "raw"), SECONDS, *words],
            cwd=checkout, timeout=60, environment={},
        )  # fmt: skip
        (*_, said) = ["", *done.stderr.strip().splitlines()]
        misses = done.returncode == 2 and said.startswith("error: ") and MADE_BY.search(said)
        works = done.returncode in (0, -signal.SIGPROF)
        traced = "Traceback" in done.stderr
        assert (works or misses) and not traced, f"{study}: exit {done.returncode}, {done.stderr}"
