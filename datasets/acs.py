"""American Community Survey 2018: fixed samples of the folktables tasks (Ding et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.arrays import rng
from fairbench.core.errors import DataError, UserError, check_share
from fairbench.data.columns import one_of, require_columns
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import header, read_typed

DATASHEET = Datasheet(
    title="ACS tasks, fixed samples (Ding, Hardt, Miller, Schmidt 2021)",
    source="United States Census Bureau, American Community Survey (ACS) 2018, 1-year Public Use "
    "Microdata Sample (PUMS), through the package folktables. The samples are kept by "
    "rtealwitter/fairlyuncertain (employment) and dssg/aequitas (the others)",
    licence="United States government work, in the public domain. folktables and both "
    "repositories: MIT",
    paper_differences="`acs_employment_fu` is FairlyUncertain's own sample: 16249 rows of 16 "
    "numeric codes. It predicts employment in New York (the paper's text says income), of a tenth "
    "of Black and White people, drawn without a seed. The national tables (`acs_income`, "
    "`acs_mobility` and `acs_public_coverage`) are a random fifth of each task. Codes are read as "
    "categories; `codes=numeric` reads them as numbers, as folktables does. `acs_income_bands` "
    "predicts the income of the people of `acs_mobility`, over 18 and under 35 years old, in four "
    "bands; `dataset.bands=[...]` sets others.",
    criticism="'Not applicable' is code 0, a category and not a measurement. There are no person "
    "weights, so rates describe the sample, not the population. The cut of ACSIncome at 50,000 "
    "dollars is as arbitrary as Adult's. The national tables do not record the state, so they "
    "cannot show the shift between states.",
)
TITLES = {
    "acs_employment_fu": "ACS employment in New York, the sample of FairlyUncertain (Ding et al. "
    "2021)",
    "acs_income": "ACS income over 50,000 dollars a year, all states (Ding et al. 2021)",
    "acs_income_bands": "ACS income in four bands, ages over 18 and under 35, all states (Ding et "
    "al. 2021)",
    "acs_income_sample": "ACS income over 50,000 dollars a year, a twentieth of the White and "
    "Black people of acs_income (Ding et al. 2021)",
    "acs_mobility": "ACS mobility, living in the same house as a year ago, ages over 18 and under "
    "35, all states (Ding et al. 2021)",
    "acs_mobility_sample": "ACS mobility, a tenth of the White and Black people of acs_mobility "
    "(Ding et al. 2021)",
    "acs_public_coverage": "ACS public health insurance, all states (Ding et al. 2021)",
    "acs_public_coverage_sample": "ACS public health insurance, a twentieth of the White and "
    "Black people of acs_public_coverage (Ding et al. 2021)",
}
EMPLOYMENT_FU = raw_file("acs/acs_employment_ny2018_10pct_derived.csv")
RACES = {
    1: "White",
    2: "Black",
    3: "American Indian",
    4: "Alaska Native",
    5: "American Indian or Alaska Native tribe",
    6: "Asian",
    7: "Pacific Islander",
    8: "Other",
    9: "Two or more",
}
NUMERIC = ("AGEP", "WKHP", "PINCP", "JWMNP", "POVPIP")


@dataclass(frozen=True)
class Outcome:
    """What a task predicts, for tables and figures."""

    column: str
    name: str
    positive: str
    favourable: int | None = 1


_WHITE_AND_BLACK = (1, 2)
OUTCOMES = {
    "income": Outcome("PINCP", "income", "> 50K a year"),
    "public_coverage": Outcome("PUBCOV", "health insurance", "public coverage"),
    "mobility": Outcome("MIG", "residence a year ago", "same house", None),
    "employment": Outcome("ESR", "employment", "employed"),
    "travel_time": Outcome("JWMNP", "commute", "> 20 minutes", 0),
}
NATIONAL = {
    task: raw_file(f"acs/acs_{task}_us2018_20pct_derived.csv")
    for task in ("income", "public_coverage", "mobility")
}
# The archive's columns in its order, which is the features' order too.
_COLUMNS = {
    "income": "row PINCP RAC1P SCHL POBP SEX OCCP RELP COW MAR WKHP AGEP",
    "public_coverage": "row PUBCOV RAC1P DEAR SEX ESP DEYE MIL AGEP DIS ANC SCHL MIG ESR NATIVITY "
    "FER PINCP DREM MAR CIT",
    "mobility": "row MIG RAC1P DEAR SEX ESP DEYE MIL AGEP DIS ANC SCHL ESR RELP NATIVITY COW PINCP "
    "DREM MAR JWMNP WKHP GCL CIT",
    "employment_fu": "AGEP SCHL MAR RELP DIS ESP CIT MIG MIL ANC NATIVITY DEAR DEYE DREM SEX RAC1P "
    "ESR_employed group",
}


def national(
    archive: Archive,
    *,
    task: str,
    codes: str = "categorical",
    keep_sensitive: bool = True,
    races: str = "all",
    share: float = 1.0,
) -> Dataset:
    """Return a task's random fifth of the people of all states, or a share of that.

    Parameters
    ----------
    archive : where the file is found.
    task : ``income``, ``public_coverage`` or ``mobility``.
    codes : ``categorical`` or ``numeric``.
    keep_sensitive : keep sex and race among the features.
    races : ``all``, or ``white_and_black`` as in FairlyUncertain.
    share : the share of the rows that is kept; the same rows are drawn every time.
    """
    if share != 1:
        check_share("dataset.share", share)
    one_of("races", races, ("all", "white_and_black"))
    source = NATIONAL[one_of("task", task, tuple(NATIONAL))]
    column = OUTCOMES[task].column
    raw = _read(archive, source, _COLUMNS[task].split())
    del raw["row"]
    raw["RAC1P"] += 1
    kept = rng(0, "share", f"acs_{task}").random(len(raw)) < share
    if races != "all":
        kept &= raw["RAC1P"].isin(_WHITE_AND_BLACK).to_numpy()
    if not kept.all():
        raw = raw[kept].reset_index(drop=True)
    target = raw.pop(column)
    return dataset_of(raw, target, task, f"acs_{task}", codes, keep_sensitive, (source,))


def income_bands(
    archive: Archive,
    *,
    bands: Sequence[float] = (15_000, 30_000, 50_000),
    codes: str = "categorical",
    keep_sensitive: bool = True,
    races: str = "all",
    share: float = 1.0,
) -> Dataset:
    """Return the people of the task ``mobility``, over 18 and under 35, with incomes in bands.

    Parameters
    ----------
    archive : where the file is found.
    bands : dollars a year above which a band begins, each more than the one before.
    codes, keep_sensitive, races, share : as in :func:`national`.
    """
    if len(bands) < 2 or (np.diff(bands) <= 0).any():
        raise UserError("dataset.bands are two or more incomes, each more than the one before")
    options = {"codes": codes, "races": races, "share": share, "keep_sensitive": keep_sensitive}
    people = national(archive, task="mobility", **options)  # type: ignore[arg-type]
    assert isinstance(people.features, pd.DataFrame)
    income = people.features["PINCP"].to_numpy()
    ends = [f"{band / 1000:g}K" for band in bands]
    between = [f"over {low} to {high}" for low, high in pairwise(ends)]
    return replace(
        people,
        name="acs_income_bands",
        task=Task.MULTICLASS,
        features=people.features.drop(columns="PINCP"),
        target=pd.Series(np.searchsorted(bands, income), name="PINCP"),
        target_name="income",
        positive_label="",
        favourable=len(bands),
        classes=(f"up to {ends[0]}", *between, f"over {ends[-1]}"),
        ordered=True,
    )


def employment_fu(
    archive: Archive, *, codes: str = "numeric", keep_sensitive: bool = True
) -> Dataset:
    """Return FairlyUncertain's 16249 New Yorkers; label 1 is being employed.

    Parameters
    ----------
    archive : where the file is found.
    codes : ``numeric``, as in FairlyUncertain, or ``categorical``.
    keep_sensitive : keep sex and race among the features.
    """
    file = EMPLOYMENT_FU.path
    raw = _read(archive, EMPLOYMENT_FU, _COLUMNS["employment_fu"].split())
    if (raw.pop("group") != raw["RAC1P"] - 1).any():
        raise DataError(f"{file}: column 'group' is not RAC1P - 1")
    target = raw.pop("ESR_employed")
    name = "acs_employment_fu"
    return dataset_of(raw, target, "employment", name, codes, keep_sensitive, (EMPLOYMENT_FU,))


def _read(archive: Archive, source: Source, columns: list[str]) -> pd.DataFrame:
    content, file = archive.read(source), source.path
    wide = {"row": "int32", "PINCP": "int32"}
    raw = read_typed(content, file, {n: wide.get(n, "int16") for n in header(content, file)})
    require_columns(raw, columns, file, width=len(columns))
    return raw[columns]


def dataset_of(
    raw: pd.DataFrame,
    target: pd.Series,
    task: str,
    name: str,
    codes: str,
    keep_sensitive: bool,
    sources: tuple[Source, ...],
    *,
    weight: pd.Series | None = None,
) -> Dataset:
    """Return a table of PUMS codes as a data set; `raw` is used up, column by column."""
    one_of("codes", codes, ("categorical", "numeric"))
    file, outcome = sources[0].path, OUTCOMES[task]
    race = coded(raw["RAC1P"], RACES, file)
    sex = coded(raw["SEX"], {1: "Male", 2: "Female"}, file)
    if not keep_sensitive:
        raw = raw.drop(columns=["RAC1P", "SEX"])
    columns = {}
    for column in list(raw):
        values = raw.pop(column)
        categorical = codes == "categorical" and column not in NUMERIC
        columns[column] = categories_of(values) if categorical else values
    return Dataset(
        name=name,
        task=Task.BINARY,
        features=pd.DataFrame(columns),
        target=target.astype(np.int8).rename(outcome.column),
        sensitive=pd.DataFrame({"race": race, "sex": sex}),
        privileged={"race": "White", "sex": "Male"},
        target_name=outcome.name,
        positive_label=outcome.positive,
        favourable=outcome.favourable,
        weight=weight,
        sources=sources,
    )


def categories_of(values: pd.Series) -> pd.Series:
    """Return whole-number codes as a categorical of texts, in the order of the numbers."""
    found, codes = np.unique(values.to_numpy(), return_inverse=True)
    kind = np.int8 if len(found) < 128 else np.int16
    categories = pd.Categorical.from_codes(codes.astype(kind), [str(code) for code in found])
    return pd.Series(categories, index=values.index, name=values.name)


def coded(values: pd.Series, names: Mapping[int, str], file: str) -> pd.Series:
    """Return whole-number codes as a categorical of the labels that occur, in their order."""
    wrong = ~values.isin(list(names)).to_numpy()
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{file}: column '{values.name}', row {row + 1}: {values.iloc[row]} is not one of "
            f"{', '.join(map(str, names))}"
        )
    # The first label stays in any case: it is the reference.
    present = [code for code in names if code == 1 or (values == code).any()]
    codes = np.searchsorted(present, values.to_numpy()).astype(np.int8)
    labels = pd.Categorical.from_codes(codes, [names[code] for code in present])
    return pd.Series(labels, index=values.index, name=values.name)
