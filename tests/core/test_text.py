"""Whatever a text holds, each form shows it, and an independent reader finds no structure in it."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from unicodedata import category
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from fairbench.core import text as escaping
from fairbench.core.text import csv_text, file_name, read_csv, visible
from fairbench.reporting.charts import Estimate, forest
from fairbench.reporting.document import model
from fairbench.reporting.document.forms import (
    _markdown_paragraph,
    to_json,
    to_latex,
    to_markdown,
    to_word,
)
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.document.writing import to_html
from tests.harness import ROOT

SIGNS = (
    *"\\{}$&#_%~^<>|`[]*!'\"=+-@:;./()0123456789 abAB",
    "\t", "\r", "\n", "\x0b", "\x0c", "\x1b", "\x1b[31m", "\x1b]0;t\x07", "\x9b2J", "\x00",
    "\x7f", "\x85",
    "\u2028", "\u2029", "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u00ad", "\U000e0041",
    "\ud800", "\udfff", "\ue000", "\U00100000", "\ufffe", "\uff1d", "\uff0b", "\uff0d", "\uff20",
    "\u00a0", "\u3000", "\u0301", "\u00e9", "\U0001f600", "[red]", "[/]", "\\[", "[link=x]",
    "--", "''", "``",
    "<b>", "</td>", "]]>", "-->", "&amp;", "&#65;", "http://a.b", "www.a.b", "a@b.c", "![a](b)",
    "[a](b)", "```", "~~~", "***", "---", "===", "1. ", "- ", "# ", "> ", "    ", "| a |",
    "\\input{x}",
    "\\\\", "^^5c", "%\n", "${oc.env:HOME}", "{{ 7 * 7 }}", "javascript:a", "$x^2$", "\\$",
    "=1+1",
)  # fmt: skip
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(SIGNS), st.characters(codec=None), st.characters(categories=("C", "Z"))
    ),
    max_size=12,
).map("".join)
NUMBERS = ("-2", "+1.5")  # which are no formulas
BLOCKS = ("---", "===", "- a", "1) a", "    code", "a #", "``` x")
EXAMPLES = ("", *NUMBERS, *BLOCKS, "\\|", "_x_", "$$", "\\$x$")


def of_texts(test):
    """Have a test take texts: the examples, and drawn ones."""
    test = given(TEXTS)(test)
    for text in EXAMPLES:
        test = example(text)(test)
    return settings(deadline=None, max_examples=60)(test)


def squeezed(text):
    return " ".join(text.split())


class Seen(HTMLParser):
    """What a page has: its tags, their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.values, self.text = [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.values += [value for _, value in attrs]

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.tags.append("comment")

    handle_decl = unknown_decl = handle_pi = handle_comment


def printable(text):
    """Say whether a text has no sign but those that can be seen, spaces and line ends."""
    return all(sign.isprintable() or category(sign) == "Zs" or sign == "\n" for sign in text)


@of_texts
def test_what_is_visible_is_printable(text):
    assert printable(visible(text, lines=True)) and printable(visible(text))
    assert "\n" not in visible(text)
    if text.isprintable():
        assert visible(text) == text


@of_texts
def test_html_is_the_text_alone(text):
    seen = Seen(f'<p title="{escaping.html(text)}">{escaping.html(text)}</p>')
    shown = visible(text, lines=True)
    assert (seen.tags, seen.values, seen.text) == ([("p", ("title",))], [shown], shown)


@of_texts
def test_a_terminal_gets_the_text_alone(text):
    printed = io.StringIO()
    console = Console(file=printed, width=10_000, force_terminal=True, color_system="truecolor")
    console.print(escaping.terminal(text), soft_wrap=True)
    assert printed.getvalue() == visible(text, lines=True) + "\n"


COMMANDS = {
    r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^", r"\textless": "<",
    r"\textgreater": ">", r"\textbar": "|", r"\textasciigrave": "`",
    **{f"\\{sign}": sign for sign in "&%$#_{}"},
}  # fmt: skip
TOKENS = re.compile(r"(\\[A-Za-z]+|\\.)|([{}$&#^_~%\[\]*])|(.)", re.DOTALL)
LIGATURES = ("--", "``", "''", "?`", "!`", "<<", ">>", ",,")


def typeset(source):
    """Return what TeX sets of a source of harmless commands, and of groups that change nothing."""
    shown, depth, joined = "", 0, ""
    for command, special, plain in TOKENS.findall(source):
        if command:
            shown, joined = shown + COMMANDS[command], ""
        elif special in "{}" and special:
            depth += 1 if special == "{" else -1
            joined = ""
            assert depth >= 0
        else:
            # An argument of what stands before, unless a group protects it.
            assert special == "" or (special in "[]*" and depth)
            shown, joined = shown + special + plain, joined + special + plain
            assert not any(pair in joined for pair in LIGATURES)
    assert depth == 0
    return shown


@example(text="a,,b--c''d---")
@of_texts
def test_tex_sets_the_text_alone(text):
    assert typeset(escaping.latex(text)) == visible(text)


MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def read(source):
    """Return the kinds of blocks that a reader of Markdown finds, and the text in them."""
    tokens = MARKDOWN.parse(source)
    inner = [token for block in tokens for token in block.children or ()]
    plain = {"text", "text_special", "softbreak", "strong_open", "strong_close"}
    assert {token.type for token in inner} <= plain
    return [token.type for token in tokens], "".join(token.content for token in inner)


@of_texts
def test_a_paragraph_of_markdown_is_the_text_alone(text):
    kinds, shown = read(_markdown_paragraph(text))
    expected = squeezed(visible(text.replace("\n", " ")))
    assert squeezed(shown) == expected
    paragraph = ["paragraph_open", "inline", "paragraph_close"]
    assert kinds == paragraph or (not expected and not kinds)


@of_texts
def test_a_cell_a_heading_and_an_item_of_markdown_are_the_text_alone(text):
    expected = squeezed(visible(text.replace("\n", " ")))
    kinds, shown = read(f"| a | {escaping.markdown(text)} |\n| --- | --- |\n")
    assert kinds.count("th_open") == 2 and "td_open" not in kinds
    assert squeezed(shown[1:]) == expected
    kinds, shown = read(f"# {escaping.markdown(text)}\n")
    assert kinds == ["heading_open", "inline", "heading_close"]
    assert squeezed(shown) == expected
    kinds, shown = read(f"- {_markdown_paragraph(text)}\n- b")
    assert kinds.count("list_item_open") == 2 and kinds.count("bullet_list_open") == 1
    assert squeezed(shown[:-1]) == expected


@of_texts
def test_csv_computes_nothing_and_comes_back(text):
    # What no file of text can hold, and what pandas ends a field at.
    text = text.encode(errors="ignore").decode().replace("\0", "")
    written = csv_text(pd.DataFrame({"label": [text, "x"], "n": [1, 2]}))
    (_, (cell, _), *rest) = csv.reader(io.StringIO(written, newline=""))
    assert len(rest) == 1
    assert not re.match("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", cell) or _is_number(cell)
    assert cell == text or text not in NUMBERS
    assert read_csv(io.BytesIO(written.encode()), ["label"])["label"][0] == text


def _is_number(text):
    try:
        return bool(float(text)) or True
    except ValueError:
        return False


def document(text):
    columns = (model.Column(text), model.Column("n", "count"))
    table = model.Table(columns, [[text, 1]], title=text, caption=text)
    blocks = [*map(model.Paragraph, (text, text), ("", "warning")), model.Items([text]), table]
    return model.Document(text, [model.Section(text, blocks)])


PLAIN = "plain"


@of_texts
def test_a_document_has_no_structure_but_its_own(text):
    shown, plain = document(f"a{text}"), document(PLAIN)
    assert Seen(to_html(shown)).tags == Seen(to_html(plain)).tags
    assert json.loads(to_json(shown))["title"] == f"a{text}"
    commands = re.compile(r"\\(?:begin|end|item|section|input|write|textbf|title)\b")
    sources = (re.sub("(?m)^%.*", "", to_latex(page)) for page in (shown, plain))
    result, expected = map(commands.findall, sources)
    assert result == expected
    assert printable(to_latex(shown))
    result, expected = (MARKDOWN.render(to_markdown(page)).count("<") for page in (shown, plain))
    assert result == expected
    printed = io.StringIO()
    console = Console(file=printed, width=200, force_terminal=True, color_system="truecolor")
    print_document(shown, console)
    assert printable(re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue()))


@pytest.mark.thorough
@pytest.mark.parametrize("text", SIGNS)
def test_a_word_file_can_be_opened(text):
    with ZipFile(io.BytesIO(to_word(document(f"a{text}")))) as file:
        content = file.read("word/document.xml").decode()
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]", content)


@of_texts
def test_a_chart_is_the_text_alone(text):
    estimates: list[Estimate] = [(text, 0.5, 0.4, 0.6)]
    plain = Seen(forest(PLAIN, [[(PLAIN, 0.5, 0.4, 0.6)]], span=(0, 1)))
    seen = Seen(forest(text or PLAIN, [estimates], span=(0, 1)))  # without a title it has none
    assert seen.tags == plain.tags
    assert printable(seen.text)


@given(st.sets(st.text("+-(A ", max_size=3)), st.randoms(use_true_random=False))
def test_texts_that_are_spelled_alike_are_told_apart_in_any_order(texts, random):
    def spell(text):
        return text.replace("+", "-").replace("(", "-")

    order, spelled = sorted(texts), [*map(spell, texts)]
    names = escaping.told_apart(order, spell)
    assert len({*names.values()}) == len(texts) == len(names)
    random.shuffle(order)
    assert escaping.told_apart(order, spell) == names
    for text in texts:
        if text == spell(text) or spelled.count(spell(text)) == 1:
            assert names[text] == spell(text)


# Texts of other people's data are shown as they are: no program obeys them.


def test_signs_that_would_be_obeyed_are_shown_as_their_codes():
    assert visible("é \u00a0☃ \x1b[31m \u202e\u200b\t") == "é \u00a0☃ \\x1b[31m \\u202e\\u200b\\t"
    assert visible("a\nb\rc", lines=True) == "a\nb\\rc"


# How numbers are written: with decimals, unless all of them would be 0.


def test_a_number_that_is_not_0_is_not_written_as_0():
    for value, decimals, text in (
        (0.96171, 4, "0.9617"),
        (0.00081, 4, "0.0008"),
        (0.0004, 3, "0.000"),
        (123.456, 3, "123.5"),
        (0.0, 4, "0.0000"),
        (8.8123e-7, 4, "8.8e-07"),
        (-3.2e-5, 3, "-3.2e-05"),
        (0.3 - 0.1 - 0.2, 3, "-0.000"),  # what rounding leaves is 0
        (np.nan, 3, "-"),
    ):
        assert escaping.number(value, decimals) == text


def test_signs_stay():
    assert [*map(escaping.signed, (2.5e-7, -0.25))] == ["+2.5e-07", "-0.250"]
    assert escaping.fixed(250.123456, 4) == "250.1235"


def test_ends_of_an_interval_are_written_alike():
    for lower, upper, text in (
        (0.012, 0.25, "0.012 to 0.250"),
        (2.5e-5, 0.0056, "0.000 to 0.006"),  # beside such an end it is as good as 0
        (8.1e-7, 9.6e-7, "8.1e-07 to 9.6e-07"),
        (-0.00021, 0.00034, "-0.00021 to 0.00034"),
        (0.0, 0.0, "0.000 to 0.000"),
        (-np.inf, np.inf, "-inf to inf"),
        (np.nan, np.nan, ""),
    ):
        assert escaping.interval(lower, upper) == text


# No stored name leads out of the folder that files are written into.


@pytest.mark.thorough
@given(st.text() | st.sampled_from(["/", "..", "../../x", "/etc/x", "a/b", ".", "", "x" * 300]))
def test_a_name_is_one_part_of_a_path(name):
    made = file_name(name)
    assert Path("folder", made).parent == Path("folder")
    assert made not in (".", "..") and not made.startswith(".") and len(made) < 120


def test_plain_names_stay_and_others_are_told_apart():
    plain = ["german", "adult-2", "acs_income"]
    assert [*map(file_name, plain)] == plain
    assert len({file_name(name) for name in ("a/b", "a_b", "a\\b")}) == 3


@pytest.mark.parametrize(
    "package",
    ["cli", "comparison", "results", "fairbench_label", "fairbench_rank", "fairbench_search"],
)
def test_every_sentence_of_a_package_is_said_with_the_values_that_it_names(package):
    (folder,) = [*ROOT.glob(f"fairbench/{package}"), *ROOT.glob(f"extensions/*/{package}")]
    trees = [ast.parse(path.read_text()) for path in folder.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    declared = escaping.declared_in(package)
    # Those of pages, which an extension declares by page, are in a test of pages.
    templates = {name: said for name, said in declared.items() if isinstance(said, str)}
    assert {*templates} <= texts
    pages = {text for text in texts if isinstance(text, str) and text.startswith(f"{package}:")}
    assert pages == {f"{package}:{name}" for name in declared if name not in templates}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for call in (call for call in calls if getattr(call.func, "id", "") == "said"):
        assert ast.literal_eval(call.args[0]) == package
        named = {word.arg for word in call.keywords}
        if isinstance(call.args[1], ast.Constant) and None not in named:
            fields = Formatter().parse(templates[call.args[1].value])
            assert {re.split(r"[.\[]", name)[0] for _, name, _, _ in fields if name} == named
