"""The files and results that the printed commands speak of, small, in a reader's folder."""

import re
import shutil
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from tests.audits.tables import predictions
from tests.harness import ROOT

EXAMPLES = {
    "dataset": "datasets",
    "learner": "algorithms/learners",
    "intervention": "algorithms/interventions",
    "method": "algorithms/methods",
    "metric": "fairbench/metrics",
}
SAMPLES = ROOT / "tests" / "extensions" / "rank" / "written_by_others"


def put_files(folder: Path) -> None:
    """Write every file into a folder."""
    people = _people()
    draw, label = np.random.default_rng(1), people["repaid"]
    shown = label.where(np.arange(len(people)) % 4 == 3).astype("Int64")
    granted = label.where(people["granted"] == 1).astype("Int64")
    calls = people.assign(received_callback=people["hired_rate"], job_ad_id=people["vacancy"])
    as_they_are = ("predictions", "loans", "new", "week-7", "week-07", "candidates", "homes")
    for name, table in {
        **dict.fromkeys(as_they_are, people),
        "percent": people.assign(PD=100 * people["PD"]),
        "yes": people.assign(repaid=label.map({1: "yes", 0: "no"})),
        "granted": people.assign(repaid=granted),
        "pool": people.assign(repaid=shown),
        "labels": pd.DataFrame({"row": [17, 18], "label": [1, 0]}),
        "people": people.drop(columns="C"),  # it has no identifiers
        "mine": people[["grade", "age", "income", "sex"]],
        "openintro_resume": calls,
    }.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    people.to_excel(folder / "candidates.xlsx", index=False)
    groups = people.groupby(["sex", "race"], as_index=False).size()
    counted = groups.rename(columns={"size": "people"})
    counted["rate"] = draw.uniform(0.3, 0.6, len(counted)).round(2)
    for name in ("hired", "selected"):
        counted[name] = (counted["people"] * counted["rate"]).astype(int)
    counted.to_csv(folder / "counts.csv", index=False)
    counted[counted["sex"] == "Male"].to_csv(folder / "races.csv", index=False)
    page = (ROOT / "docs" / "howto" / "gate.md").read_text(encoding="utf-8")
    (policy,) = re.findall(r"```yaml\n(# fairbench.yaml\n.*?)```", page, re.DOTALL)
    (folder / "fairbench.yaml").write_text(policy)
    _put_scores(folder)


def _people() -> pd.DataFrame:
    """Return people with all that the pages' tables have of them."""
    people = predictions(300, seed=3)
    draw = np.random.default_rng(0)
    count = len(people)
    label, score = people["label"], people["score"].clip(0.02, 0.98).round(4)
    other = np.clip(score + draw.normal(0, 0.1, count), 0.01, 0.99).round(4)
    women = np.where(people["sex"] == "Female", 0.8, 0.1)
    chosen = (draw.random(count) < 0.5).astype(int)
    price = draw.normal(300, 40, count).round(1)
    return people.drop(columns=["is_labelled"]).assign(
        score=score, a=score, b=other, repaid=label, paid=label, hired=np.where(label, "yes", "no"),
        granted=(score > 0.3).astype(int), p_women=women, p_men=1 - women,
        age=draw.integers(20, 70, count),
        PD=(1 - score).round(4), pd=(1 - score).round(4), Ausfall=np.where(label, "nein", "ja"),
        default=np.where(label, "nein", "ja"), nationality=people["race"], approved=chosen,
        product=draw.choice(["car", "home"], count), apr=draw.uniform(3, 9, count).round(2),
        income=draw.normal(50, 9, count).round(1), term=draw.choice([12, 24, 36], count),
        rating=score, vacancy=np.arange(count) // 50, hired_rate=chosen, price=price,
        estimate=(price + draw.normal(0, 9, count)).round(1), district=people["race"],
        week=np.arange(count) // 100, grade=draw.choice(["low", "middle", "high"], count),
        C=[f"C-{1000 + place}" for place in range(count)],
    )  # fmt: skip


def _put_scores(folder: Path) -> None:
    """Write what ``fairbench rank`` reads."""
    draw = np.random.default_rng(2)
    rows = [
        {"method": method, "task": task, "split": split, "auc": level + draw.normal(0, 0.01)}
        for method, level in (("boosting", 0.8), ("forest", 0.79), ("linear", 0.7))
        for task in range(6)
        for split in range(3)
    ]
    scores = pd.DataFrame(rows)
    scores["log_loss"], scores["seconds"] = 1 - scores["auc"], draw.uniform(1, 2, len(scores))
    scores["source"] = scores["task"] // 2
    same = {"model": scores["method"], "dataset": scores["task"], "fold": scores["split"]}
    scores.assign(**same).to_csv(folder / "named.csv", index=False)
    scores.to_csv(folder / "scores.csv", index=False)
    rows = product(("one", "two"), range(60))
    answers = pd.DataFrame(rows, columns=["method", "question"])
    question = answers["question"]
    answers = answers.assign(model=answers["method"], item=question, document=question // 4)
    answers["correct"] = draw.integers(0, 2, len(answers))
    answers.to_parquet(folder / "answers.parquet")
    answers.to_csv(folder / "answers.csv", index=False)
    shutil.copytree(SAMPLES / "lm_eval", folder / "lm_eval_output")


def put_components(folder: Path, kinds: Iterable[str] = EXAMPLES) -> None:
    """Copy the examples of components to where the page on them tells one to."""
    for kind in kinds:
        for file in (ROOT / "docs" / "examples" / kind).iterdir():
            to = {".py": EXAMPLES[kind], ".yaml": f"conf/{kind}", ".csv": f"data/{file.stem}"}[
                file.suffix
            ]
            (folder / to).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / to)
