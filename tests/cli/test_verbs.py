"""Every verb: its help, ``results=`` in any place, the nearest name for an unknown one."""

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from fairbench.cli.command import Asked, Results, _asked, items, read
from fairbench.cli.main import SECTIONS, _module_of, _overview, main, verbs
from fairbench.core.errors import UserError
from fairbench.core.options import option
from tests.harness import ROOT, python, verb


def commands():
    """Yield the words of every command that reads its options here, and its dataclass."""
    for name in verbs():
        module = _module_of(name)
        if hasattr(module, "COMMAND"):
            yield (name,), module.COMMAND
        for part, part_command in getattr(module, "COMMANDS", {}).items():
            yield tuple(filter(None, (name, part))), part_command


COMMANDS = dict(commands())
# Unpacking names its folder by out=, and has none of results.
WITH_RESULTS = [words for words, command in COMMANDS.items() if "results" in command.declared]


def _explained(capsys, *words):
    """Return the help that words ask for."""
    assert main([*words]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    assert "docs/glossary.md" in printed
    return printed


@pytest.mark.parametrize("words", [*COMMANDS, ("run",), ("run", "learner=tabm")], ids=" ".join)
def test_help_fits_on_a_screen_and_that_of_all_explains_every_option(words, capsys):
    printed = _explained(capsys, *words, "--help")
    assert _explained(capsys, "--help", *words) == printed
    assert len(printed.splitlines()) <= 40
    whole = _explained(capsys, *words, "--help", "all")
    if whole != printed:
        assert re.search(r"--help all explains (all of it|\d+ further options)\.\n", printed)
    command = COMMANDS.get(words)
    for name, field in (command.declared if command else {}).items():
        assert field.sentence.endswith(".") and field.sentence[0].isupper()
        assert len(words) == 1 or f"{name}=" in whole or field.pairs
        assert name != "seed" or field.metadata["least"] == 0
    assert not command or "fairbench" in whole.split("Examples")[1]


@pytest.mark.parametrize("words", WITH_RESULTS, ids=" ".join)
def test_every_verb_takes_results_in_any_place(words):
    command = COMMANDS[words]
    arguments = [field for field in command.declared.values() if field.argument]
    taken = [field for field in arguments if not field.pairs and field.name != "results"]
    argument = ["x"] if taken else ["dataset=german"] if words == ("tune",) else []
    for line in (["results=elsewhere", *argument], [*argument, "results=elsewhere"]):
        assert command.read(line).results == Path("elsewhere")


@pytest.mark.thorough
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_verb_refuses_what_it_does_not_know(words, capsys):
    for mistaken in ("reslts=x", "--reslts"):
        assert main([*words, mistaken]) == main([mistaken, *words]) == 2
        for line in capsys.readouterr().err.splitlines():
            assert line.startswith("error: unknown ")
            assert "did you mean results" in line or words not in WITH_RESULTS


REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())


@pytest.mark.parametrize(("line", "message"), REFUSED.items())
def test_a_mistake_is_one_line_and_nothing_is_done(line, message, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    Path("README.md").touch()
    refused(*line.split(), message=message)
    assert not Path("results/cells").exists()


@pytest.mark.thorough
def test_help_works_without_what_runs_need():
    code = (
        "import sys\n"
        "for name in ('hydra', 'omegaconf', 'matplotlib', 'mlflow', 'sklearn', 'joblib'):\n"
        "    sys.modules[name] = None\n"
        "from fairbench.cli.main import main, verbs\n"
        "sys.exit(sum(main([verb, '--help']) for verb in verbs() if verb != 'run'))"
    )  # of `run`, help is Hydra's own
    python("-c", code)


@dataclass(frozen=True)
class Sample(Results):
    name: str = option("", "A name.", argument="NAME")
    sizes: tuple[int, ...] = option((1, 2), "Sizes.")
    share: float | None = option(None, "A share.")
    flag: bool = option(False, "A flag.")
    column: str = option("", "One column, or several.", several="columns")
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = option((), "Rows.", pairs=str.isdecimal)


def test_no_option_hides_what_asked_options_can_do():
    reserved = {name for name in vars(Asked) if name[0] != "_"} | {"given"}
    assert not any(reserved & command.declared.keys() for command in COMMANDS.values())


def test_values_are_read_by_their_types():
    result = _asked([Sample], ["sizes=[3,4]", "here", "share=0.5", "flag=TRUE", "17=yes", "18=no"])
    assert (result.name, result.sizes, result.share, result.flag) == ("here", (3, 4), 0.5, True)
    assert result.rows == (("17", "yes"), ("18", "no"))
    assert result.given == {"name", "sizes", "share", "flag", "rows"}
    again = read(Sample, ["name=a=b", "sizes=null", "column=[x]"])
    assert (again.name, again.sizes, again.column, again.columns) == ("a=b", (1, 2), "x", ())
    assert read(Sample, ["column=[x,y]"]).columns == ("x", "y")
    assert items('[a, "b,c"]', "x") == ("a", "b,c")
    for wrong in ("columns=[x]", "share=few", "sizes=[1,a]", 'column=["a]'):
        with pytest.raises(UserError):
            read(Sample, [wrong])


def test_results_are_in_the_folder_one_is_in(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert Results().results == Path("results")
    monkeypatch.chdir(tmp_path)  # outside a checkout the whole path, so that it is printed
    assert Results().results == tmp_path / "results"


def test_verbs_are_listed_at_once_by_what_they_are_for(capsys):
    started = time.process_time()
    assert main(["--help"]) == main(["--version"]) == 0
    assert time.process_time() - started < 0.2
    printed = _overview()
    assert printed in capsys.readouterr().out and len(printed.splitlines()) <= 40
    # What a verb does, and not what a part of its file is.
    assert not re.search(r"^  [a-z]+ +(A|An|The|What) ", printed, re.MULTILINE)
    blocks = printed.split("\n\n")[2:-2]
    assert [block.partition("\n")[0] for block in blocks] == list(SECTIONS)
    listed = [re.findall(r"(?m)^  (\S+)  +\S", block) for block in blocks]
    assert sorted(sum(listed, [])) == verbs() and "watch" in listed[-1]
    assert {path.stem for path in (ROOT / "fairbench/cli/verbs").glob("[a-z]*.py")} <= {*verbs()}


def test_a_closed_pipe_ends_in_silence(tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        verb("--help"), cwd=tmp_path, env=environment, stdout=write_end, stderr=subprocess.PIPE
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")
