"""Small tables of predictions, as a user would bring them."""

import html
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.direction import RATE_OF
from fairbench.audits.kinds.binary import audit_of as binary_audit
from fairbench.audits.question import Options
from fairbench.audits.report import document_of
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.cli import command
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import GAP, Finding, risk_of


def predictions(rows=400, *, labels=None, bias=0.0, seed=0):
    """Return predictions of two attributes' groups, labels of `labels` of them shown.

    Scores are true probabilities but for women, whose labels are 1 by `bias` more often.
    """
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], rows, p=[0.6, 0.4])
    race = generator.choice(["White", "Black", "Other"], rows, p=[0.5, 0.3, 0.2])
    score = generator.beta(1, 1.5, rows)
    chance = np.clip(score + bias * (sex == "Female"), 0, 1)
    label = (generator.random(rows) < chance).astype(int)
    frame = pd.DataFrame({"sex": sex, "race": race, "score": score, "label": label})
    shown = generator.permutation(rows)[: rows if labels is None else labels]
    return frame.assign(is_labelled=np.isin(np.arange(rows), shown))


def decided(rows, men, women, *, seed=0):
    """Return decisions about men and women, who are hired at these rates, and random labels."""
    random, is_woman = np.random.default_rng(seed), np.arange(rows) % 2 > 0
    hired = random.random(rows) < np.where(is_woman, women, men)
    columns = {"hired": hired.astype(int), "label": random.integers(2, size=rows)}
    return pd.DataFrame({"sex": np.where(is_woman, "women", "men"), **columns})


def granted(rows=800):
    """Return loans, repaid or not where they were granted, which is where scores are over 0.5."""
    frame = predictions(rows).rename(columns={"label": "repaid"})
    is_granted = frame["score"] > 0.5
    return frame.assign(granted=is_granted.astype(int), repaid=frame["repaid"].where(is_granted))


def written(frame, folder, name="predictions.csv"):
    """Write a table and return its path."""
    path = folder / name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


def parse(words):
    """Return the options of an audit that the words of a command line mean."""
    return command.read(Options, words)


def read(frame, *words):
    """Return the table of an audit of a data frame, and its options."""
    options = parse(["predictions.csv", *words])
    return read_audit_table(options, read_frame(options, source=frame)), options


def text_of(report):
    """Return the text of the page of a report, on one line."""
    text = re.sub(r"\*\*|\\(?=[^\w\s])", "", html.unescape(report.to_markdown()))
    return " ".join(text.split())


def why_not(frame, **options):
    """Return the one line in which an audit of a data frame is refused."""
    with pytest.raises(UserError) as caught:
        fairbench.audit(frame, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def concluded(result, audit_of=binary_audit):
    """Return what the report of an assessment concludes, and its notes, as lists of sentences."""
    return SimpleNamespace(**document_of(audit_of(result)).data["conclusions"])


def gap(verdict, groups=(), *, about=GAP, attribute="sex", measure="accuracy", **more):
    """Return a finding, on a gap unless it is said to be about something else."""
    return Finding(about, attribute, measure, verdict, groups, **{"bound": 0.05, **more})


def bounds_of(epsilon, minimum, attributes=1):
    """Return what verdicts on the gaps of so many attributes are given by."""
    risk = risk_of(attributes * len(RATE_OF))
    return {"epsilon": epsilon, "minimum": minimum, "risk": risk}
