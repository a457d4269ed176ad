"""Commands of papers/ are one kind: their words, help and mistakes are those of ``fairbench``."""

import inspect
import runpy
import sys
from importlib import import_module

import pytest

from fairbench.cli.command import options_of, read
from fairbench.components.papers import PAPERS, ROOT, CrossValidations, NoOptions
from fairbench.components.papers.black_box import estimation
from fairbench.components.papers.few_labels import tables
from fairbench.components.papers.uncertainty_fairness import studies
from fairbench.core.errors import UserError
from tests.papers.commands import options_class, studies_of, study_of

SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text(encoding="utf-8")
    for path in sorted(PAPERS.rglob("*.py"))
}
COMMANDS = [
    f"{name} {study}".strip() for name, text in SOURCES.items() for study in studies_of(text)
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
    study = study_of(command)
    text = import_module(command).__doc__ if study.__name__ == "main" else inspect.getdoc(study)
    paragraph = text.partition("\n\n")[0]
    assert " ".join(paragraph.split()) in shown
    for option in options_of(options_class(command)).values():
        assert f"{option.name}=" in shown
        assert option.sentence in shown
        if option.kind is int:
            assert f"{option.metadata['sentence']} (default: {option.default})" in shown


@pytest.mark.parametrize(
    ("options", "word", "message"),
    [
        (tables.ErrorsOptions, "scores=third", "unknown scores 'third': did you mean thirds?"),
        (studies.PopulationOptions, "networks=train", "unknown networks 'train'"),
        (CrossValidations, "cvs=-3", "cvs is -3; it must be at least 1"),
        (NoOptions, "runs=5", "unexpected word 'runs=5': this command has no options"),
    ],
)
def test_mistakes_are_refused_as_the_verbs_refuse_them(options, word, message):
    with pytest.raises(UserError) as refused:
        read(options, [word])
    assert message in str(refused.value)


def test_names_of_scores_may_stand_alone():
    assert read(estimation.Options, []).scores == ("cifar100", "svhn")
    result = read(estimation.Options, ["svhn", "runs=20"])
    assert (result.scores, result.runs) == (("svhn",), 20)
