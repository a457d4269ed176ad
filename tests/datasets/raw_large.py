"""Generated raw files of Twins and of the census, quirks included."""

from dataclasses import replace

import numpy as np

from fairbench.components.datasets import acs as acs_loader
from tests.datasets.raw_format import Raw, cycle, of_columns, table, whole, words


def twins():
    """Three files side by side; X has gaps, index columns, and pairs without a target."""
    draw, n = np.random.default_rng(10), 12
    index = [str(row) for row in range(n)]
    weights = {"": index, "dbirwt_0": whole(draw, 500, 2000, n), "dbirwt_1": ["2500.0"] * n}
    shared = ("brstate", "stoccfipb", "mager8", "mrace", "dmar", "birmon", "gestat10", "csex")
    covariates = {"": index, "Unnamed: 0": index}
    covariates |= {name: whole(draw, 1, 9, n) for name in shared}
    covariates |= {"crace": cycle(["1.0", "1.0", "2.0"], n), "data_year": ["89.0"] * n}
    covariates |= {"nprevistq": [*cycle(["0.0", "1.0", "4.0"], n - 1), ""]}
    covariates |= {"alcohol": cycle(["0.0", "", "1.0"], n), "bord_0": cycle(["", "1.0"], n)}
    covariates |= {"bord_1": cycle(["2.0", ""], n)}
    covariates |= {"infant_id_0": index, "infant_id_1": index}
    covariates |= {"brstate_reg": ["5.0"] * n, "stoccfipb_reg": ["5.0"] * n}
    deaths = {"": index, "mort_0": cycle(["0.0", "1.0"], n), "mort_1": ["0.0"] * n}
    files = {
        f"twins/twin_pairs_{part}_3years_samesex.csv": table(columns).encode()
        for part, columns in (("T", weights), ("X", covariates), ("Y", deaths))
    }
    return Raw("twins.load", files, n - 1, tuple(weights), number="dbirwt_0", wide=False)


TWINS = words(
    "pldel birattnd brstate stoccfipb mager8 ormoth mrace meduc6 dmar mplbir mpre5 adequacy orfath "
    "frace birmon gestat10 csex anemia cardiac lung diabetes herpes hydra hemo chyper phyper "
    "eclamp incervix pre4000 preterm renal rh uterine othermr tobacco alcohol cigar6 drink5 crace "
    "data_year nprevistq dfageq feduc6 infant_id dlivord_min dtotord_min bord brstate_reg "
    "stoccfipb_reg mplbir_reg wt treatment outcome"
)


def twins_under2000g():
    """A row a twin, lighter and heavier in turn; gaps are empty cells."""
    draw, n = np.random.default_rng(11), 12
    columns = {name: whole(draw, 1, 9, n) for name in TWINS}
    columns |= {"treatment": ["0", "1"] * 6, "nprevistq": [*cycle(["0.0", "4.0"], n - 2), "", ""]}
    columns |= {"tobacco": cycle(["", "1.0", "0.0"], n), "outcome": cycle(["0", "1", "0"], n)}
    columns["crace"] = [value for pair in range(6) for value in ("12"[pair % 2],) * 2]
    path = "twins/twins_under2000g_long_derived.csv"
    return of_columns("twins.under_2000g", columns, path, rows=n - 2, number="wt")


def _acs(task, target):
    draw, n = np.random.default_rng(12), 12
    columns = {name: whole(draw, 0, 9, n) for name in acs_loader._COLUMNS[task].split()}
    if "row" in columns:
        columns["row"] = [str(400_000 * row // 3) for row in range(n)]
    shift = 0 if "row" in columns else 1
    columns["RAC1P"] = cycle([str(shift), str(shift + 1)], n)
    columns |= {"SEX": cycle(["1", "2", "2"], n), "AGEP": whole(draw, 17, 94, n)}
    columns[target] = cycle(["0", "1", "0"], n)
    if "group" in columns:
        columns["group"] = cycle(["0", "1"], n)
        return of_columns("acs.employment_fu", columns, number="AGEP")
    path, options = acs_loader.NATIONAL[task].path, {"task": task}
    return of_columns("acs.national", columns, path, number="AGEP", options=options)


def acs_income():
    """Whole-number codes; race recoded to start at 0; the target first."""
    return _acs("income", "PINCP")


def acs_mobility():
    """The same for mobility, where income is a feature of more than 16 bits."""
    raw = _acs("mobility", "MIG")
    return replace(raw, files=raw.with_cell(3, "PINCP", "123456"))


def acs_public_coverage():
    """The same for public coverage."""
    return _acs("public_coverage", "PUBCOV")


def acs_employment_fu():
    """FairlyUncertain's sample: race 1 and 2, and the group beside it."""
    return _acs("employment_fu", "ESR_employed")


PUMS = words(
    "RT SERIALNO WKHP PUMA ST PWGTP AGEP CIT COW DEAR DEYE DREM ESP ESR FER GCL JWMNP JWTR MAR MIG "
    "MIL NATIVITY ANC DIS OCCP PINCP POBP POVPIP POWPUMA PUBCOV RAC1P SCHL SEX RELP"
)


def acs():
    """A census person file: many columns, blanks for what does not apply."""
    draw, n = np.random.default_rng(13), 60
    columns = {name: whole(draw, 1, 3, n) for name in PUMS}
    columns |= {"RT": ["P"] * n, "SERIALNO": [f"2018HU{row:07d}" for row in range(n)]}
    columns |= {"AGEP": whole(draw, 5, 95, n), "RAC1P": whole(draw, 1, 10, n)}
    columns |= {"PINCP": whole(draw, -500, 90_000, n), "WKHP": whole(draw, 0, 60, n)}
    columns |= {"JWMNP": whole(draw, 1, 60, n), "SEX": cycle(["1", "2"], n)}
    for name in ("COW", "ESR", "WKHP", "JWMNP", "PINCP", "OCCP", "GCL", "FER"):
        for row in draw.integers(n, size=8):
            columns[name][row] = ""
    path, options = "acs/2018/1-Year/psam_p36.csv", {"task": "employment"}
    about = {"number": "AGEP", "options": options, "wide": False, "gaps": True}
    return of_columns("acs_pums.load", columns, path, **about)
