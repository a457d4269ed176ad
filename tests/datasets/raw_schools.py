"""Generated raw files of Communities, the law school tables and Le Quy et al.'s survey."""

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


def credit_default():
    """A byte-order mark and two header lines; undocumented codes."""
    draw, n = np.random.default_rng(6), 9
    names = (
        *("ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0"),
        *(f"PAY_{month}" for month in range(2, 7)),
        *(f"BILL_AMT{month}" for month in range(1, 7)),
        *(f"PAY_AMT{month}" for month in range(1, 7)),
        "default payment next month",
    )
    columns = {name: whole(draw, -2, 900, n) for name in names}
    columns |= {"SEX": cycle(["1", "2"], n), "EDUCATION": cycle(["1", "2", "3", "0"], n)}
    columns |= {"MARRIAGE": cycle(["1", "2", "0"], n), names[-1]: cycle(["0", "0", "1"], n)}
    codes = ",".join(["", *(f"X{i}" for i in range(1, 24)), "Y"])
    about = {"number": "BILL_AMT3", "target": names[-1], "head": f"\ufeff{codes}\n"}
    return of_columns("credit_default.load", columns, **about)


DUTCH = words(
    "sex age household_position household_size prev_residence_place citizenship country_birth "
    "edu_level economic_status cur_eco_activity Marital_status occupation"
)


def dutch_census():
    """Weka's ARFF: attribute declarations, a line ``@data``, then rows of codes."""
    n = 10
    columns = {name: cycle([str(i), str(i + 1)], n) for i, name in enumerate(DUTCH)}
    columns |= {"sex": cycle(["1", "2", "2"], n), "occupation": cycle(["2_1", "5_4_9"], n)}
    declared = (f"@attribute {name} {{{','.join(columns[name])}}}\n" for name in DUTCH)
    head = f"@relation dutch\n\n{''.join(declared)}\n@data\n\n"
    return of_columns("dutch_census.load", columns, target="occupation", head=head, header=False)


def oulad():
    """Enrolments, two of them of one student."""
    n = 9
    columns = {
        "code_module": cycle(["AAA", "BBB"], n),
        "code_presentation": ["2013J"] * n,
        "id_student": [str(11000 + row % 8) for row in range(n)],
        "gender": cycle(["M", "F"], n),
        "region": ["Wales"] * n,
        "highest_education": cycle(["HE Qualification", "No Formal quals"], n),
        "imd_band": ["90-100%"] * n,
        "age_band": ["55<="] * n,
        "num_of_prev_attempts": ["0"] * n,
        "studied_credits": ["60"] * n,
        "disability": cycle(["N", "N", "Y"], n),
        "final_result": cycle(["Pass", "Pass", "Fail"], n),
    }
    return of_columns("oulad.load", columns, number="studied_credits", target="final_result")


STUDENT = words(
    "school sex age address famsize Pstatus Medu Fedu Mjob Fjob reason guardian traveltime "
    "studytime failures schoolsup famsup paid activities nursery higher internet romantic famrel "
    "freetime goout Dalc Walc health absences G1 G2 class"
)


def _student(subject):
    draw, n = np.random.default_rng(7), 8
    columns = {name: whole(draw, 1, 5, n) for name in STUDENT}
    columns |= {name: cycle(["yes", "no"], n) for name in STUDENT[15:23]}
    texts = ("school", "address", "famsize", "Pstatus", "Mjob", "Fjob", "reason", "guardian")
    columns |= {name: cycle(["a", "b"], n) for name in texts}
    columns |= {"sex": cycle(["F", "M"], n), "class": cycle(["Low", "High"], n)}
    columns["age"] = cycle(["17", "18", "19"], n)
    path = f"student/student_{subject}_derived.csv"
    about = {"number": "absences", "target": "class", "options": {"subject": subject}}
    return of_columns("student.load", columns, path, **about)


def student_mat():
    """Mathematics, the final grade cut to a class."""
    return _student("mat")


def student_por():
    """Portuguese."""
    return _student("por")
