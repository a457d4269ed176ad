"""Twin births in the USA 1989-1991 (Almond, Chay, Lee 2005): prenatal visits of the mother."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import DataError
from fairbench.data.columns import labels, numbers, one_of, require_columns, scaled
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="Twins (Almond, Chay, Lee 2005; prepared by Louizos et al. 2017)",
    source="AMLab-Amsterdam/CEVAE, from the NCHS/NBER linked birth and infant death files",
    licence="None stated. The original data are public-use data of the United States government",
    paper_differences="As in FairlyUncertain: the target is the quintile of the number of prenatal "
    "visits (nprevistq, scaled from 0..4 to [0, 1]). Pairs without it are dropped, then columns "
    "with a missing value: 68995 pairs and 19 columns stay, among them both infants' identifiers, "
    "weights and deaths, which `columns=clean` leaves out but for the weights. One row is a pair; "
    "`unit=twin` makes a row of each twin, and keeps both on one side of a split. "
    "`twins_under2000g` is the derived table of the 11984 pairs lighter than 2000 g; its rows are "
    "always single twins. `twins_mortality` predicts the deaths of these twins in the first year, "
    "as Louizos et al. do.",
    criticism="In the paper's table identifiers are features, and so are deaths, which happen "
    "after the visits. Quintiles of a count are treated as real numbers. The group is the child's "
    "race as coded on the birth certificate.",
)
TITLES = {
    "twins": "Twins: number of prenatal visits, a row for each pair (Almond et al. 2005; Louizos "
    "et al. 2017)",
    "twins_mortality": "Twins under 2000 g: death in the first year (Almond et al. 2005; Louizos "
    "et al. 2017)",
    "twins_under2000g": "Twins under 2000 g: number of prenatal visits, a row for each twin "
    "(Almond et al. 2005; Louizos et al. 2017)",
}
WEIGHTS, COVARIATES, DEATHS = (
    raw_file(f"twins/twin_pairs_{part}_3years_samesex.csv") for part in "TXY"
)
UNDER_2000G = raw_file("twins/twins_under2000g_long_derived.csv")
_TARGET = "nprevistq"


def load(
    archive: Archive,
    *,
    unit: str = "pair",
    columns: str = "fairlyuncertain",
    target_scale: str = "minmax",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the same-sex pairs with a known number of prenatal visits.

    Parameters
    ----------
    archive : where the three raw files are found.
    unit : ``pair`` (a row for each pair, as in the paper) or ``twin`` (a row for each twin,
        clustered by pair).
    columns : ``fairlyuncertain`` or ``clean`` (without identifiers and deaths).
    target_scale : ``minmax`` scales by the minimum and maximum of all rows; or ``none``.
    keep_sensitive : keep the races, and whether the child is white, among the features.
    """
    one_of("unit", unit, ("pair", "twin"))
    wide = _pairs(archive)
    if unit == "twin":
        wide = _twins(wide)
    identifiers = ("infant_id", "infant_id_0", "infant_id_1")
    return _dataset(
        "twins" if unit == "pair" else "twins_long",
        _kept(wide, columns, keep_sensitive, (*identifiers, "mort", "mort_0", "mort_1")),
        wide,
        target_scale,
        (WEIGHTS, COVARIATES, DEATHS),
    )


def under_2000g(
    archive: Archive,
    *,
    columns: str = "fairlyuncertain",
    target_scale: str = "minmax",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the pairs lighter than 2000 g, with a row for each twin, clustered by pair.

    Parameters
    ----------
    archive : where the derived file is found.
    columns : ``fairlyuncertain`` (identifier, weight, order by weight and death are features) or
        ``clean`` (without identifier and death).
    target_scale : ``minmax`` scales by the minimum and maximum of all rows; or ``none``.
    keep_sensitive : keep the races, and whether the child is white, among the features.
    """
    file = UNDER_2000G.path
    raw = read_table(archive.read(UNDER_2000G), file)
    require_columns(raw, (_TARGET, "crace", "treatment", "outcome", "wt"), file, width=53)
    for name in ("wt", "treatment", "outcome"):
        numbers(raw, name, file)
    wide = _complete(raw, file)
    turn = wide["treatment"].to_numpy()
    if (turn[::2] != 0).any() or (turn[1::2] != 1).any() or len(turn) % 2:
        raise DataError(f"{file}: rows do not alternate lighter (0) and heavier (1) twin")
    wide["pair"] = np.arange(len(wide)) // 2
    kept = _kept(wide, columns, keep_sensitive, ("infant_id", "outcome"))
    return _dataset("twins_under2000g", kept, wide, target_scale, (UNDER_2000G,))


def mortality_under_2000g(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the twins of pairs lighter than 2000 g; label 1 is death in the first year.

    Identifiers and the number of prenatal visits are not features. Rows are clustered by pair.

    Parameters
    ----------
    archive : where the derived file is found.
    keep_sensitive : keep the races, and whether the child is white, among the features.
    """
    data = under_2000g(archive, columns="fairlyuncertain", keep_sensitive=keep_sensitive)
    assert isinstance(data.features, pd.DataFrame)
    late = [name for name in ("infant_id", "outcome") if name in data.features]
    return replace(
        data,
        name="twins_mortality",
        task=Task.BINARY,
        features=data.features.drop(columns=late),
        target=data.features["outcome"].astype(int).rename("mortality"),
        target_name="first year of life",
        positive_label="death",
        favourable=0,
    )


def _pairs(archive: Archive) -> pd.DataFrame:
    """Return weights, complete covariates and deaths side by side, with a row for each pair."""
    parts = {
        source.path: read_table(archive.read(source), source.path)
        for source in (WEIGHTS, COVARIATES, DEATHS)
    }
    rows = {path: len(part) for path, part in parts.items()}
    if len(set(rows.values())) > 1:
        raise DataError(
            f"{', '.join(f'{path}: {n} rows' for path, n in rows.items())}: they differ"
        )
    wanted = (("dbirwt_0", "dbirwt_1"), (_TARGET, "crace"), ("mort_0", "mort_1"))
    for (path, part), columns in zip(parts.items(), wanted, strict=True):
        require_columns(part, columns, path)
        for name in columns if path != COVARIATES.path else ():
            numbers(part, name, path)
    blank = parts[COVARIATES.path][_TARGET] == ""
    return (
        pd.concat([_complete(part[~blank], path) for path, part in parts.items()], axis=1)
        .reset_index(drop=True)
        .assign(pair=lambda frame: np.arange(len(frame)))
    )


def _complete(raw: pd.DataFrame, file: str) -> pd.DataFrame:
    """Return the rows that have a target, with the columns that have no missing value, by name."""
    if _TARGET in raw:
        raw = raw[raw[_TARGET] != ""]
    names = sorted(name for name in raw if not name.startswith(("column ", "Unnamed")))
    return pd.DataFrame(
        {name: numbers(raw, name, file) for name in names if not (raw[name] == "").any()}
    )


def _twins(wide: pd.DataFrame) -> pd.DataFrame:
    """Return two rows for each pair, the lighter twin first; ``x_0`` and ``x_1`` become ``x``."""
    own = [str(name)[:-2] for name in wide if str(name).endswith("_0") and f"{name[:-2]}_1" in wide]
    shared = [name for name in wide if str(name)[:-2] not in own]
    halves = [
        wide[shared].assign(**{name: wide[f"{name}_{twin}"] for name in own}, heavier=float(twin))
        for twin in (0, 1)
    ]
    return pd.concat(halves).sort_values(["pair", "heavier"]).reset_index(drop=True)


def _kept(
    wide: pd.DataFrame, columns: str, keep_sensitive: bool, late: Sequence[str]
) -> pd.DataFrame:
    one_of("columns", columns, ("fairlyuncertain", "clean"))
    dropped = {_TARGET, "pair"} | (set(late) if columns == "clean" else set())
    if not keep_sensitive:
        dropped |= {"crace", "mrace", "frace"}
    features = wide.drop(columns=[name for name in wide if name in dropped])
    return features.assign(white=wide["crace"] == 1) if keep_sensitive else features


def _dataset(
    name: str, features: pd.DataFrame, wide: pd.DataFrame, how: str, sources: tuple[Source, ...]
) -> Dataset:
    visits = wide[_TARGET].reset_index(drop=True)
    white = (wide["crace"] == 1).map({True: "white", False: "not white"})
    race = labels(white.reset_index(drop=True), {"white": "white", "not white": "not white"})
    return Dataset(
        name=name,
        task=Task.REGRESSION,
        features=features.reset_index(drop=True),
        target=scaled(visits, how),
        sensitive=pd.DataFrame({"race": race}),
        privileged={"race": "white"},
        target_name="prenatal visits (quintile)",
        clusters=None if name == "twins" else wide["pair"].reset_index(drop=True),
        sources=sources,
    )
