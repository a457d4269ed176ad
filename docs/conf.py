"""How Sphinx builds the documentation: ``make docs``. Nothing is fetched from anywhere."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst

from fairbench.reporting.charts import Drawing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), *map(str, sorted(ROOT.glob("extensions/*")))]
GENERATED = HERE / "generated"
# Pages of names that are gone would be in no table of contents.
shutil.rmtree(GENERATED / "api", ignore_errors=True)

project = "fairbench"
copyright = "the fairbench authors"
html_title = "fairbench"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "examples",
    "templates",
    "tutorials",
    "generated/tutorials/*.py",
    "generated/tutorials/*.ipynb",
    "generated/tutorials/*.zip",
]
templates_path = ["templates"]
default_role = "code"
suppress_warnings = ["config.cache"]  # of the function that saves figures
html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

_shown: list[Drawing] = []


def figures_of_the_block(
    block: tuple[Any, ...], block_vars: dict[str, Any], gallery_conf: dict[str, Any]
) -> str:
    """Save the figure that a block of a tutorial ends with."""
    value = block_vars["example_globals"].get("___")
    if not isinstance(value, Drawing) or any(value is each for each in _shown):
        return ""
    _shown.append(value)
    path = next(block_vars["image_path_iterator"])
    value.savefig(path)
    return str(figure_rst([path], gallery_conf["src_dir"]))


sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "generated/tutorials",
    "filename_pattern": r".*\.py",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (figures_of_the_block,),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r".*Drawing",
    "reset_modules": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "abort_on_example_error": True,
    "remove_config_comments": True,
}


_SECTIONS = ("Parameters", "Attributes", "Raises", "Warns")
_ENTRY = re.compile(r"(?P<indent>\s*)(?P<names>[A-Za-z_*][\w*]*(?:, [\w*]+)*) : (?P<text>.*)")


def explained_entries(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Let ``name : a sentence`` be the explanation of a name, and not its type.

    What is before a colon in the first sentence of a property is no type either, as napoleon has
    it; the attributes of a frozen dataclass are what it is made from.
    """
    if what in ("property", "attribute", "data") and lines:
        lines[0] = lines[0].replace(": ", " – ")
    if what == "class" and "Attributes" in lines and "Parameters" not in lines:
        place = lines.index("Attributes")
        lines[place : place + 2] = ["Parameters", "----------"]
    section, written = "", []
    for place, line in enumerate(lines):
        if place + 1 < len(lines) and re.fullmatch(r"\s*-{3,}", lines[place + 1]):
            section = line.strip()
        entry = _ENTRY.fullmatch(line) if section in _SECTIONS else None
        if entry is not None:
            indent = entry["indent"]
            written += [f"{indent}{entry['names']}", f"{indent}    {entry['text']}"]
        else:
            written.append(line)
    lines[:] = _returned(written)


def _returned(lines: list[str]) -> list[str]:
    """Let a sentence under Returns be text; a type stands alone, with lines indented below it."""
    written: list[str] = []
    for place, line in enumerate(lines):
        heading = line.strip() in ("Returns", "Yields") and "---" in "".join(lines[place + 1 :][:1])
        below = "".join(lines[place + 3 :][:1])
        if heading and not below.startswith(" "):
            written += ["", f"**{line.strip()}**", ""]
        elif not (written[-2:-1] in (["**Returns**"], ["**Yields**"]) and "---" in line):
            written.append(line)
    return written


# Pages that lie beside the code they are about.
BESIDE_CODE = ("papers/*/findings.md", "extensions/*/README.md")


def pages_beside_code(app: Sphinx) -> None:
    """Copy what is written beside the code to where pages are."""
    for path in sorted(path for pattern in BESIDE_CODE for path in ROOT.glob(pattern)):
        page = GENERATED / path.parents[1].name / f"{path.parent.name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8").replace("../../docs/", "../../")
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def links_of_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Have a link that works in the repository work on the site."""
    source[0] = re.sub(
        r"\]\(((?:\.\./)*)\.\./(papers|extensions)/(\w+)/(?:findings|README)\.md",
        r"](\1generated/\2/\3.md",
        source[0],
    )


def setup(app: Sphinx) -> None:
    """Connect the functions above; those on docstrings come before napoleon's."""
    app.connect("autodoc-process-docstring", explained_entries, priority=400)
    app.connect("builder-inited", pages_beside_code, priority=400)
    app.connect("source-read", links_of_pages)
