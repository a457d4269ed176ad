"""Every command that a page, a docstring of papers/ or a list of a paper's contents prints exists.

Words of ``fairbench`` and ``run.py`` are read by their own parsers and composed; modules and make
targets are there. What is in capitals stands for something of the reader's: it is given a value
that the parser takes. The changelog names commands of its time and is not read.
"""

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from unittest import mock

import pytest

from fairbench.cli import alternative, resolving, tuning
from fairbench.cli import run as running
from fairbench.cli.command import Command
from fairbench.cli.command_line import hydra_of
from fairbench.cli.main import main
from fairbench.cli.options import read
from fairbench.cli.run import run
from fairbench.core.errors import UserError
from fairbench.data.download import MissingFileError
from tests import warm
from tests.harness import CONF, ROOT, quick
from tests.papers import stand_ins
from tests.papers.commands import options_class

RUN = ("python", "run.py")


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


def test_make_targets_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    asked = of("make")
    assert len(asked) > 10
    for command in asked:
        for target in command.words[1:]:
            pattern = re.sub("[A-Z]+", "[a-z-]+", target)
            there = any(re.fullmatch(pattern, known) for known in targets)
            assert "=" in target or there, f"{command}: the Makefile has no target {target}"


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
