"""Regular expressions read a text in time that grows with its length, whatever the text is.

All of them are found in the source, and tried on texts that are made from the pattern itself: what
it repeats, again and again, with an end that does not match.
"""

import ast
import itertools
import random
import re
import signal
import time
from collections import deque
from importlib import import_module
from re import _constants as codes
from re import _parser as parser

import pytest

from tests.harness import EXTENSIONS, ROOT

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
    if call.func.attr != "compile":
        used = {call.func.attr}
    else:
        names = {ast.unparse(target) for node in ast.walk(tree) if isinstance(node, ast.Assign)
                 and node.value is call for target in node.targets}  # fmt: skip
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
                and ast.unparse(node.value) in names}  # fmt: skip
        used |= {node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call)
                 and isinstance(node.func, ast.Attribute)
                 and names & {ast.unparse(argument) for argument in node.args}}  # fmt: skip
    known = used & {"match", "fullmatch"}
    return known | ({"search"} if used - known - {"pattern"} or not used else set())


def attacks(pattern):
    """Yield what a text may begin with, and what it then repeats."""
    draw = random.Random(1)
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin1")
    tree = list(parser.parse(text, pattern.flags & ~re.DEBUG))
    yield from {("", _text(tree, draw)) for _ in range(3)}
    yield from _repeated(tree, "", draw)


def _repeated(items, before, draw):
    for place, (code, value) in enumerate(items):
        start = before + _text(items[:place], draw)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT) and value[1] > 9:
            for pieces in (1, 1, 1, 2, 2, 3):
                body = "".join(_text(value[2], draw) for _ in range(pieces))
                yield from ((start, body), ("", start + body), ("", start), ("", body))
        for inner in _inner(code, value):
            yield from _repeated(list(inner), start, draw)


def _inner(code, value):
    """Return the parts of a part of a pattern."""
    if code is codes.BRANCH:
        return value[1]
    if code is codes.ATOMIC_GROUP:
        return [value]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    repeats = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
    return [value[-1]] if code is codes.SUBPATTERN or code in repeats else []


def _text(items, draw):
    """Return a short text that parts of a pattern may match."""
    return "".join(_piece(code, value, draw) for code, value in items)


def _piece(code, value, draw):
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.IN:
        return _sign(value, draw)
    if code is codes.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if code is codes.ANY:
        return draw.choice("a 7")
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least, most, inner = value
        return "".join(_text(inner, draw) for _ in range(draw.randint(least, min(most, least + 2))))
    if code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
        return ""
    return _text(draw.choice(_inner(code, value)), draw)


def _sign(choices, draw):
    """Return a sign of a class."""
    words = {codes.CATEGORY_DIGIT: "7", codes.CATEGORY_SPACE: " \n", codes.CATEGORY_WORD: "a7_"}
    signs = []
    for code, value in choices:
        if code is codes.LITERAL:
            signs.append(chr(value))
        elif code is codes.RANGE:
            signs += [chr(value[0]), chr(value[1])]
        elif code is codes.CATEGORY:
            signs += words.get(value, "a -")
    if choices[0][0] is codes.NEGATE:
        signs = [sign for sign in "a 7<(-" if sign not in signs] or ["~"]
    return draw.choice(signs)


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


@pytest.mark.thorough
@pytest.mark.parametrize("use, text", [
    ("search", "(a+)+$"), ("fullmatch", "(a|aa)+"), ("fullmatch", r"(\w+\s?)*x"),
    ("fullmatch", r"\s*(.*?)\s*<"), ("fullmatch", r"\d+\.?\d*"), ("search", "<b>.*?</b>"),
    ("search", r"<[^>]*x"), ("fullmatch", "((no|no way)( (or )?(no|way|no way))*)?"),
])  # fmt: skip
def test_a_pattern_that_takes_long_is_found(use, text):
    assert worst(use, re.compile(text, re.DOTALL))[0] >= SECONDS


def test_every_call_that_takes_a_pattern_is_seen():
    lines = {
        "re.sub('a', 'b', text)": True,
        "column.str.fullmatch(FORM)": True,
        "column.replace('a$', '', regex=True)": True,
        "column.str.contains('a', regex=False)": False,
        "text.replace('a', 'b')": False,
    }
    calls = [ast.parse(line).body[0].value for line in lines]
    assert [_takes_pattern(call) for call in calls] == list(lines.values())
    everything = (path.read_text() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    beside = re.compile(r"(from re|import regex|import re as|import re2)\b.*")
    assert not [found[0] for text in everything if (found := beside.search(text))]
