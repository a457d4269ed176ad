"""Generated stand-ins of every file that presets and papers read: raw tables and predictions.

They have the archives' formats and few rows, and none of their numbers: what is computed from them
says that it can be computed, and nothing else.
"""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from fairbench.components.papers.black_box.estimation import SUPERCLASSES
from fairbench.data.download import Archive
from tests.datasets.raw_files import FOLDER, PARQUET, RAW, parquet, sequences, write_files
from tests.harness import CONF

# How often the few rows of a generated raw file are repeated: folds need some rows of each kind,
# and of some files a share is read alone.
TIMES = 12
OFTENER = {"adult": 60, "compas": 160, "compas_zafar": 160, "acs_income": 2400}
OFTENER |= dict.fromkeys(("acs_public_coverage", "acs_travel_time"), 60)
# What is read beside the files of tests/datasets/raw_files.yaml.
BESIDE = {"adult": ["adult/adult.test"]}
BESIDE["twins"] = [f"twins/twin_pairs_{part}_3years_samesex.csv" for part in "XY"]
PEOPLE = 240  # rows of a file of scores
ROWS_A_CLASS = 16
DIGITS = 10  # classes of SVHN


def write(folder: Path) -> Path:
    """Write every stand-in into a folder that raw files are looked for in, and return it."""
    return write_files(folder, {**_tables(), **sequences(2 * TIMES), **_predictions()})


def read_only(folder: Path, set_attribute: Callable[[object, str, object], None]) -> None:
    """Have this process read the raw files of a folder, whatever their checksums, and no others.

    Parameters
    ----------
    set_attribute : ``monkeypatch.setattr``.
    """

    made = Archive.__init__

    def of_folder(archive: Archive, *given: object, **options: object) -> None:
        made(archive, (folder,), folder / "downloads", verify=False, download=False)

    set_attribute(Archive, "__init__", of_folder)


def _tables():
    """Return path -> content of the data sets' raw files, the rows of the first ones repeated.

    Labels are drawn anew, so that every group has both; so is all that is known of German's people,
    as equal ones make a kernel singular.
    """
    files = {}
    for task, raw in RAW.items():
        head, lines = raw.lines()
        names = lines[:1] if raw.header else []
        lines = lines[len(names) :] * OFTENER.get(task, TIMES)
        rows = [raw.split(line) for line in lines]
        for place, name in enumerate(raw.names):
            if name == raw.target or task == "german":
                # By its first place: COMPAS has the label twice, and both are to be alike.
                draw = np.random.default_rng([len(files), raw.names.index(name)])
                cells = draw.permutation([row[place] for row in rows])
                for row, cell in zip(rows, cells, strict=True):
                    row[place] = cell
        if task.startswith("compas"):
            for row in rows[::2]:
                row[raw.names.index("race")] = "African-American"
        files |= raw.with_lines(head, [*names, *map(raw.join, rows)])
        files |= {path: (FOLDER / path).read_bytes() for path in BESIDE.get(task, ())}
    head, *lines = files["adult/adult.test"].decode().splitlines()
    files["adult/adult.test"] = "\n".join([head, *lines * TIMES, ""]).encode()
    for path in dict.fromkeys(PARQUET.values()):
        times = max(OFTENER.get(task, TIMES) for task, of in PARQUET.items() if of == path)
        rows = pd.concat([pd.read_parquet(io.BytesIO(parquet(path)))] * times, ignore_index=True)
        file = io.BytesIO()
        rows.to_parquet(file, index=False)
        files[path] = file.getvalue()
    return files


def _predictions():
    """Return path -> content of the files that conf/scores describes."""
    files = {}
    for described in sorted((CONF / "scores").glob("*.yaml")):
        config = yaml.safe_load(described.read_text(encoding="utf-8"))
        of_one = _confidences if "confidence" in config else _probabilities
        kind = _scores if "scores" in config else of_one
        files[config["path"]] = kind(config, np.random.default_rng(len(files)))
    return files


def _scores(config, draw):
    """Return people with a label, groups and the scores of several classifiers."""
    label = draw.integers(0, 2, PEOPLE)
    columns = {config["target"]: label}
    for name, reference in config["groups"].items():
        columns[name] = np.where(np.arange(PEOPLE) % 3 == 0, "another", reference)
    for name in config["scores"].values():
        right = np.clip(draw.normal(0.3 + 0.4 * label, 0.2), 0.01, 0.99)
        columns[name] = 1 - right if config["inverted"] else right
    return pd.DataFrame(columns).to_csv().encode()


def _confidences(config, draw):
    """Return true classes, predicted ones and the probability given to these."""
    names = np.array(" ".join(SUPERCLASSES).split())
    true = np.tile(np.arange(len(names)), ROWS_A_CLASS)
    confidence = draw.uniform(0.2, 1, len(true))
    predicted = np.where(draw.random(len(true)) < confidence, true, (true + 1) % len(names))
    columns = names[true], names[predicted], confidence.round(4)
    headings = (config[name] for name in ("target", "prediction", "confidence"))
    frame = pd.DataFrame(dict(zip(headings, columns, strict=True)))
    return frame.to_csv(sep=" ", index_label="Index").encode()


def _probabilities(config, draw):
    """Return true classes and the probabilities of all classes, without a header."""
    true = np.tile(np.arange(DIGITS), 3 * ROWS_A_CLASS)
    odds = draw.random((len(true), DIGITS)) + 4 * np.eye(DIGITS)[true] * draw.random((len(true), 1))
    shares = pd.DataFrame(odds / odds.sum(axis=1, keepdims=True))
    shares.insert(0, "true", true)
    lines = shares.to_csv(sep=" ", index=False, header=False, float_format="%.8f")
    return lines.encode()
