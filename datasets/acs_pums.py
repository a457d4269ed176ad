"""American Community Survey: any state and year of PUMS, by the definitions of folktables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.datasets.acs import dataset_of
from fairbench.core.errors import DataError, UserError
from fairbench.data.columns import numbers, one_of
from fairbench.data.dataset import Dataset, Datasheet, Source
from fairbench.data.download import Archive
from fairbench.data.tables import read_table

DATASHEET = Datasheet(
    title="ACS tasks of any state and year, from the census files (Ding, Hardt, Miller, Schmidt "
    "2021)",
    source="United States Census Bureau, person records of the American Community Survey's Public "
    "Use Microdata Sample (ACS PUMS), www2.census.gov",
    licence="United States government work, in the public domain. folktables: MIT",
    paper_differences="Populations, features and targets are those of folktables (0.0.12). 'Not "
    "applicable' is code 0; codes are read as categories. A run downloads the files of its states "
    "if they are missing. None has a published checksum: what was read is recorded with the "
    "results. Beyond folktables, the District of Columbia and years after 2018 are read, with "
    "columns renamed: RELSHIPP to RELP and JWTRNS to JWTR (from 2019), and STATE to ST (from "
    "2023). Some codes changed, too (RELP: 0 to 17 before 2019, 20 to 38 since; JWTR: 3 to 5), so "
    "do not apply a model of 2018 to 2019. The one-year files of 2020 are experimental, with "
    "weights of their own. Tasks that need PUMA are refused where a file has it by two code books.",
    criticism="Those of the fixed ACS samples, except that states can be chosen and "
    "`evaluator.weights=true` weights the rows (PWGTP). The Census Bureau adds noise, swaps "
    "records and top-codes incomes, and one-year files leave out small areas. The cut at 50,000 "
    "dollars stays while prices rise, so base rates differ between years.",
    family="acs",
)
TASKS = {
    "income": "ACSIncome",
    "employment": "ACSEmployment",
    "public_coverage": "ACSPublicCoverage",
    "mobility": "ACSMobility",
    "travel_time": "ACSTravelTime",
}
# From which year on the files have other names for columns of the definitions.
_RENAMED = {2019: {"RELP": "RELSHIPP", "JWTR": "JWTRNS"}, 2023: {"ST": "STATE"}}
_FIRST_YEAR = 2014
# Every row has values of these; some of them define the populations.
_ALWAYS = ("AGEP", "SEX", "RAC1P", "PWGTP")
_STATES = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 DC11 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 "
    "LA22 ME23 MD24 MA25 MI26 MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 "
    "OK40 OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49 VT50 VA51 WA53 WV54 WI55 WY56 PR72"
)
STATES = {entry[:2]: entry[2:] for entry in _STATES.split()}


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
    """Return the population of a task in some states; a row's weight is how many people it is.

    Parameters
    ----------
    archive : where the census files are found, as ``acs/YEAR/HORIZON/psam_pNN.csv`` or the zip.
    task : ``income``, ``employment``, ``public_coverage``, ``mobility`` or ``travel_time``.
    states : two-letter codes; DC and PR are among them.
    year, horizon : from 2014 on, and ``1-Year`` or ``5-Year``.
    codes : ``categorical`` or ``numeric``.
    keep_sensitive : keep sex and race among the features.
    """
    import folktables

    problem = getattr(folktables, TASKS[one_of("task", task, tuple(TASKS))])
    states = [states] if isinstance(states, str) else states
    sources = sources_of(states, year, one_of("horizon", horizon, ("1-Year", "5-Year")))
    wanted = (*dict.fromkeys((*problem.features, problem.target, "ESR", *_ALWAYS)),)
    raw = pd.concat([_people(archive, each, wanted, year) for each in sources], ignore_index=True)
    features, label, rows = _population(problem, raw)
    if not len(rows):
        raise DataError(f"{sources[0].path}: no row is in the population of ACS {task}")
    name = f"acs_{task}_{'_'.join(states)}_{year}" + ("_5y" if horizon == "5-Year" else "")
    weight = raw["PWGTP"].iloc[rows].reset_index(drop=True)
    return dataset_of(features, label, task, name, codes, keep_sensitive, sources, weight=weight)


def _population(problem: Any, raw: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, Any]:
    """Return a task's features and labels, and the numbers of their rows in `raw`.

    folktables does not say which rows it drops, but it returns the group of each row that it
    keeps. So it is given the row's number as the group, and the true group is put back later.
    """
    group = problem.group
    values, label, rows = problem.df_to_numpy(raw.assign(**{group: np.arange(len(raw))}))
    features = pd.DataFrame(values, columns=problem.features).astype(np.int32)
    features[group] = raw[group].to_numpy(np.int32)[rows]
    return features, pd.Series(label, name=problem.target), rows


def sources_of(states: Sequence[str], year: int, horizon: str) -> tuple[Source, ...]:
    """Return the person files of some states.

    Raises
    ------
    UserError : no state, an unknown state, a state twice, or a year without files.
    """
    last = date.today().year - 1
    if not _FIRST_YEAR <= year <= last:
        raise UserError(f"dataset.year is {year}; it must be from {_FIRST_YEAR} to {last}")
    if not states:
        raise UserError("dataset.states is empty: give two-letter codes, such as [NY,CA]")
    for number, state in enumerate(states):
        if one_of("states", state, tuple(STATES)) in states[:number]:
            raise UserError(f"dataset.states names {state} twice; name each state once")
    return tuple(source_of(state, year, horizon) for state in states)


def source_of(state: str, year: int, horizon: str) -> Source:
    """Return the person file of a state; its checksum is not published."""
    older = f"ss{year % 100}p{state.lower()}.csv"
    file = f"psam_p{STATES[state]}.csv" if year >= 2017 else older
    folder = f"data/pums/{year}/{horizon}"
    if (year, horizon) == (2020, "1-Year"):
        folder = "experimental/2020/data/pums/1-Year"
    page = f"https://www2.census.gov/programs-surveys/acs/{folder}"
    url = f"{page}/csv_p{state.lower()}.zip"
    return Source(f"acs/{year}/{horizon}/{file}", "", (url,), page, member=file)


def names_in(year: int) -> dict[str, str]:
    """Return the columns of folktables' definitions that have another name in a year's files."""
    return {
        name: new
        for since, names in _RENAMED.items()
        if year >= since
        for name, new in names.items()
    }


def _people(archive: Archive, source: Source, wanted: Sequence[str], year: int) -> pd.DataFrame:
    called = names_in(year)
    only = [called.get(name, name) for name in wanted]
    raw = read_table(archive.read(source), source.path, only=only)
    return pd.DataFrame({
        name: numbers(raw, column, source.path, missing=None if name in _ALWAYS else "")
        for name, column in zip(wanted, only, strict=True)
    })  # fmt: skip
