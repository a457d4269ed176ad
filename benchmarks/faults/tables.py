"""Hostile tables through the commands: ``python -m benchmarks.faults tables``.

Each table of :mod:`benchmarks.faults.hostile` is given to ``run``, ``store export``, ``audit`` and
``fairbench.evaluate``. It is refused in one line, or the groups that come out have the rows that
were written: all of them, each in its own group, with the rates that counting them gives.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unicodedata import category

import pandas as pd
import pyarrow.parquet as pq

from benchmarks.faults.browser import Seen, browser, browser_path
from benchmarks.faults.hostile import CASES, ENCODINGS, FILES, HEADERS, LABELS, SIZES, Case, rows_of
from benchmarks.measure import ROOT, show
from fairbench.core.formats import csv_text, read_csv, visible
from fairbench.data.groups import MOST_GROUPS
from fairbench.evaluation.columns import VALUE, values_of

KINDS = {
    "labels": LABELS,
    "headers": HEADERS,
    "sizes": SIZES,
    "encodings and types": ENCODINGS,
    "files": FILES,
}
HEADER = ("tables", "number", "refused by run", "by audit", "taken by run", "by audit", "wrong")
RUN = ("learner=logistic_regression", "method=baseline", "split=kfold", "split.n_folds=2",
       "tracking=none", "figures=false", "results=../results")  # fmt: skip
LONGEST = 3000  # signs of a sentence that refuses
TITLE = "All finished runs"
Start = Callable[[list[str], Path, Mapping[str, str]], "CompletedProcess[str]"]


@dataclass
class Result:
    """What came of a table: by which verbs it was taken, its pages, and what was wrong."""

    case: Case
    taken: dict[str, bool] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    page: Path | None = None


def main(number: int = 0) -> bool:
    """Try the first so many tables, all by default; print what came of them."""
    with tempfile.TemporaryDirectory() as name:
        results = []
        for each in tried(CASES[: number or None], Path(name), start):
            results.append(each)
            for sentence in each.wrong:
                print(f"{each.case.name}: {visible(sentence)}", flush=True)
        pages = [*look(results, reported(Path(name)))]
    rows: list[Sequence[object]] = []
    for kind, cases in KINDS.items():
        mine = [result for result in results if result.case in cases]
        taken = [sum(each.taken.get(verb, False) for each in mine) for verb in ("run", "audit")]
        wrong = sum(bool(each.wrong) for each in mine)
        rows.append([kind, len(mine), *(len(mine) - each for each in taken), *taken, wrong])
    rows.append(["all", *(sum(row[i] for row in rows) for i in range(1, len(HEADER)))])  # type: ignore[misc]
    show(f"{len(results)} hostile tables", HEADER, rows)
    for sentence in pages:
        print(sentence)
    return not any(result.wrong for result in results) and not any(
        "wrong" in page for page in pages
    )


def start(words: list[str], cwd: Path, environment: Mapping[str, str]) -> CompletedProcess[str]:
    """Run a command in a fork of a process that has imported what most commands need."""
    done: CompletedProcess[str] = _warm().run(
        words, cwd=cwd, timeout=300, environment=dict(environment)
    )
    return done


@cache
def _warm() -> Any:
    """Return the module of the tests that forks; another package may be called ``tests``."""
    outcome = spec_from_file_location("warm", ROOT / "tests" / "warm.py")
    assert outcome and outcome.loader
    module = module_from_spec(outcome)
    outcome.loader.exec_module(module)
    return module


def tried(cases: Sequence[Case], root: Path, start: Start) -> Iterator[Result]:
    """Give each table to every verb, in a folder of its own, and yield what came of it."""
    for number, case in enumerate(cases):
        folder = root / f"case{number}"
        folder.mkdir()
        yield Trial(case, folder, case.write(folder).name, start).result()


class Trial:
    """One table, given to every verb."""

    def __init__(self, case: Case, folder: Path, file: str, start: Start) -> None:
        """Note where the table is."""
        self.case, self.folder, self.file = case, folder, file
        self._start, self._result = start, Result(case)

    def result(self) -> Result:
        """Return what came of it."""
        if done := self._verb("run", self._run_words()):
            outcome = re.search(r"results/runs/([0-9a-f]+)", " ".join(done.stdout.split()))
            if outcome:
                self._exported(outcome[1])
            else:
                self._wrong("run: no run is named")
        if self._verb("audit", self._audit_words()):
            self._audited()
        if self.case.labels and any(self._result.taken.values()):
            self._evaluated()
        return self._result

    def _run_words(self) -> list[str]:
        group = json.dumps([self.case.group])
        words = [f"dataset.path={_quoted(self.file)}", "dataset.target=label"]
        words += [f"dataset.sensitive={group}", *RUN, *self.case.words]
        return [str(ROOT / "run.py"), "dataset=table", *words]

    def _audit_words(self) -> list[str]:
        group = '"{}"'.format(self.case.group.replace('"', '""'))
        words = [f"path={self.file}", "target=label", "score=score", f"group=[{group}]", "out=out"]
        return ["-m", "fairbench", "audit", *words]

    def _verb(self, verb: str, words: list[str]) -> CompletedProcess[str] | None:
        """Give a command; return what it printed if it took the table."""
        done = self._start(words, self.folder, self.case.environment)
        said = done.stdout + done.stderr
        if "Traceback" in said:
            self._wrong(f"{verb}: {said[said.index('Traceback') :].strip().splitlines()[-1]}")
        if obeyed := {sign for sign in said if category(sign) in ("Cc", "Cf") and sign != "\n"}:
            self._wrong(f"{verb}: prints {sorted(obeyed)!r}")
        refusal = self.case.refusal(verb)
        self._result.taken[verb] = done.returncode == 0
        if refusal is None and done.returncode:
            self._wrong(f"{verb}: refuses: {done.stderr[-300:]}")
        elif refusal is not None:
            self._refused(verb, done, refusal)
        return None if done.returncode else done

    def _refused(self, verb: str, done: CompletedProcess[str], refusal: str) -> None:
        lines = done.stderr.splitlines()
        if done.returncode != 2 or len(lines) != 1 or not lines[0].startswith("error: "):
            self._wrong(f"{verb}: status {done.returncode}, {done.stderr[-300:]!r}")
        elif refusal not in lines[0] or len(lines[0]) > LONGEST:
            self._wrong(f"{verb}: says {lines[0][:300]!r}, not {refusal!r}")

    def _exported(self, run: str) -> None:
        """Compare a run's predictions and metrics with the rows that were written."""
        labels = [label or "unknown" for label in self.case.labels or ()]
        for suffix, written in (("csv", _guarded), ("parquet", str)):
            words = ["-m", "fairbench", "store", "export", run, f"out.{suffix}", "people=true"]
            if not self._verb("export", [*words, "results=../results"]):
                return
            exported = _read(self.folder / f"out.{suffix}")
            if sorted(int(row["row"]) for row in exported) != list(range(len(labels))):
                self._wrong(f"export: {len(exported)} rows of {len(labels)}")
                return
            shown = {label: written(label) for label in labels}
            column = list(exported[0])[-1]
            for row in exported:
                if row[column] != shown[labels[int(row["row"])]]:
                    self._wrong(f"export to {suffix}: row {row['row']} is {row[column]!r}")
                    return
        selected = Counter(
            labels[int(row["row"])] for row in exported if float(row["prediction"]) == 1
        )
        metrics = pd.read_parquet(self.folder.parent / "results" / "runs" / run / "metrics.parquet")
        self._counted("run", metrics, selected)

    def _audited(self) -> None:
        """Compare an audit's JSON with the rows that were written."""
        self._result.page = self.folder / "out" / "audit.html"
        data = json.loads((self.folder / "out" / "audit.json").read_text(encoding="utf-8"))
        if "sizes" not in data:  # so many groups are estimated together
            return self._counted("audit", _together(data, self.case.group), self._selected())
        sizes = {size["group"]: size["rows"] for size in data["sizes"]}
        if sizes != self.case.groups:
            self._wrong(f"audit: {_difference(sizes, self.case.groups)}")
        return self._counted("audit", pd.DataFrame(data["metrics"]), self._selected())

    def _selected(self) -> Counter[str]:
        """Return how many rows of each group have a score above one half."""
        rows, given = rows_of(self.case.labels or ()), self.case.score
        scores = [row[3] if given is None else given for row in rows]
        chosen = (row for row, score in zip(rows, scores, strict=True) if score > 0.5)
        return Counter(row[0] or "unknown" for row in chosen)

    def _evaluated(self) -> None:
        """Compare what the library makes of the same rows."""
        import fairbench

        rows = rows_of(self.case.labels or ())
        target, score = [row[2] for row in rows], [row[3] for row in rows]
        with warnings.catch_warnings():  # on labels that look alike
            warnings.simplefilter("ignore")
            table = fairbench.evaluate(
                target, [row[4] for row in rows], score=score,
                sensitive_features={self.case.group: [row[0] for row in rows]},
            )  # fmt: skip
        chosen = Counter(row[0] or "unknown" for row in rows if row[4])
        self._counted("evaluate", table, chosen)

    def _counted(self, verb: str, metrics: pd.DataFrame, selected: Counter[str]) -> None:
        """Compare rows and rates of each group with what counting gives."""
        metrics = values_of(metrics)
        mine = metrics[(metrics["metric"] == "selection_rate") & (metrics["group"] != "")]
        mine = mine[mine["attribute"] == self.case.group]
        outcome = mine.groupby("group", observed=True)["n"].sum().to_dict()
        if outcome != self.case.groups:
            self._wrong(f"{verb}: {_difference(outcome, self.case.groups)}")
        chosen = (mine["value"].fillna(0) * mine["n"]).groupby(mine["group"]).sum()
        for group, number in chosen.items():
            if not math.isclose(number, selected[str(group)], abs_tol=1e-6):
                self._wrong(f"{verb}: {number:g} of {group!r}, not {selected[str(group)]}")

    def _wrong(self, sentence: str) -> None:
        self._result.wrong.append(sentence)


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an exported file, of which CSV is all text."""
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _together(data: Mapping[str, Any], attribute: str) -> pd.DataFrame:
    """Return the metrics of an audit of many groups in the columns of other audits."""
    groups = pd.DataFrame(data["groups"])
    names = {"rate": "metric", "raw": "value", "rows": "n"}
    return groups.rename(columns=names).assign(statistic=VALUE, attribute=attribute)


def _difference(found: Mapping[str, int], expected: Mapping[str, int]) -> str:
    pairs = {name: (found.get(name), expected.get(name)) for name in {*found, *expected}}
    return f"rows found and expected: { {k: v for k, v in pairs.items() if v[0] != v[1]} }"[:300]


def _guarded(text: str) -> str:
    """Return a text as it is written into CSV, after a look at what a reader gets back."""
    written = csv_text(pd.DataFrame({"text": [text, "x"], "n": [0, 1]}))
    back = read_csv(io.BytesIO(written.encode()), ["text"])["text"].iloc[0]
    if back != text:
        raise AssertionError(f"{text!r} is read back as {back!r}")
    return next(csv.DictReader(io.StringIO(written, newline="")))["text"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def reported(root: Path) -> Path:
    """Have the page of all runs written, and return where it is."""
    done = start(["-m", "fairbench", "report"], root, {})
    if done.returncode:
        raise AssertionError(done.stderr)
    return root / "results" / "report" / "index.html"


def look(results: Sequence[Result], report: Path) -> Iterator[str]:
    """Yield sentences on what a browser made of the pages, with their policy and without."""
    path = browser_path()
    if path is None:
        yield "no page was looked at: there is no Chromium here"
        return
    number = 0
    pages = [(result.page, result.case) for result in results if result.page]
    with browser(path) as opened:
        for page, case in [*pages, (report, None)]:
            for policy in (True, False):
                number += 1
                for sentence in judged(opened.open(page, policy=policy), case, policy=policy):
                    yield f"{case.name if case else 'report'}: wrong: {visible(sentence)}"
    yield f"{number} pages were looked at in {Path(path).name}, half of them without their policy"


def judged(seen: Seen, case: Case | None, *, policy: bool) -> Iterator[str]:
    """Yield what is wrong with the page of an audit, or of all runs, which has a script itself.

    That is what ran, and what cannot be read.
    """
    kind = "with its policy" if policy else "without a policy"
    if seen.hacked or not seen.title.startswith("Audit of " if case else TITLE):
        yield f"a script ran {kind}: {seen.title}"
    if len(seen.odd) > (case is None):
        yield f"elements {kind}: {seen.odd}"
    if seen.said:
        yield f"said {kind}: {seen.said}"
    text = " ".join(seen.text.split())
    # Of many groups the page names those that differ; all are in the JSON.
    for label in case.groups if case and len(case.groups) <= MOST_GROUPS else ():
        if " ".join(visible(label).split()) not in text:
            yield f"{label[:60]!r} cannot be read"
