"""Generated raw files of the data sets of Le Quy et al.'s survey, quirks included."""

import numpy as np

from tests.datasets.raw_format import cycle, of_columns, whole, words


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
