"""Complete words of fairbench at a tab: print what bash, zsh or fish reads for that.

One line in the file that the shell reads when it starts, such as ~/.bashrc, does it: in bash and
zsh eval "$(fairbench completion bash)", with the shell's own name, and in fish
fairbench completion fish | source. Verbs, their parts and options, the names of components and
other choices are completed, and anything else as a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairbench.cli.command import command
from fairbench.components import files_of
from fairbench.core.options import option
from fairbench.core.text import declared_in

_SHELLS = ("bash", "zsh", "fish")
# What each command takes, as their modules declare it: reading these would take a second a tab.
_TABLE = "options.toml"


def _print_completion(
    shell: str = option(
        "", argument="SHELL", choices=_SHELLS, needed=f"no shell is named: {', '.join(_SHELLS)}"
    ),
    line: str = option("", shown="TEXT"),
) -> None:
    """Print the function of a shell, or what a word may become.

    Parameters
    ----------
    shell : The shell whose function is printed.
    line : The command line so far: what its last word may become is printed, for the function.

    Examples
    --------
    fairbench completion bash
    fairbench completion fish
    """
    if not line:
        print(declared_in("cli", "completion.toml")[shell], end="")
        return
    for word in _candidates(line):
        print(word)


def _candidates(line: str) -> Iterator[str]:
    """Yield what the last word of a command line may become; a space ends what is whole."""
    from fairbench.cli.main import verbs

    typed = line.split()
    typed = [*typed[1:], *[""] * line[-1:].isspace()]
    *before, last = typed or [""]
    plain = [word for word in before if "=" not in word and word[:1] != "-"]
    if not plain:
        found = [f"{verb} " for verb in [*verbs(), "--help", "--version"]]
    else:
        found = list(_of_verb(plain, last))
    return (word for word in found if word.startswith(last))


def _of_verb(plain: Sequence[str], last: str) -> Iterator[str]:
    """Yield the parts of a verb, its options, or the values of the one that is being typed."""
    declared: Mapping[str, Mapping[str, list[str]]] = declared_in("cli", _TABLE)
    verb, part = plain[0], " ".join(plain[:2])
    options = declared.get(part, declared.get(verb, {}))
    name, equals, text = last.partition("=")
    if equals:
        done = text[: max(text.rfind(","), text.rfind("[")) + 1]
        for value in options.get(name) or files_of(name):
            yield f"{name}={done}{value}"
        return
    if part not in declared:
        yield from (f"{of.partition(' ')[2]} " for of in declared if of.startswith(f"{verb} "))
    yield from (f"{name}=" for name in options)
    yield "--help "


COMMAND = command(_print_completion)
