"""Texts that want to be obeyed, in every place: ``python -m benchmarks.faults texts 400``.

Each text is put wherever a stranger may put one: names, options and their values, versions, labels
of groups, reasons, names of sweeps, columns and files. Then every surface is made, and looked at by
a reader of its form: a terminal gets what can be printed, a page, a Markdown file and a TeX file
have the structure that they have for a harmless text, and a spreadsheet computes nothing.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import tempfile
import traceback
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.faults.commands import LISTED, Total, carried_out, ended_well, in_forks, obeyed
from benchmarks.faults.records import HOSTILE, REMEMBERED, Place, sealed_table
from benchmarks.stored import configured, copied
from fairbench.core.files import parquet_bytes
from fairbench.core.text import csv_text, is_number, visible
from fairbench.results.record import FILES
from fairbench.results.runs import Run, stored, write_stored

HARMLESS = ("plain", "")
CANARY, COMPUTED = "what-a-variable-holds", "42042"
TRACEBACK = "Traceback:"
PARTS: tuple[str, ...] = (*HOSTILE, *LISTED["markup"])
AUDIT = ("target=y", "score=s", "formats=[html,json,latex,markdown,word]")
FORMS = (".html", ".tex", ".md", ".csv", ".json", ".docx")


def hostile_text(seed: int) -> str:
    """Return a text: each part alone at first, then two or three of them together."""
    if seed < len(PARTS):
        return f"a{PARTS[seed]}" if seed % 2 else str(PARTS[seed])
    draw = np.random.default_rng(seed)
    chosen = draw.choice(len(PARTS), int(draw.integers(2, 4)), replace=False)
    return "".join(str(PARTS[place])[:200] for place in chosen)


def put(place: Place, text: str) -> str:
    """Put a text into every place of a run, of its data, and of the files that are audited.

    Names of components and options are none: a record that has it there is damaged.

    Returns
    -------
    str
        The id of the run.
    """
    run, written = Run(place.results / "runs" / place.runs[0]), _writable(text)
    plain = written.replace("${", "$ {")
    shown, attribute = visible(text).strip() or "-", run.protect
    options = {"learner.C": [plain, {"name": plain}], "method.note": plain}
    record = configured(run.environment, options)
    record |= {"protect": plain or "-", "cpu": shown, "python": shown, "git_commit": shown}
    record["versions"] = record["data_sha256"] = {text: text}
    metrics = pa.Table.from_pandas(
        _relabelled(run.all_metrics(), attribute, written), preserve_index=False
    )
    texts = {
        "summary.csv": csv_text(_relabelled(run.summary(), attribute, written)),
        "config.yaml": yaml.safe_dump(record["config"], allow_unicode=True),
    }
    contents = {name: stored(run.path, name) for name in FILES}
    contents |= {name: each.encode(errors="replace") for name, each in texts.items()}
    write_stored(run.path, contents | {"metrics.parquet": parquet_bytes(metrics)})
    path = copied(run.path, record)
    shutil.rmtree(run.path)
    _put_people(next((place.results / "data").glob("*.parquet")), attribute, written)
    sweep = next((place.results / "sweeps").iterdir())
    (sweep / "sweep.json").write_text(json.dumps({"name": text}))
    frame = pd.read_csv(place.root / "rows.csv")
    frame["sex"] = np.where(frame["sex"] == "f", written.replace("\0", ""), "m")
    named = frame.rename(columns={"sex": column_of(text)})
    named.to_csv(place.root / "hostile.csv", index=False, errors="replace")
    shutil.copy(place.root / "hostile.csv", place.root / file_of(text))
    return path.name


def _writable(text: str) -> str:
    """Return a text without what UTF-8 has no bytes for."""
    return text.encode(errors="replace").decode()


def column_of(text: str) -> str:
    """Return a text as the name of a column that a command line can name."""
    return re.sub(r"[\0\r\n\ud800-\udfff]", "", text).strip()[:60] or "a"


def file_of(text: str) -> str:
    """Return a text as the name of a file."""
    return re.sub(r"[\0/=\ud800-\udfff]", "", text)[:60].strip(".- ") + ".csv"


def _relabelled(table: pd.DataFrame, attribute: str, text: str) -> pd.DataFrame:
    """Return metrics of an attribute and a group that are called otherwise."""
    groups = table["group"].astype(str)
    first = next(group for group in sorted(groups.unique()) if group)
    return table.assign(
        attribute=table["attribute"].astype(str).replace(attribute, text),
        group=groups.replace(first, text),
        reason=np.where(table["status"].astype(str) == "ok", "", text),
    )


def _put_people(path: Path, attribute: str, text: str) -> None:
    table = pq.read_table(path)
    frame = table.to_pandas()
    notes = json.loads(table.schema.metadata[b"fairbench"])
    labels = frame[f"group.{attribute}"].astype(str)
    first = notes["privileged"].pop(attribute)
    frame[f"group.{attribute}"] = labels.replace(first, text).astype("category")
    frame = frame.rename(columns={f"group.{attribute}": f"group.{text}"})
    notes["privileged"][text] = text
    notes |= {"name": text, "target_name": text, "positive_label": text}
    made = pa.Table.from_pandas(frame, preserve_index=False)
    about = {**made.schema.metadata, b"fairbench": json.dumps(notes)}
    path.write_bytes(sealed_table(made.replace_schema_metadata(about)))


class Page(HTMLParser):
    """The kinds of tags that a page has, with the names of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds: set[str] = set()
        self.scripts = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag; of a link, whether it leads anywhere else."""
        self.scripts += tag == "script"
        self.kinds |= {tag, *(f"{tag} {name}" for name, _ in attrs)}
        self.kinds |= {
            f"{tag} to {value}"
            for name, value in attrs
            if name in ("href", "src")
            and re.match(r"(?i)\s*((javascript|https?):|//)", value or "")
        }


def structure(path: Path) -> set[str]:
    """Return the kinds of what a reader of a file's form takes for more than text."""
    if path.suffix == ".docx":
        return set()
    text = path.read_bytes().decode()
    if path.suffix == ".html":
        page = Page(text)
        return page.kinds | {f"{page.scripts} scripts"}
    if path.suffix == ".tex":
        return set(re.findall(r"\\[A-Za-z]+|\\.", re.sub(r"(?m)^%.*", "", text))) - _ESCAPES
    if path.suffix == ".md":
        from markdown_it import MarkdownIt

        tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
        parts = (part for token in tokens for part in (token, *(token.children or ())))
        return {part.type for part in parts} - {"text_special"}
    if path.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(text, newline="")))
        formula = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
        cells = {c[:20] for row in rows for c in row if re.match(formula, c) and not is_number(c)}
        return cells | {f"{len(row)} columns" for row in rows}
    json.loads(text)
    return set()


_ESCAPES = {
    *("\\textbackslash", "\\textasciitilde", "\\textasciicircum", "\\textless", "\\textgreater"),
    *("\\textbar", "\\textasciigrave", *(f"\\{sign}" for sign in "&%$#_{}")),
}


def surfaces(place: Place, run: str, text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each surface of a run and of files, with the structure that a reader finds in it."""
    quoted = column_of(text).replace('"', '""')
    group = f'group=["{quoted}"]'
    for name, words in {
        "store ls": ["store", "ls"],
        "store show": ["store", "show", run],
        "table": ["table", run],
        "tables": ["table", "all"],
        ".csv": ["table", "all", "out=t.csv"],
        ".tex": ["table", run, "out=t.tex"],
        ".md": ["table", run, "out=t.md"],
        "report": ["report"],
        "audit of a run": ["audit", run, AUDIT[-1], "out=of-run"],
        "export": ["store", "export", run, "t.csv", "people=true"],
        "audit": ["audit", file_of(text), *AUDIT, group, "out=of-file"],
        "label": ["label", "next", "hostile.csv", "state=l.json", "score=s", group, "out=l"],
        "label report": ["label", "report", "state=l.json", "out=of-labels"],
        "watch": ["watch", "hostile.csv", "state=w.json", *AUDIT[:2], group, "out=of-watch"],
    }.items():
        try:
            said = carried_out(words, place.root)[1]
        except Exception:
            said = f"{TRACEBACK} {traceback.format_exc()[-300:]}"
        yield name, obeyed(said) | _run(said)
        for pattern in ("t.*", "of-*/*", "results/report/**/*.*"):
            for path in place.root.glob(pattern):
                if path.suffix in FORMS:
                    content = path.read_bytes().decode(errors="replace")
                    yield f"{name}: {path.suffix}", structure(path) | _run(content)
        for pattern in ("t.*", "results/report", "of-*"):
            for left in place.root.glob(pattern):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _run(text: str) -> set[str]:
    """Return what tells that a text was evaluated, or that none was expected."""
    return {sign for sign in (CANARY, COMPUTED, TRACEBACK) if sign in text}


def looked(whole: Path, number: int, worker: int, workers: int) -> Total:
    """Look at every so many-th text, each in a copy of the folder; count what is interpreted.

    What a surface of harmless texts has, it may have of others.
    """
    os.environ["TEXT_CANARY"] = CANARY
    usual, counts = dict[str, set[str]](), Total()
    for seed in [-2, -1, *range(worker, number, workers)]:
        text = HARMLESS[seed] if seed < 0 else hostile_text(seed)
        with tempfile.TemporaryDirectory() as name:
            place = Place(Path(shutil.copytree(whole, Path(name) / "place")))
            for function in REMEMBERED:
                function.cache_clear()
            for surface, result in surfaces(place, put(place, text), text):
                if seed < 0:
                    usual.setdefault(surface, set()).update(result)
                    continue
                counts["looked at"] += 1
                if odd := result - usual.get(surface, set()):
                    counts["wrong"] += 1
                    sentence = f"{surface} of {text!r}: {sorted(odd)[:4]}"
                    print(f"text {seed}: {visible(sentence)}", flush=True)
    return counts


def main(number: int = 400) -> bool:
    """Print how many surfaces were looked at, and how many texts were interpreted on them."""
    with tempfile.TemporaryDirectory() as name:
        place = Place(Path(name) / "place")
        place.make()
        total = sum(in_forks(partial(looked, place.root, number)), Total())
    return ended_well(f"Surfaces of {number} texts", total)
