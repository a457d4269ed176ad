"""What the paper claims of its uncertainties, where the truth is known or more people are drawn.

`population`: proposition 4.1 on fresh rows. `epistemic_shrinks` and `epistemic_shrinks_acs`:
whether more people of a minority lower its epistemic uncertainty. `sequences`: whether truncating
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import sem, t

from fairbench.cli.command import Results
from fairbench.components.algorithms.estimators.training import one_thread
from fairbench.components.algorithms.learners.bayesian_nn import BayesianNN
from fairbench.components.algorithms.losses import Binomial
from fairbench.components.algorithms.methods.ensemble import decomposed
from fairbench.components.datasets import kuzucu, simulated_sequences
from fairbench.components.papers import composed, number_of_seeds, print_table, run_main
from fairbench.components.papers.engine.matching import runs_needed
from fairbench.components.papers.uncertainty_fairness import tables
from fairbench.core.arrays import Floats, rng
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive
from fairbench.data.features import Sequences, onehot
from fairbench.data.splits import Fold
from fairbench.evaluation.table import values_of
from fairbench.experiments import pipeline
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.contracts import cells_of
from fairbench.experiments.execute import carry_out
from fairbench.experiments.pipeline import ensure_all
from fairbench.metrics.registry import (
    accuracy,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

RATES = (selection_rate, true_positive_rate, false_positive_rate, accuracy)
UNTIL_STALE = "trained"
TRAINED = BayesianNN(
    hidden=(), learning_rate=0.02, initial_sd=0.02, epochs=300, batch_size=32, patience=20
)
# The networks' name -> the cause under which Table 1's are trained.
NETWORKS = {"as in the text": "", "starts near 0": "starts near 0", UNTIL_STALE: ""}
ROWS = 20_000


@dataclass(frozen=True)
class _PopulationOptions:
    """How many populations."""

    seeds: int = number_of_seeds(20)


def _of_populations(networks: str, seeds: int) -> pd.DataFrame:
    """Return the rates and mean uncertainties of both groups, by set and population.

    They are of a network trained on one population, on many rows of its kind.
    """
    setting = tables.CAUSES.get(NETWORKS[networks], tables.TEXT)
    found: list[dict[str, object]] = []
    for which, seed in product(tables.DIRECTIONS, range(seeds)):
        fresh = kuzucu.load(Archive(download=False), which=which, n_samples=ROWS, seed=seed)
        rows, tested = tables.rows_of(which, seed, setting), onehot(fresh.features).astype(float)
        if networks == UNTIL_STALE:
            mean, sd = rows.features.mean(axis=0), rows.features.std(axis=0)
            model = TRAINED.estimator(Binomial(), seed)
            model.fit((rows.features - mean) / sd, rows.target.astype(float))
            members = model.predict_members((tested - mean) / sd, tables.DRAWS, seed)[..., 0]
        else:
            with one_thread():
                posterior = tables.trained(rows, tables.TRAININGS[which], setting, seed)
                members = tables.members_of(posterior, tested, seed)
        rows_of_groups = members, fresh.target.to_numpy(), fresh.sensitive
        found += tables.of_groups(*rows_of_groups, dataset=which, run=seed)
    return pd.DataFrame(found)


def _ratio_rows(ours: pd.DataFrame, metrics: Sequence[str]) -> Iterator[list[str]]:
    """Yield the mean and the sd over populations of every ratio G0 / G1, a row for each set."""
    for dataset in tables.DIRECTIONS:
        every = [tables.ratios(ours, dataset, "group", name).dropna() for name in metrics]
        # A rate that is 0 in the reference of every population has no ratio.
        yield [dataset, *(f"{r.mean():.2f} ({r.std():.2f})" if len(r) else "-" for r in every)]


def population(options: _PopulationOptions) -> None:
    """Proposition 4.1 on 20,000 fresh rows: networks trained on SD1-3 without the noise of 80.

    ``python -m papers.uncertainty_fairness.studies population [seeds=20]``.
    Kuzucu et al. test on a fifth of 400 rows, where the ratio of two groups' rates is mostly
    chance. Here each network is trained as for Table 1, or as in
    ``uncertainty_fairness/sd1_3_trained``, on one population's training rows.
    """
    metrics = [*(rate.name for rate in RATES), "epistemic_uncertainty", "aleatoric_uncertainty"]
    headings = ("data set", *(name.replace("_", " ") for name in metrics))
    for networks in NETWORKS:
        ours = _of_populations(networks, options.seeds)
        title = f"G0 / G1, mean (sd) over {options.seeds} populations: {networks}"
        print_table(title, headings, _ratio_rows(ours, metrics), width=130)
        tables.print_directions(ours, networks)


TRAIN = 0.8
# Expected training rows of the majority and the minority: more of the minority, more of both.
SIZES = ((4000, 60), (4000, 250), (4000, 1000), (4000, 4000), (1000, 250), (16000, 4000))
LEARNERS = {
    "logistic_regression": ("learner=logistic_regression",),
    "xgboost": ("learner=xgboost", "learner.rounds=30", "learner.max_depth=4"),
}
PARTS = ("epistemic", "aleatoric")


@dataclass(frozen=True)
class _EpistemicShrinksOptions(Results):
    """Where fits are kept, and of how many populations or draws they are."""

    seeds: int = number_of_seeds(10)


def _noisy_population(
    learner: str, sizes: tuple[int, int], seed: int, results: Path
) -> list[float]:
    """Return both groups' mean uncertainties, majority first, and the true aleatoric ones."""
    rows = round(sum(sizes) / TRAIN)
    options = [
        "dataset=simulated", f"dataset.n_samples={rows}", f"dataset.seed={seed}",
        f"dataset.minority_share={sizes[1] / sum(sizes)}", "dataset.base_rate_gap=0",
        "method=ensemble", "method.members=20", "split.repeats=1", f"split.train={TRAIN}",
        "tracking=none", f"results={results}", *LEARNERS[learner],
    ]  # fmt: skip
    run = carry_out(composed(*options)).prepared
    metrics = values_of(run.folder.all_metrics())
    of_groups = metrics[(metrics["attribute"] == "group") & (metrics["group"] != "")]
    means = [of_groups.loc[of_groups["metric"] == f"{part}_uncertainty", "value"] for part in PARTS]
    (cell,) = run.cells
    assert run.dataset.truth is not None
    p = run.dataset.truth["probability"].to_numpy()[cell.fold.test]
    group = run.dataset.groups(run.protect).cat.codes.to_numpy()[cell.fold.test]
    true = [float((2 * p * (1 - p))[group == g].mean()) for g in range(2)]
    return [*np.concatenate(means), *true]


def ratio(minority: Floats, majority: Floats) -> str:
    """Return the geometric mean over populations of a ratio, with its 95 % interval."""
    logs = np.log(minority / majority)
    low, high = np.exp(t.interval(0.95, len(logs) - 1, logs.mean(), sem(logs)))
    return f"{np.exp(logs.mean()):.2f} ({low:.2f} to {high:.2f})"


def epistemic_shrinks(options: _EpistemicShrinksOptions) -> None:
    """Print whether more people of a minority lower its epistemic uncertainty alone.

    Epistemic uncertainty promises to fall with data, aleatoric not to (Kuzucu et al. 2024). On a
    simulated population the second is known: the minority's labels are noisier, by a true ratio
    of the variances 2 p (1 - p). Bags of 20, of which a row's members are its weights; 80/20
    splits.

    ``python -m papers.uncertainty_fairness.studies epistemic_shrinks [seeds=10]``: populations of
    each size.
    """
    names = ("majority", "minority", "epistemic, each", "ratio", "aleatoric ratio", "true ratio")
    seeds, results = range(options.seeds), options.results
    for learner in LEARNERS:
        rows = []
        for sizes in SIZES:
            found = np.array([_noisy_population(learner, sizes, seed, results) for seed in seeds])
            level = " ".join(f"{mean:.4f}" for mean in found[:, :2].mean(axis=0))
            ratios = (ratio(found[:, i + 1], found[:, i]) for i in (0, 2, 4))
            rows.append([*map(str, sizes), level, *ratios])
        print_table(f"{learner}: means over {options.seeds} populations", names, rows, width=110)


GROUPS = ("White", "Black")
ACS_SIZES = ((4000, 60), (4000, 250), (4000, 1000), (4000, 4000))
TEST = 3000  # rows of each group


def folds(race: pd.Series, seeds: int) -> list[Fold]:
    """Return a fold for every draw of training rows and size, the sizes of a draw in turn."""
    of_groups = [np.flatnonzero(race == name) for name in GROUPS]
    drawn = [rng(0, "acs", "test").permutation(rows) for rows in of_groups]
    test = np.sort(np.concatenate([rows[:TEST] for rows in drawn]))
    found = []
    for seed in range(seeds):
        generator = rng(seed, "acs", "train")
        pools = [generator.permutation(rows[TEST:]) for rows in drawn]
        for place, sizes in enumerate(ACS_SIZES):
            kept = [pool[:size] for pool, size in zip(pools, sizes, strict=True)]
            train = np.sort(np.concatenate(kept))
            found.append(Fold(seed, place, train, np.empty(0, np.intp), test))
    return found


def uncertainties(learner: str, seeds: int, results: Path) -> Floats:
    """Return both groups' mean uncertainties, (seeds, sizes, parts, groups)."""
    options = [
        "dataset=acs_income", "dataset.codes=numeric", "dataset.races=white_and_black",
        "dataset.share=0.3", "method=ensemble", "method.members=20", "split.repeats=1",
        "tracking=none", f"results={results}", *LEARNERS[learner],
    ]  # fmt: skip
    run = pipeline.prepare(composed(*options))  # whose components are used; its split is not
    race = run.dataset.sensitive["race"]
    cells = cells_of(run.study, folds(race, seeds))
    ensure_all(cells, run.store)
    found = []
    for cell in cells:
        columns = run.store.read(cell.id).columns
        parts = decomposed(raw_outputs(columns))
        of_row = race.to_numpy()[columns["row"]]
        found.append([[parts[p][of_row == name].mean() for name in GROUPS] for p in PARTS])
    return np.array(found).reshape(seeds, len(ACS_SIZES), len(PARTS), len(GROUPS))


def epistemic_shrinks_acs(options: _EpistemicShrinksOptions) -> None:
    """Print whether more black people in training lower their epistemic uncertainty on ACS.

    ``python -m papers.uncertainty_fairness.studies epistemic_shrinks_acs [seeds=10]``: what
    ``papers.uncertainty_fairness.studies`` shows of a simulated population, on real
    people. Training rows are drawn `seeds` times, the black ones nested in size; the test rows
    stay the same. The true ratio of aleatoric uncertainties is not known here.
    """
    names = (*GROUPS, "epistemic, each", "ratio", "aleatoric, each", "ratio")
    for learner in LEARNERS:
        found, rows = uncertainties(learner, options.seeds, options.results), []
        for place, sizes in enumerate(ACS_SIZES):
            cells = []
            for values in np.moveaxis(found[:, place], 1, 0):
                level = " ".join(f"{mean:.4f}" for mean in values.mean(axis=0))
                cells += [level, ratio(values[:, 1], values[:, 0])]
            rows.append([*map(str, sizes), *cells])
        title = f"ACS income, {learner}: means over {options.seeds} draws"
        print_table(title, names, rows, width=110)


EXPERIMENT = "uncertainty_fairness/sequences"
METRICS = ("roc_auc", "truncated_rows", "aleatoric_uncertainty", "epistemic_uncertainty")
NODES = 40  # of the numerical integral over what is not seen


def values(results: Path) -> pd.DataFrame:
    """Return both groups' metrics of every finished run: what is read, population, A and B.

    Raises
    ------
    UserError : there is no finished run; it says which command makes them.
    """
    rows: list[dict[str, Any]] = []
    for _, run, metrics in runs_needed(EXPERIMENT, results):
        learner, dataset = run.config["learner"], run.config["dataset"]
        mine = metrics[(metrics["attribute"] == "group") & metrics["metric"].isin(METRICS)]
        found = mine.pivot_table(index="metric", columns="group", values="value", observed=True)
        reading = {
            "modalities": " and ".join(learner["modalities"]) or "both",
            "length": learner["length"] or 0,
            "seed": dataset["seed"],
        }
        rows += [{**reading, "metric": name, **found.loc[name]} for name in found.index]
        # Each group's mean 2 p (1 - p), where p is all that the frames read say of a label.
        chosen = {name: each for name, each in dataset.items() if name not in ("name", "verified")}
        data = simulated_sequences.load(None, **chosen)  # type: ignore[arg-type]  # it reads no file
        p = known(data, dataset, learner["modalities"], learner["length"])
        by_group = pd.Series(2 * p * (1 - p)).groupby(data.sensitive["group"], observed=True).mean()
        rows.append({**reading, "metric": "ideal", **by_group})
    return pd.DataFrame(rows)


def known(
    data: Dataset, options: Mapping[str, Any], modalities: Sequence[str], length: int | None
) -> Floats:
    """Return P(y = 1), given the first `length` frames of some modalities (all if none is named).

    What an event's frames that are cut off would have said is normal given those that are left.

    Parameters
    ----------
    options : ``event``, ``noise`` and ``strength`` that the data were drawn with.
    """
    assert isinstance(data.features, Sequences)
    parts = dict(zip(data.features.names, data.features.parts, strict=True))
    event, noise = int(options["event"]), float(options["noise"])
    mean, variance = np.zeros(len(data)), np.zeros(len(data))
    for name, part in parts.items():
        count, total = np.zeros(len(data), np.int64), np.zeros(len(data))
        if not modalities or name in modalities:
            frames, _ = part.cut(length or int(part.lengths.max()), end=True).padded()
            marked = frames[..., 0] == 1
            count = marked.sum(axis=1)
            total = (frames[..., 1] * marked).sum(axis=1, dtype=np.float64)
        left = 1 / (1 + count / noise**2)  # variance of what the event says, which has 1 beforehand
        hidden = event - count
        mean = mean + (total + hidden * left * total / noise**2) / event
        variance = variance + (hidden**2 * left + hidden * noise**2) / event**2
    scale = options["strength"] / np.sqrt(len(parts) * (1 + noise**2 / event))
    node, weight = np.polynomial.hermite_e.hermegauss(NODES)
    signal = mean[:, None] + np.sqrt(variance)[:, None] * node
    return expit(scale * signal) @ weight / weight.sum()


def readings_of_groups(found: pd.DataFrame) -> pd.DataFrame:
    """Return what each reading makes of the groups: means over populations, and ratios B / A."""

    def pair(rows: pd.DataFrame, digits: int = 2) -> str:
        return f"{rows['A'].mean():.{digits}f}, {rows['B'].mean():.{digits}f}"

    def of_groups(rows: pd.DataFrame) -> str:
        return ratio(rows["B"].to_numpy(), rows["A"].to_numpy())

    shown = []
    for (modalities, length), rows in found.groupby(["modalities", "length"], sort=False):
        of = dict(iter(rows.groupby("metric")))
        aleatoric, epistemic = (of[f"{part}_uncertainty"] for part in ("aleatoric", "epistemic"))
        cells = [pair(of["truncated_rows"]), pair(of["roc_auc"]), pair(aleatoric)]
        cells += [of_groups(aleatoric), of_groups(of["ideal"]), pair(epistemic, 4)]
        read = f"{modalities}, {f'{length} frames' if length else 'whole'}"
        shown.append([read, *cells, of_groups(epistemic)])
    names = ("read", "cut: A, B", "AUC: A, B", "aleatoric: A, B", "ratio", "ratio, ideal")
    return pd.DataFrame(shown, columns=[*names, "epistemic: A, B", "ratio"])


def effects(found: pd.DataFrame) -> pd.DataFrame:
    """Return by what truncation multiplies the ratios of the groups, paired by population."""
    compared = ("aleatoric_uncertainty", "ideal", "epistemic_uncertainty")
    ratios, shown = found.assign(ratio=found["B"] / found["A"], cut=found["length"] > 0), []
    for modalities, rows in ratios.groupby("modalities", sort=False):
        pairs = [
            rows[rows["metric"] == name].pivot(index="seed", columns="cut", values="ratio").dropna()
            for name in compared
        ]
        cells = [ratio(pair[True], pair[False]) for pair in pairs]
        shown.append([str(modalities), str(len(pairs[0])), *cells])
    names = ("read", "populations", "aleatoric", "aleatoric, ideal", "epistemic")
    return pd.DataFrame(shown, columns=names)


def sequences(options: Results) -> None:
    """Whether truncating one group's sequences raises its aleatoric and its epistemic uncertainty.

    ``python -m papers.uncertainty_fairness.studies sequences`` reads the finished runs of the
    experiment ``uncertainty_fairness/sequences``: group B's rows are three times as long as A's,
    and are read whole or as far as A's are long. Beside each ratio stands that of a reader who
    knows how labels come about, and sees the same frames.
    """
    found = values(options.results)
    populations = f"means over {found['seed'].nunique()} populations"
    for title, frame in (
        (f"{populations}; ratios B over A with 95 % intervals", readings_of_groups(found)),
        ("ratio B / A of truncated over that of whole", effects(found)),
    ):
        print_table(title, frame.columns, frame.to_numpy(), width=170)


if __name__ == "__main__":
    run_main(population, epistemic_shrinks, epistemic_shrinks_acs, sequences)
