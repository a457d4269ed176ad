"""Every command that a page, a lesson, a docstring or a help text prints works.

Each is started as a process of its own, in a clone of the repository, and runs to its end or until
it has stored a result. ``commands.yaml`` says what makes it small; nothing that it does is
replaced. ``make test-all`` starts README's and the longest of each kind, and ``make test-slow``
all; tables and figures of papers are in ``tests/papers/test_commands.py``, which starts them from
the wheel.
"""

import pytest

from tests.conformance import readers, trees
from tests.conformance.printed import printed
from tests.conformance.starting import Place, prepare, rules, start

PARTS = 16


@pytest.mark.thorough
def test_every_rule_is_of_a_command_that_is_printed():
    idle = [rule.of for rule in rules() if not any(map(rule.is_of, printed()))]
    assert not idle, f"commands.yaml has rules of no command: {idle}"


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a clone with the files of a reader and finished runs."""
    folder = tmp_path_factory.mktemp("commands")
    tree = trees.clone(folder / "clone")
    readers.put_components(tree)
    return prepare(tree, folder / "kept")


def part(number, *, whole=False):
    """Return a part of README's commands and of the longest of each kind, or of all."""
    every = [command for command in printed() if whole or not is_slow(command)]
    if not whole:
        ordered = sorted(every, key=lambda each: ("--help" not in each.words, len(each.words)))
        longest = list({kind(each): each for each in ordered}.values())
        every = [each for each in every if each.file == "README.md" or each in longest]
    return every[number::PARTS]


def kind(command):
    """Return the module or verb that a command starts, and the verb's part."""
    words = [word for word in command.words if not word.startswith("-") and "=" not in word]
    return tuple(word for word in words[: 2 if words[0] == "python" else 3] if word.islower())


def is_slow(command):
    """Return whether a command is for ``make test-slow`` alone."""
    return any(rule.slow and rule.is_of(command) for rule in rules())


def wrong(asked, place):
    """Return what is wrong with some commands, and have nothing wrong be nothing."""
    return "\n\n".join(filter(None, (start(command, place) for command in asked)))


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(PARTS))
def test_every_printed_command_works(number, clone):
    assert not (told := wrong(part(number), clone)), told


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PARTS))
def test_every_printed_command_works_when_started_afresh(number, clone):
    afresh = Place(clone.folder, clone.kept, fresh=True)
    assert not (told := wrong(part(number, whole=True), afresh)), told
