"""What a record says becomes words, commands and configurations in two modules, and nowhere else.

`experiments/configuration.py` compares what is stored with the components that are installed, and
writes it as words; `experiments/pipeline.py` composes a stored run from that. A module that
reads runs has no other way: what it composes, joins to a command, imports or reads as YAML is in
the table below, with where that comes from.
"""

import ast
from functools import cache

import pytest

from tests.harness import ROOT

PACKAGE = ROOT / "fairbench"
# Calls that make code, configurations or commands of text; and names of files that are made of it.
MAKES = (
    "OmegaConf.create", "OmegaConf.load", "OmegaConf.merge", "class_named", "compose", "eval",
    "exec", "hydra_word", "import_module", "imported", "importlib.import_module", "instantiate",
    "shlex.join", "yaml.compose", "yaml.load", "yaml.safe_load",
)  # fmt: skip
ENDINGS = (".yaml", ".yml", ".py")
GATE = {"experiments/configuration.py", "experiments/pipeline.py"}
# Of all others, what the text is that they do this with.
ELSEWHERE = {
    "__init__.py": "the package's own names",
    "audits/calls.py": "a policy, of which texts and lists are read and nothing is made",
    "audits/kinds/__init__.py": "the modules of kinds, whose names are written there",
    "cli/command.py": "the command line, and conf",
    "cli/command_line.py": "the command line",
    "cli/jobs.py": "the command line",
    "cli/main.py": "the verbs",
    "cli/run_help.py": "conf",
    "cli/verbs/paper.py": "nothing: it names the engine",
    "comparison/runs.py": "conf/reference.yaml",
    "components/__init__.py": "a composed configuration",
    "core/fingerprint.py": "the names of modules",
    "core/options.py": "any value, which it makes a word of",
    "data/download.py": "conf",
    "experiments/build.py": "a composed configuration",
    "metrics/registry.py": "the modules of metrics",
    "rank/fairbench_rank/leaderboard.py": "the command line",
    "results/catalogue.py": "the command line",
    "results/upkeep.py": "the command line",
    "search/fairbench_search/alternative_verb.py": "the command line, and conf/alternative.yaml",
    "search/fairbench_search/choose_verb.py": "the command line",
    "search/fairbench_search/tune_verb.py": "the command line",
    "tracking/importer.py": "the command line",
}


def makes(tree):
    """Yield what a module makes of text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKES:
            yield ast.unparse(node)
        if isinstance(node, ast.JoinedStr):
            texts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
            if "".join(texts).endswith(ENDINGS) and " " not in "".join(texts):
                yield ast.unparse(node)


@cache
def modules():
    """Return the modules of the library and extensions, not components, by where they lie."""
    return {
        name: ast.parse(path.read_text())
        for folder in (PACKAGE, ROOT / "extensions")
        for path in sorted(folder.rglob("*.py"))
        if not (name := path.relative_to(folder).as_posix()).startswith("components/")
        or name == "components/__init__.py"
    }


@pytest.mark.thorough
def test_text_becomes_code_words_and_commands_where_it_is_known_to():
    making = {name for name, tree in modules().items() if any(makes(tree))}
    assert making - GATE == set(ELSEWHERE)


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_nothing_stored_is_made_into_words_elsewhere(name):
    stored = (".choices[", ".config[", ".config.get(", ".environment[", ".summarised[")
    assert not [made for made in makes(modules()[name]) if any(each in made for each in stored)]
