"""Generated raw files of Communities and of the law school tables, quirks included."""

from dataclasses import replace

import numpy as np

from fairbench.components.datasets.communities import _COLUMNS
from tests.datasets.raw_format import cycle, of_columns, whole, words


def communities():
    """No header, CRLF, ``?`` for missing."""
    draw, n = np.random.default_rng(8), 10
    columns = {name: [f"{value:.2f}" for value in draw.random(n)] for name in _COLUMNS}
    columns |= {"state": whole(draw, 1, 50, n), "fold": whole(draw, 1, 10, n)}
    columns |= {"county": ["?"] * n, "community": ["?"] * n}
    columns |= {"communityname": [f"Town{row}" for row in range(n)]}
    columns |= {"LemasSwornFT": cycle(["?", "0.5"], n), "OtherPerCap": cycle(["0.2", "0.3"], n)}
    columns["OtherPerCap"][3] = "?"
    columns["racepctblack"] = cycle(["0.2", "0.21", "0.1"], n)
    about = {"number": "population", "end": "\r\n", "header": False}
    return of_columns("communities.load", columns, **about)


def law_school():
    """The reconstructed table of AIF360."""
    n = 8
    columns = {
        "ID": [str(row + 1) for row in range(n)],
        "race": cycle(["white", "white", "black"], n),
        "gender": cycle(["female", "male"], n),
        "lsat": cycle(["30.0", "44.5"], n),
        "ugpa": cycle(["3.1", "2.9"], n),
        "zfygpa": cycle(["-1.5", "0.5", "2.5"], n),
        "aif360_position": [str(n - row) for row in range(n)],
    }
    return of_columns("law_school.gpa", columns, number="lsat")


def law_school_kusner():
    """An index column without a name."""
    n = 8
    columns = {
        "": [str(2 * row) for row in range(n)],
        "race": cycle(["White", "Black", "Asian"], n),
        "sex": cycle(["1", "2"], n),
        "LSAT": ["39.0"] * n,
        "UGPA": ["3.1"] * n,
        "region_first": ["GL"] * n,
        "ZFYA": cycle(["-0.98", "0.09", "1.5"], n),
        "sander_index": ["0.78"] * n,
        "first_pf": ["1.0"] * n,
    }
    return of_columns("law_school.kusner", columns, "law_school/law_data.csv", number="UGPA")


STUDIES = words("decile1b decile3 lsat ugpa zfygpa zgpa fulltime fam_inc")

BAR = words(
    "decile1b decile3 ID decile1 sex race cluster lsat ugpa zfygpa DOB_yr grad zgpa bar1 bar1_yr "
    "bar2 bar2_yr fulltime fam_inc age gender parttime male race1 race2 Dropout other asian black "
    "hisp pass_bar bar tier index6040 indxgrp indxgrp2 dnn_bar_pass_prediction gpa"
)


def law_school_bar():
    """Many columns, gaps, and columns that somebody added."""
    draw, n = np.random.default_rng(9), 10
    columns = {name: whole(draw, 1, 9, n) for name in BAR}
    columns |= {"race1": cycle(["white", "black", ""], n), "gender": cycle(["male", "female"], n)}
    columns |= {"pass_bar": cycle(["1", "1", "0"], n), "decile3": cycle(["", "5"], n)}
    columns["DOB_yr"] = ["1969"] * n
    return of_columns("law_school_bar.bar", columns, target="pass_bar")


def _bar_cut(loader, path, race, numbers):
    n = 8
    columns = {name: cycle(["9.0", "7.0"], n) for name in (*STUDIES, "tier")}
    columns |= {"male": cycle(numbers[::-1], n), **race}
    columns["pass_bar"] = cycle([numbers[0], numbers[1], numbers[0]], n)
    return of_columns(f"law_school_bar.{loader}", columns, path, number="lsat", target="pass_bar")


def law_school_survey():
    """Labels and flags written as ``1.0``."""
    race = {"race": cycle(["White", "Non-White"], 8)}
    path = "law_school/law_school_clean_derived.csv"
    return _bar_cut("survey", path, race, ("1.0", "0.0"))


def law_school_black_white():
    """Race as a number, flags as ``1.00``, labels as ``1``."""
    raw = _bar_cut("black_white", "law_school/law_dataset.csv", {"racetxt": ["1", "0"] * 4}, "10")
    content = raw.files[raw.path].decode().split("\n")
    place = raw.names.index("male")
    for row in range(1, 9):
        cells = content[row].split(",")
        cells[place] += ".00"
        content[row] = ",".join(cells)
    return replace(raw, files={raw.path: "\n".join(content).encode()})
