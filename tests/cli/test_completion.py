"""Words that are completed at a tab, in shells as a person starts them."""

import os
import re
import shutil
import sys

import pytest

from fairbench.cli.command import GROUPS
from fairbench.cli.main import verbs
from fairbench.cli.verbs import completion
from fairbench.components import files_of
from fairbench.core.text import declared_in
from tests.cli.test_verbs import COMMANDS
from tests.harness import Terminal

PROMPT = "ready> "
STARTED = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"PS1='{PROMPT}'",
             'eval "$(fairbench completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], f"PS1='{PROMPT}'", 'eval "$(fairbench completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"],
             f"function fish_prompt; printf '{PROMPT}'; end", "fairbench completion fish | source"),
}  # fmt: skip
# What is typed before a tab, and what stands there after it.
COMPLETED = {
    "fairbench compa": "fairbench compare ",
    "fairbench store pac": "fairbench store pack ",
    "fairbench compare objecti": "fairbench compare objectives=",
    "fairbench compare rho_per=gr": "fairbench compare rho_per=group",
    "fairbench run dataset=acs_emp": "fairbench run dataset=acs_employment_fu",
    "fairbench run method=self": "fairbench run method=self_consistency",
    "fairbench audit my_people": "fairbench audit my_people.csv",
}


@pytest.mark.thorough
@pytest.mark.parametrize("shell", STARTED)
def test_a_tab_completes_what_is_typed(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "my_people.csv").touch()
    words, prompt, line = STARTED[shell]
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    terminal = Terminal(words, tmp_path, PATH=path, TERM="xterm", HOME=str(tmp_path))
    try:
        terminal.type(f"{prompt}\n{line}\necho be''gun\n")
        terminal.until("begun")
        for typed, whole in COMPLETED.items():
            terminal.type(f"{typed}\t")
            terminal.until(re.escape(whole.removeprefix(typed)))
            terminal.type("\x15")  # an empty line again
    finally:
        terminal.close()


def complete(line):
    return list(completion._candidates(line))


def test_what_a_word_may_become():
    assert set(complete("fairbench ")) >= {f"{verb} " for verb in verbs()}
    assert complete("fairbench store ls pu") == ["purpose="]
    assert complete("fairbench store p") == ["pack "]
    assert "dataset=[adult,german" in complete("fairbench choose dataset=[adult,g")
    assert complete("fairbench choose format=h") == ["format=html"]
    assert complete("fairbench nothing x") == []
    assert complete("fairbench compare rho_per=m") == ["rho_per=mean"]
    for group in GROUPS:
        assert complete(f"fairbench run {group}=") == [
            f"{group}={name}" for name in files_of(group)
        ]


def test_the_table_has_every_option_of_every_command():
    table = declared_in("cli", "options.toml")
    for words, command in COMMANDS.items():
        options = table[" ".join(words)]
        for name, declared in command.declared.items():
            if not declared.pairs:
                choices = [choice for choice in declared.metadata["choices"] if choice]
                assert options[name] == (["true", "false"] if declared.kind is bool else choices)
    assert {" ".join(words) for words in COMMANDS} == table.keys() - {"run", "resolve"}, (
        "write it anew: python -m docs.pages"
    )
