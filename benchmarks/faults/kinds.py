"""Sixty files: the same predictions as people save them, and files that are none.

Each is the table of :func:`people` in another form, and is to be read as its plain CSV is; or it is
damaged, or ambiguous, and is to be refused in one line. Nothing in between: a file that is read to
another result, with exit status 0, is the worst that can happen.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from openpyxl import load_workbook

ROWS = 300
WORDS = ("target=label", "score=score", "group=[sex,region]")
Made = bytes | Callable[[Path], None]


@dataclass(frozen=True)
class Kind:
    """A file, and what is expected of it.

    Attributes
    ----------
    content : its bytes, or what writes it.
    refused : a part of the line that refuses it; empty where it is read as the plain CSV.
    words : what else is asked.
    """

    name: str
    content: Made
    refused: str = ""
    words: Sequence[str] = ()

    def write(self, folder: Path) -> Path:
        """Write the file into a folder."""
        path = folder / self.name
        if callable(self.content):
            self.content(path)
        else:
            path.write_bytes(self.content)
        return path


def people() -> pd.DataFrame:
    """Return predictions of two attributes' groups, one with an accent in a name."""
    draw = np.random.default_rng(7)
    score = draw.beta(1.2, 1.6, ROWS).round(4)
    return pd.DataFrame({
        "sex": draw.choice(["women", "men"], ROWS),
        "region": draw.choice(["North", "Jura", "Zürich"], ROWS),
        "score": score,
        "label": (draw.random(ROWS) < score).astype(int),
        "age": draw.integers(18, 80, ROWS),
    })  # fmt: skip


def text(frame: pd.DataFrame | None = None, **how: Any) -> str:
    """Return a table as delimited text."""
    frame = people() if frame is None else frame
    return str(frame.to_csv(index=False, **how))


def kinds() -> Iterator[Kind]:
    """Yield all files."""
    frame = people()
    plain = text(frame)
    yield from chain(_packed(plain.encode()), _separated(frame), _encoded(plain), _labels(frame))
    yield from chain(_spreadsheets(frame), _arrow(frame), _scores(frame), _others(frame), _wide())


def _packed(plain: bytes) -> Iterator[Kind]:
    zstandard = partial(pa.compress, codec="zstd", asbytes=True)
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard,
    }  # fmt: skip
    for end, pack in packers.items():
        yield Kind(f"p.csv.{end}", pack(plain))
        yield Kind(f"p{end}.csv", pack(plain))
        yield Kind(f"half.csv.{end}", pack(plain)[:-20], "damaged or not whole")
    yield Kind("twice.csv.gz", gzip.compress(gzip.compress(plain)), "unpack it")
    yield Kind("parts.csv.zst", zstandard(plain[:2000]) + zstandard(plain[2000:]))


def _separated(frame: pd.DataFrame) -> Iterator[Kind]:
    for name, sign in {"semicolons": ";", "tabs": "\t", "bars": "|"}.items():
        yield Kind(f"{name}.csv", text(sep=sign).encode())
    yield Kind("comma.csv", text(sep=";", decimal=",").encode())
    yield Kind("quoted.csv", text(_with_commas(frame)).encode())
    yield Kind("sep.csv", b"sep=;\r\n" + text(sep=";").encode())
    mixed = text(sep=";", decimal=",").replace("0,", "0.", 3)
    yield Kind("mixed.csv", mixed.encode(), "is no number")


def _with_commas(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(score=[str(each).replace(".", ",") for each in frame.score])


def _encoded(plain: str) -> Iterator[Kind]:
    codes = ("utf-8-sig", "utf-16", "latin-1", "cp1252")
    for code in codes:
        yield Kind(f"{code}.csv", plain.encode(code))
    yield Kind("cr.csv", plain.replace("\n", "\r").encode())
    yield Kind("blank.csv", plain.replace("\n", "\r\n\r\n").encode())
    half = plain.encode().replace("ü".encode(), b"\xfc", 1)
    yield Kind("bare.csv", plain.encode("utf-16-le"), "no text has")
    yield Kind("both.csv", half, "other lines are: save it")


def _labels(frame: pd.DataFrame) -> Iterator[Kind]:
    def labelled(*labels: str) -> bytes:
        return text(frame.assign(label=frame.label.map(list(labels).__getitem__))).encode()

    names = {"truths": ("False", "True"), "yes": ("no", "yes"), "Yes": ("No", "Yes"),
             "YES": ("NO", "YES"), "Y": ("N", "Y"), "numbers": ("0.0", "1.0")}  # fmt: skip
    for name, pair in names.items():
        yield Kind(f"{name}.csv", labelled(*pair))
    bad, amounts = labelled("good", "bad"), text(frame.assign(label=9 * frame.score))
    yield Kind("positive.csv", bad, words=("positive=bad", "favourable=good"))
    yield Kind("one or two.csv", labelled("1", "2"), words=("positive=2",))
    yield Kind("which.csv", bad, "positive=")
    three = text(frame.assign(label=[0, 1, 2] * (ROWS // 3)))
    yield Kind("three.csv", three.encode(), "several classes")
    yield Kind("regression.csv", amounts.encode(), "different numbers")


def _spreadsheets(frame: pd.DataFrame) -> Iterator[Kind]:
    file = io.BytesIO()
    frame.to_excel(file, index=False)
    content = file.getvalue()

    def several(path: Path) -> None:
        with pd.ExcelWriter(path) as writer:
            pd.DataFrame({"read me": ["first"]}).to_excel(writer, sheet_name="About", index=False)
            frame.to_excel(writer, sheet_name="Predictions", index=False, startrow=3)

    def with_cell(value: str, path: Path) -> None:
        book = load_workbook(file)
        book.active["C5"] = value
        book.save(path)

    def merged(path: Path) -> None:
        book = load_workbook(file)
        book.active.merge_cells("A2:A5")
        book.save(path)

    yield Kind("sheet.xlsx", content)
    yield Kind("several.xlsx", several)
    yield Kind("texts.xlsx", lambda path: _with_commas(frame).to_excel(path, index=False))
    yield Kind("formulas.xlsx", partial(with_cell, "=1/2"), "never computed")
    yield Kind("errors.xlsx", partial(with_cell, "#N/A"), "the error #N/A")
    yield Kind("merged.xlsx", merged, "are merged")
    yield Kind("cut.xlsx", content[:3000], "no Excel file")
    yield Kind("old.xls", b"\xd0\xcf\x11\xe0" + bytes(600), "old Excel")


def _arrow(frame: pd.DataFrame) -> Iterator[Kind]:
    typed = frame.assign(label=frame.label == 1, sex=frame.sex.astype("category"))

    def stream(path: Path) -> None:
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)

    yield Kind("table.parquet", frame.to_parquet())
    yield Kind("typed.dat", typed.to_parquet())
    yield Kind("table.feather", lambda path: frame.to_feather(path))
    yield Kind("stream.arrow", stream)
    yield Kind("cut.parquet", frame.to_parquet()[:-50], "not a table in Parquet")


def _scores(frame: pd.DataFrame) -> Iterator[Kind]:
    percent = frame.assign(score=(frame.score * 100).round(2))
    signed = percent.assign(score=[f"{each} %" for each in percent.score])
    for name, table in {"percent.csv": percent, "signed.csv": signed}.items():
        yield Kind(name, text(table).encode(), words=("scale=percent",))
    yield Kind("percents.csv", text(percent).encode(), "scale=percent")
    blank = text(frame.assign(score=frame.score.where(frame.index != 7)))
    yield Kind("scores.csv", blank.encode(), "row 8")
    yield Kind("label.csv", text(frame.assign(score=frame.label)).encode(), "is the label")
    yield Kind("thousands.csv", text(frame.assign(score="1,234")).encode(), "may be")


def _others(frame: pd.DataFrame) -> Iterator[Kind]:
    lines = frame.to_json(orient="records", lines=True, force_ascii=False)
    yield Kind("records.json", frame.to_json(orient="records").encode(), "JSON")
    yield Kind("lines.csv", lines.encode(), "JSON")
    yield Kind("noise.csv", np.random.default_rng(0).bytes(5000), "no text has")
    yield Kind("pickle.csv", b"\x80\x05\x95" + bytes(60), "a pickle")
    yield Kind("page.csv", b"<!DOCTYPE html><title>403</title>", "a web page")
    yield Kind("array.npy", b"\x93NUMPY" + bytes(200), "NumPy")
    yield Kind("empty.csv", b"", "no header line")
    yield Kind("header.csv", b"sex,region,score,label\n", "no rows")
    yield Kind("short.csv", text().encode() + b"women,North\n", "fields")


def _wide() -> Iterator[Kind]:
    header = ",".join(f"column_{i}" for i in range(1_000_000)) + "\n"
    yield Kind("wide.csv", (header + "1," * 999_999 + "1\n").encode(), "column")
    yield Kind("long.csv", text().replace("score", "s" * 50_000).encode(), "column")
    yield Kind("value.csv", text().replace("0.", "x" * 50_000, 1).encode(), "number")
