"""American Community Survey: any state and year of PUMS, by the definitions of folktables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from datasets.acs import OUTCOMES, dataset_of
from fairbench.core.errors import DataError, UserError
from fairbench.data.dataset import Dataset, Datasheet, Source
from fairbench.data.delimited import read_table
from fairbench.data.download import Archive
from fairbench.data.tabular import numbers, one_of

DATASHEET = Datasheet(
    title="ACS tasks from the census files (Ding, Hardt, Miller, Schmidt 2021)",
    source="United States Census Bureau, ACS PUMS person records, www2.census.gov",
    licence="United States government work, public domain",
    paper_differences="Populations, features and targets are those of folktables 0.0.12, written "
    "out here and tested against the package on generated files; 'not applicable' is 0, as its "
    "nan_to_num makes it. Codes are categories by default. Files are found, or fetched, by this "
    "project's archive: no checksum of them is published, so a file's own is recorded with the "
    "results instead of being checked. Years 2014 to 2018: later files have no column RELP.",
    criticism="As for the fixed samples, but evaluator.weights=true weighs rows by their person "
    "weights; in addition the Census Bureau adds noise, swaps records "
    "and top-codes incomes to protect respondents, and one-year files leave out small areas.",
)
_STATES = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 LA22 "
    "ME23 MD24 MA25 MI26 MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 OK40 "
    "OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49 VT50 VA51 WA53 WV54 WI55 WY56 PR72"
)
STATES = {entry[:2]: entry[2:] for entry in _STATES.split()}
Table: TypeAlias = pd.DataFrame
_COMMON = ("AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP")
_ORIGIN = ("MIL", "ANC", "NATIVITY", "DEAR", "DEYE", "DREM")


@dataclass(frozen=True)
class Definition:
    """A task of folktables: its features, its population and when its label is 1."""

    features: tuple[str, ...]
    population: Callable[[Table], pd.Series]
    positive: Callable[[pd.Series], pd.Series]
    filters: tuple[str, ...] = ()


def _adults(frame: Table) -> pd.Series:
    return (frame["AGEP"] > 16) & (frame["PWGTP"] >= 1)


TASKS = {
    "income": Definition(
        ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P"),
        lambda frame: _adults(frame) & (frame["PINCP"] > 100) & (frame["WKHP"] > 0),
        lambda target: target > 50_000,
    ),
    "employment": Definition(
        (*_COMMON, "RELP", "CIT", "MIG", *_ORIGIN, "RAC1P"),
        lambda frame: frame["AGEP"].notna(),
        lambda target: target == 1,
    ),
    "public_coverage": Definition(
        (*_COMMON, "CIT", "MIG", *_ORIGIN, "PINCP", "ESR", "ST", "FER", "RAC1P"),
        lambda frame: (frame["AGEP"] < 65) & (frame["PINCP"] <= 30_000),
        lambda target: target == 1,
    ),
    "mobility": Definition(
        (*_COMMON, "CIT", *_ORIGIN, "RELP", "RAC1P", "GCL", "COW", "ESR", "WKHP", "JWMNP", "PINCP"),
        lambda frame: (frame["AGEP"] > 18) & (frame["AGEP"] < 35),
        lambda target: target == 1,
    ),
    "travel_time": Definition(
        (
            *(*_COMMON, "MIG", "RELP", "RAC1P", "PUMA", "ST", "CIT", "OCCP", "JWTR", "POWPUMA"),
            "POVPIP",
        ),
        lambda frame: _adults(frame) & (frame["ESR"] == 1),
        lambda target: target > 20,
        ("ESR",),
    ),
}


def load(
    archive: Archive,
    *,
    task: str,
    states: Sequence[str] = ("NY",),
    year: int = 2018,
    horizon: str = "1-Year",
    codes: str = "categorical",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the population of a task in some states.

    Parameters
    ----------
    archive : where the census files are found, as ``acs/YEAR/HORIZON/psam_pNN.csv`` or the zip.
    task : ``income``, ``employment``, ``public_coverage``, ``mobility`` or ``travel_time``.
    states : two-letter codes.
    year, horizon : 2014 to 2018, and ``1-Year`` or ``5-Year``.
    codes : ``categorical`` or ``numeric``.
    keep_sensitive : keep sex and race among the features.
    """
    definition = TASKS[one_of("task", task, tuple(TASKS))]
    one_of("horizon", horizon, ("1-Year", "5-Year"))
    if not 2014 <= year <= 2018:
        raise UserError(f"dataset.year is {year}: the tasks are defined for 2014 to 2018")
    if not states:
        raise UserError("dataset.states is empty: give two-letter codes, such as [NY,CA]")
    sources = tuple(source_of(one_of("states", s, tuple(STATES)), year, horizon) for s in states)
    target = OUTCOMES[task].column
    wanted = (*dict.fromkeys((*definition.features, target, *definition.filters, "PWGTP")),)
    raw = pd.concat([_people(archive, s, wanted) for s in sources], ignore_index=True)
    raw = raw[definition.population(raw)].reset_index(drop=True)
    if raw.empty:
        raise DataError(f"{sources[0].path}: no row is in the population of ACS {task}")
    label = definition.positive(raw[target])
    features = raw[list(definition.features)].fillna(0).astype(np.int32)
    place = "_".join(states)
    name = f"acs_{task}_{place}_{year}" + ("_5y" if horizon == "5-Year" else "")
    return dataset_of(
        features, label, task, name, codes, keep_sensitive, sources, weight=raw["PWGTP"]
    )


def source_of(state: str, year: int, horizon: str) -> Source:
    """Return the person file of a state; its checksum is not published."""
    older = f"ss{year % 100}p{state.lower()}.csv"
    file = f"psam_p{STATES[state]}.csv" if year >= 2017 else older
    page = f"https://www2.census.gov/programs-surveys/acs/data/pums/{year}/{horizon}"
    url = f"{page}/csv_p{state.lower()}.zip"
    return Source(f"acs/{year}/{horizon}/{file}", "", (url,), page, member=file)


def _people(archive: Archive, source: Source, wanted: Sequence[str]) -> pd.DataFrame:
    raw = read_table(archive.read(source), source.path, only=wanted)
    return pd.DataFrame({name: numbers(raw, name, source.path, missing="") for name in wanted})
