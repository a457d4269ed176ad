"""Files are opened by one door, patterns end, and nothing stored is made into words elsewhere."""

import ast
import itertools
import random
import re
import signal
import time
from collections import deque
from importlib import import_module

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness import EXTENSIONS, ROOT

PACKAGE = ROOT / "fairbench"
BEHIND = (
    *sorted((PACKAGE / "results").glob("*.py")),
    *(PACKAGE / "core" / f"{name}.py" for name in ("files", "processes")),
    *(PACKAGE / "experiments" / f"{name}.py" for name in ("execute", "pipeline")),
    PACKAGE / "audits" / "report.py",
    *(ROOT / "extensions" / name for name in (
        "label/fairbench_label/session.py", "search/fairbench_search/tuning.py",
        "watch/fairbench_watch/state.py",
    )),
    *sorted((PACKAGE / "reporting" / "page").glob("*.py")),
    PACKAGE / "reporting" / "document" / "writing.py",
    PACKAGE / "tracking" / "importer.py",
)  # fmt: skip
# Methods of a path, and functions of os, shutil and tempfile, that open, make, remove or rename.
OF_PATHS = {
    "chmod", "glob", "hardlink_to", "iterdir", "mkdir", "open", "read_bytes", "read_metadata",
    "read_text", "rename", "rglob", "rmdir", "symlink_to", "touch", "unlink", "write_bytes",
    "write_text",
}  # fmt: skip
OF_MODULES = {
    "files": set(),  # core/files.py itself
    "os": {"chmod", "fwalk", "link", "listdir", "makedirs", "mkdir", "open", "remove", "rename",
           "renames", "replace", "rmdir", "scandir", "symlink", "truncate", "unlink", "utime",
           "walk"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"},
    "tempfile": {"NamedTemporaryFile", "TemporaryDirectory", "mkdtemp", "mkstemp"},
}  # fmt: skip
# What is read of the machine, of the checkout, of a file that its user names, or of an open zip;
# and descriptors.
THROUGH = ("opened", "files.opened")
ALLOWED = {
    "Path('/proc/cpuinfo').read_text()",
    "Path('/proc/self/statm').read_bytes()",
    "Path(f'/proc/{parents[-1]}/stat').read_text()",
    # The private folder that a browser prints a page in.
    "tempfile.TemporaryDirectory(ignore_cleanup_errors=True)",
    "printed.read_bytes()",
    "path.open('rb')",
    "os.scandir(handle)",
    "os.utime(handle)",
    # The way into the outermost folder, by which all others are reached.
    "os.open(start, _FOLDER)",
    "Path(start).mkdir(511 if inner_names else make, parents=True, exist_ok=True)",
    "archive.open(name)",
}


def calls(path):
    """Yield the calls of a module that reach a file by its path."""
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        name, what = call.func, call.args[0] if call.args else None
        if isinstance(name, ast.Attribute):
            module = name.value.id if isinstance(name.value, ast.Name) else ""
            if name.attr in OF_MODULES.get(module, OF_PATHS) and not _of_folder(call):
                yield call
        opens = isinstance(name, ast.Name) and name.id == "open"
        through = isinstance(what, ast.Call) and ast.unparse(what.func) in THROUGH
        if opens and not through and ast.unparse(what) != "handle":
            yield call


def _of_folder(call):
    """Say whether a call takes a folder's descriptor, or a file's; or renames a table's columns."""
    words = [word.arg or "" for word in call.keywords]
    descriptor = call.args and ast.unparse(call.args[0]).endswith("fileno()")
    return descriptor or "columns" in words or any(word.endswith("dir_fd") for word in words)


def test_nothing_opens_files_but_the_one_function_that_checks_them():
    made = [(ast.unparse(call), path, call.lineno) for path in BEHIND for call in calls(path)]
    assert not [where for where in made if where[0] not in ALLOWED]
    assert {call for call, *_ in made} == ALLOWED


FOLDERS = {"fairbench": "", "algorithms": "fairbench.components.",
           "datasets": "fairbench.components.", "papers": "fairbench.components.",
           **{str(path.parent.relative_to(ROOT)): "" for path in EXTENSIONS}}  # fmt: skip
OF_RE = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
OF_PANDAS = {"contains", "match", "fullmatch", "extract", "extractall", "findall", "count"}
# What a name within a function may stand for in a pattern, as its module would say it.
LOCAL = {
    "wanted": "['aa', '(a+)+$']",
    "sign": "[re.escape(b';'), re.escape(b'\t')]",
    "written": "_NAMES.values()",
    "form": "[_ISO, _DOTTED, _SLASHED]",
    "mark": "list(_OTHERS)",
}
# Texts to repeat that are worse than those made from a pattern.
WORST = {
    "fairbench.audits.kinds.counts": [
        "decline race ", "race decline ", "decline race ethnicity ", "decline to state race or ",
        "prefer not to say not known none given ", "n a na ", "i do not wish to say this ",
    ],
    "fairbench.reporting.document.writing": ["<script>", "<script></script", "html,html"],
}  # fmt: skip
LENGTH, SHORT, SECONDS = 100_000, 2_000, 2.0  # letters, letters of a first trial, seconds of CPU


def patterns():
    """Yield each pattern with the module and line it is in, and the functions it is used by."""
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            calls = [node for node in ast.walk(tree) if _takes_pattern(node)]
            if calls:
                top = ROOT / folder if folder.startswith("extensions") else ROOT
                parts = path.relative_to(top).with_suffix("").parts
                module = import_module(package + ".".join(parts).removesuffix(".__init__"))
                for call in calls:
                    for pattern in _values(call, vars(module)):
                        yield f"{module.__name__}:{call.lineno}", pattern, _uses(call, tree)


def _takes_pattern(node):
    """Say whether a node is a call whose first argument is a regular expression."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    name, of = node.func.attr, ast.unparse(node.func.value)
    said = {word.arg: ast.unparse(word.value) for word in node.keywords}.get("regex")
    if of == "re":
        return name in OF_RE
    return said == "True" or (of.endswith(".str") and name in OF_PANDAS and said != "False")


def _values(call, names):
    """Yield the compiled patterns that the first argument of a call stands for."""
    node, *others = *call.args, *(word.value for word in call.keywords)
    flags = [eval(ast.unparse(other), {"re": re}) for other in others
             if re.match("re[.][A-Z]", ast.unparse(other))]  # fmt: skip
    local = [name for name in LOCAL if name in {part.id for part in ast.walk(node)
                                                if isinstance(part, ast.Name)}]  # fmt: skip
    code = compile(ast.Expression(node), "pattern", "eval")
    for values in itertools.product(*(eval(LOCAL[name], {**names}) for name in local)):
        pattern = eval(code, {**names, **dict(zip(local, values, strict=True))})
        yield re.compile(pattern, *flags)


def _uses(call, tree):
    """Return which of match, fullmatch and search a pattern is used by, as the module says."""
    used, text = {call.func.attr}, ast.unparse(tree)
    if call.func.attr == "compile":
        targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign)
                   and node.value is call for target in node.targets]  # fmt: skip
        name = "|".join(map(re.escape, map(ast.unparse, targets))) or "$."
        of_it, given_it = rf"\b(?:{name})\.(\w+)", rf"\.(\w+)\([^()]*\b(?:{name})\b"
        used = {*re.findall(of_it, text), *re.findall(given_it, text)}
    known = used & {"match", "fullmatch"}
    return known | ({"search"} if used - known - {"pattern"} or not used else set())


def attacks(pattern):
    """Return what a text may begin with, and what it then repeats: parts of texts that match."""
    draw, made, source = random.Random(1), {}, pattern.pattern
    source = source if isinstance(source, str) else source.decode("latin1")
    short = re.compile(re.sub(r"\{\d{4,}\}", "{9}", source), pattern.flags)
    alone = not re.search(r"\(\?[<=!]", source)  # nothing has to stand beside it
    every_sign = st.characters(exclude_categories=())

    @settings(max_examples=12, derandomize=True, database=None, deadline=None,
              phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.from_regex(short, fullmatch=alone, alphabet=every_sign))
    def take(found):
        text = found[:60]
        made["", text] = None
        for _ in range(12 * bool(text)):
            first, last = sorted(draw.sample(range(len(text) + 1), 2))
            made.update(dict.fromkeys([(text[:first], text[first:last]), ("", text[first:last])]))

    take()
    return made


def seconds(use, pattern, start, body, end, length):
    """Return the seconds of CPU that a pattern takes; `SECONDS` if it takes longer."""
    text = start + body * (length // len(body)) + end
    if isinstance(pattern.pattern, bytes):
        text = text.encode("latin1", "replace")
    began = time.process_time()

    def stop(*_):
        raise TimeoutError

    usual = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        if use == "search":
            deque(pattern.finditer(text), 0)
        else:
            getattr(pattern, use)(text)
    except TimeoutError:
        return SECONDS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, usual)
    return time.process_time() - began


def worst(use, pattern, more=()):
    """Return the time that a pattern takes and the text, of the first that takes too long; or 0."""
    made = dict.fromkeys([*(("", body) for body in more), *attacks(pattern)])
    short = {}
    for start, body in made:
        for end in ("", "\0", "\n!") if body else ():
            text = start, body, end
            short[text] = seconds(use, pattern, *text, SHORT)
            if short[text] > SECONDS / 2:
                return SECONDS, text
    slowest = sorted(short, key=short.__getitem__)[:-4:-1]
    took = ((seconds(use, pattern, *text, LENGTH), text) for text in slowest)
    return next((attack for attack in took if attack[0] >= SECONDS), (0, ()))


@pytest.mark.thorough
def test_no_pattern_takes_long_on_a_hundred_thousand_letters_of_its_worst_text():
    slow = []
    for place, pattern, uses in (found := list(patterns())):
        for use in uses:
            took, text = worst(use, pattern, WORST.get(place.rpartition(":")[0], ()))
            if took >= SECONDS:
                slow.append(f"{place}: {use} {pattern.pattern!r} on {text}")
    assert len(found) > 60
    assert not slow, "\n".join(slow)


def test_patterns_are_taken_by_the_library_that_is_looked_at():
    everything = (path.read_text() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    beside = re.compile(r"(from re|import regex|import re as|import re2)\b.*")
    assert not [found[0] for text in everything if (found := beside.search(text))]


# Calls that make code, configurations or commands of text; and names of files that are made of it.
MAKES = (
    "OmegaConf.create", "OmegaConf.load", "OmegaConf.merge", "class_named", "compose", "eval",
    "exec", "hydra_word", "import_module", "imported", "importlib.import_module", "instantiate",
    "shlex.join", "yaml.compose", "yaml.load", "yaml.safe_load",
)  # fmt: skip
ENDINGS = (".yaml", ".yml", ".py")
GATE = {PACKAGE / "experiments" / f"{name}.py" for name in ("configuration", "pipeline")}


def makes(tree):
    """Yield what a module makes of text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKES:
            yield ast.unparse(node)
        if isinstance(node, ast.JoinedStr):
            texts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
            if "".join(texts).endswith(ENDINGS) and " " not in "".join(texts):
                yield ast.unparse(node)


@pytest.mark.thorough
def test_nothing_stored_is_made_into_words_elsewhere():
    stored = re.compile(r"\.(choices|config|environment|summarised)\[|\.config\.get\(")
    paths = [path for folder in (PACKAGE, ROOT / "extensions") for path in folder.rglob("*.py")]
    elsewhere = {path: ast.parse(path.read_text()) for path in {*paths} - GATE}
    made = [(path, text) for path, tree in elsewhere.items() for text in makes(tree)]
    assert made and not [each for each in made if stored.search(each[1])]
