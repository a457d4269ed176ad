"""Commands of papers/ as a reader gives them: words, help, mistakes, kills, missing data."""

import hashlib
import inspect
import json
import re
import runpy
import sys
from importlib import import_module

import pandas as pd
import pytest

from fairbench.cli.command import options_of, read
from fairbench.components.papers import CrossValidations, NoOptions, options_of_study
from fairbench.components.papers.black_box import estimation
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Computation
from fairbench.core.errors import UserError
from tests import warm
from tests.conformance import trees
from tests.harness import ROOT

SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "papers").rglob("*.py"))
}
# A module and each of its studies, by its source; of a single one it is called main.
RUN = re.compile(r"run_main\(([^)]*)\)\n\Z")
COMMANDS = [
    f"{name} {study.strip().removesuffix('main')}".strip()
    for name, text in SOURCES.items()
    for run in RUN.findall(text)
    for study in run.split(",")
]


def test_words_are_read_in_one_place():
    assert len(COMMANDS) > 30
    assert all("run_main(" in SOURCES[name.split()[0]] for name in COMMANDS)
    reading = [name for name, text in SOURCES.items() if "sys.argv" in text or "argparse" in text]
    assert reading == ["papers.__init__"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_every_option_with_its_default(command, monkeypatch, capsys):
    module, *words = command.split()
    monkeypatch.setattr("sys.argv", [module, *words, "--help"])
    monkeypatch.delitem(sys.modules, module, raising=False)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith(f"python -m {command}")
    study = getattr(import_module(module), *words or ["main"])
    text = inspect.getdoc(study) if words else import_module(module).__doc__
    assert " ".join(text.partition("\n\n")[0].split()) in shown
    for option in options_of(options_of_study(study)).values():
        assert f"{option.name}=" in shown
        assert option.sentence in shown
        if option.kind is int:
            assert f"{option.metadata['sentence']} (default: {option.default})" in shown


def test_words_are_read_as_the_verbs_read_theirs_and_names_of_scores_may_stand_alone():
    for options, word, message in (
        (CrossValidations, "cvs=-3", "cvs is -3; it must be at least 1"),
        (NoOptions, "runs=5", "unexpected word 'runs=5': this command has no options"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            read(options, [word])
    assert read(estimation.Options, []).scores == ("cifar100", "svhn")
    result = read(estimation.Options, ["svhn", "runs=20"])
    assert (result.scores, result.runs) == (("svhn",), 20)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder that the wheel is unpacked in, beside which there is no folder of data."""
    return trees.wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["fairlyuncertan"], "unknown paper 'fairlyuncertan': did you mean fairlyuncertain?"),
        (["fairlyuncertain", "table=14"], "fairlyuncertain has no table '14' here; valid: 1, 7, "),
        (["fairlyuncertain", "figure=99"], "fairlyuncertain has no figure '99' here; valid: 1, "),
        (["black_box", "table=1"], "black_box has no table '1' here"),
        (["fairlyuncertain", "study=rankings"], "unknown option 'study'"),
        (["fairlyuncertain", "few_labels"], "unexpected word 'few_labels'"),
        (["all", "table=1"], "all takes no table= and no figure=: name one paper"),
        (["fairlyuncertain", "table=1", "quick=true"], "add run=true"),
        ([], "no paper is named: fairbench paper NAME, of active_assessment, "),
    ],
)
@pytest.mark.parametrize("run", [[], ["run=true"]], ids=["look", "run"])
def test_what_does_not_exist_is_one_line(words, run, line, tmp_path, refused):
    given = [*words, *([] if "quick=true" in words else run)]
    refused("paper", *given, f"results={tmp_path / 'results'}", message=line)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["fairlyuncertain", "table=1"], "german/german.data"),
        (["few_labels", "table=4.2"], "adult/adult.data"),
        (["fairlyuncertain", "figure=12"], "german/german.data"),
    ],
    ids=["sweep", "computation", "figure"],
)
def test_without_data_and_network_the_file_is_named_and_what_still_runs(
    words, file, site, tmp_path
):
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9")
    done = warm.run(
        ["-m", "fairbench", "paper", *words, "run=true", "quick=true"], cwd=tmp_path,
        timeout=200, tree=site,
        environment={**nowhere, "FAIRBENCH_DATA": "", "FAIRBENCH_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("error: ")
    assert f"fairbench paper {words[0]} run=true runs all that can be run without it" in lines[-1]
    told = [line for line in lines if line.startswith("error: ") and "the raw file" in line]
    assert any(file in line for line in told), lines


@pytest.mark.parametrize("same", [True, False], ids=["the same numbers", "other numbers"])
def test_what_the_last_version_stored_is_shown_if_it_is_of_these_numbers(same, tmp_path, said_by):
    paper = Paper.read("active_assessment", ROOT / "papers")
    table = next(iter(paper.tables))
    (name,) = paper.computed(table)
    computation = Computation(paper, name, table, tmp_path)
    rows, path = computation.rows, computation.path()
    digest = hashlib.sha256(rows.to_csv().encode()).hexdigest() if same else "of others"
    path.parent.mkdir(parents=True)
    # Without the columns that came later.
    pd.DataFrame({"row": rows.index, "mean": 98.7, "sd": 1.0, "repeats": 1000}).to_csv(path)
    path.with_suffix(".json").write_text(json.dumps({"published": digest}))
    said = said_by("paper", paper.name, f"table={table}", f"results={tmp_path}")
    assert ("98.7" in said) is same
