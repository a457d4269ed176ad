"""Sixty files of twenty kinds: the same predictions as people save them, and files that are none.

Each is the table of :func:`people` in another form, and is to be read as its plain CSV is; or it is
damaged, or ambiguous, and is to be refused in one line. Nothing in between: a file that is read to
another result, with exit status 0, is the worst that can happen.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

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

    kind: str
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


def zstandard(content: bytes) -> bytes:
    """Return bytes packed with zstandard."""
    return bytes(pa.compress(content, "zstd"))


def kinds() -> list[Kind]:
    """Return all files."""
    return [*_packed(), *_separated(), *_encoded(), *_labels(), *_spreadsheets(), *_arrow(),
            *_scores(), *_others(), *_wide()]  # fmt: skip


def _packed() -> list[Kind]:
    plain = text().encode()
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zstandard,
    }
    whole = [Kind(f"packed with {end}", f"p.csv.{end}", pack(plain))
             for end, pack in packers.items()]  # fmt: skip
    named = [Kind("packed, by another name", f"p{end}.csv", pack(plain))
             for end, pack in packers.items()]  # fmt: skip
    half = [Kind("packed, cut off", f"half.csv.{end}", pack(plain)[:-20], "damaged or not whole")
            for end, pack in packers.items()]  # fmt: skip
    twice = Kind("packed twice", "twice.csv.gz", gzip.compress(gzip.compress(plain)), "unpack it")
    parts = zstandard(plain[:2000]) + zstandard(plain[2000:])
    return [*whole, *named, *half, twice, Kind("packed in parts", "parts.csv.zst", parts)]


def _separated() -> list[Kind]:
    signs = {"semicolons": ";", "tabs": "\t", "bars": "|"}
    plain = [Kind(name, f"{name}.csv", text(sep=sign).encode()) for name, sign in signs.items()]
    comma = Kind("decimal commas", "comma.csv", text(sep=";", decimal=",").encode())
    quoted = text(people().assign(score=[str(each).replace(".", ",") for each in people().score]))
    said = Kind("Excel's line of the separator", "sep.csv", b"sep=;\r\n" + text(sep=";").encode())
    mixed = text(sep=";", decimal=",").replace("0,", "0.", 3)
    return [*plain, comma, Kind("decimal commas", "quoted.csv", quoted.encode()), said,
            Kind("decimal commas", "mixed.csv", mixed.encode(), "is no number")]  # fmt: skip


def _encoded() -> list[Kind]:
    plain = text()
    codes = {"utf-8-sig": "UTF-8 with a mark", "utf-16": "UTF-16", "latin-1": "Latin-1",
             "cp1252": "Latin-1"}  # fmt: skip
    result = [Kind(kind, f"{code}.csv", plain.encode(code)) for code, kind in codes.items()]
    half = plain.encode().replace("ü".encode(), b"\xfc", 1)
    ends = Kind("ends of lines", "cr.csv", plain.replace("\n", "\r").encode())
    blank = Kind("ends of lines", "blank.csv", plain.replace("\n", "\r\n\r\n").encode())
    return [*result, ends, blank,
            Kind("UTF-16 bare", "bare.csv", plain.encode("utf-16-le"), "no text has"),
            Kind("two encodings", "both.csv", half, "other lines are: save it")]  # fmt: skip


def _labels() -> list[Kind]:
    frame = people()
    names = {"truths": ("False", "True"), "yes": ("no", "yes"), "Yes": ("No", "Yes"),
             "YES": ("NO", "YES"), "Y": ("N", "Y"), "numbers": ("0.0", "1.0")}  # fmt: skip
    made = [
        Kind("labels", f"{name}.csv", text(
            frame.assign(label=frame.label.map(list(pair).__getitem__))).encode())
        for name, pair in names.items()
    ]  # fmt: skip
    three = text(frame.assign(label=[0, 1, 2] * (ROWS // 3))).encode()
    amounts = text(frame.assign(label=9 * frame.score)).encode()
    bad = text(frame.assign(label=frame.label.map({0: "good", 1: "bad"}))).encode()
    one_two = text(frame.assign(label=frame.label + 1)).encode()
    return [
        *made,
        Kind("labels", "positive.csv", bad, words=("positive=bad", "favourable=good")),
        Kind("labels", "one or two.csv", one_two, words=("positive=2",)),
        Kind("labels", "which.csv", bad, "positive="),
        Kind("labels", "three.csv", three, "several classes"),
        Kind("labels", "regression.csv", amounts, "different numbers"),
    ]


def _spreadsheets() -> list[Kind]:
    frame = people()
    texts = frame.assign(score=[str(each).replace(".", ",") for each in frame.score])

    def several(path: Path) -> None:
        with pd.ExcelWriter(path) as writer:
            pd.DataFrame({"read me": ["first"]}).to_excel(writer, sheet_name="About", index=False)
            frame.to_excel(writer, sheet_name="Predictions", index=False, startrow=3)

    return [
        Kind("Excel", "sheet.xlsx", lambda path: frame.to_excel(path, index=False)),
        Kind("Excel", "several.xlsx", several),
        Kind("Excel", "texts.xlsx", lambda path: texts.to_excel(path, index=False)),
        Kind("Excel", "formulas.xlsx", partial(_with_cell, "=1/2"), "never computed"),
        Kind("Excel", "errors.xlsx", partial(_with_cell, "#N/A"), "the error #N/A"),
        Kind("Excel", "merged.xlsx", partial(_with_cell, None), "are merged"),
        Kind("Excel", "cut.xlsx", _workbook()[:3000], "no Excel file"),
        Kind("Excel", "old.xls", b"\xd0\xcf\x11\xe0" + bytes(600), "old Excel"),
    ]  # fmt: skip


def _workbook() -> bytes:
    file = io.BytesIO()
    people().to_excel(file, index=False)
    return file.getvalue()


def _with_cell(value: str | None, path: Path) -> None:
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(_workbook()))
    if value is None:
        book.active.merge_cells("A2:A5")
    else:
        book.active["C5"] = value
    book.save(path)


def _arrow() -> list[Kind]:
    frame = people()
    typed = frame.assign(label=frame.label == 1, sex=frame.sex.astype("category"))
    return [
        Kind("Parquet", "table.parquet", lambda path: frame.to_parquet(path)),
        Kind("Parquet", "typed.dat", lambda path: typed.to_parquet(path)),
        Kind("Arrow", "table.feather", lambda path: frame.to_feather(path)),
        Kind("Arrow", "stream.arrow", partial(_stream, frame)),
        Kind("Parquet", "cut.parquet", bytes(frame.to_parquet())[:-50], "not a table in Parquet"),
    ]


def _stream(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


def _scores() -> list[Kind]:
    frame = people()
    percent = frame.assign(score=(frame.score * 100).round(2))
    signed = percent.assign(score=[f"{each} %" for each in percent.score])
    blank = text(frame.assign(score=frame.score.where(frame.index != 7))).encode()
    return [
        Kind("percents", "percent.csv", text(percent).encode(), words=("scale=percent",)),
        Kind("percents", "signed.csv", text(signed).encode(), words=("scale=percent",)),
        Kind("percents", "percents.csv", text(percent).encode(), "scale=percent"),
        Kind("scores", "scores.csv", blank, "row 8"),
        Kind("scores", "label.csv", text(frame.assign(score=frame.label)).encode(), "is the label"),
        Kind("scores", "thousands.csv", text(frame.assign(score="1,234")).encode(), "may be"),
    ]


def _others() -> list[Kind]:
    records = people().to_dict("records")
    lines = "\n".join(json.dumps(record) for record in records)
    return [
        Kind("JSON", "records.json", json.dumps(records).encode(), "JSON"),
        Kind("JSON", "lines.csv", lines.encode(), "JSON"),
        Kind("binary", "noise.csv", np.random.default_rng(0).bytes(5000), "no text has"),
        Kind("binary", "pickle.csv", b"\x80\x05\x95" + bytes(60), "a pickle"),
        Kind("binary", "page.csv", b"<!DOCTYPE html><title>403</title>", "a web page"),
        Kind("binary", "array.npy", b"\x93NUMPY" + bytes(200), "NumPy"),
        Kind("empty", "empty.csv", b"", "no header line"),
        Kind("empty", "header.csv", b"sex,region,score,label\n", "no rows"),
        Kind("rows", "short.csv", text().encode() + b"women,North\n", "fields"),
    ]


def _wide() -> list[Kind]:
    header = ",".join(f"column_{i}" for i in range(1_000_000)) + "\n"
    return [
        Kind("a million columns", "wide.csv", (header + "1," * 999_999 + "1\n").encode(), "column"),
        Kind("a long name", "long.csv", (text().replace("score", "s" * 50_000)).encode(), "column"),
        Kind("a long value", "value.csv", text().replace("0.", "x" * 50_000, 1).encode(), "number"),
    ]
