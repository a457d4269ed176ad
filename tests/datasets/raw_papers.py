"""Generated raw files of the papers' smaller data sets, quirks included."""

from dataclasses import replace

import numpy as np

from tests.datasets.raw_format import Raw, cycle, of_columns, table, whole, words

ADULT = words(
    "age workclass fnlwgt education education-num marital-status occupation relationship race "
    "sex capital-gain capital-loss hours-per-week native-country income"
)


def _adult_part(draw, n, period):
    columns = {name: cycle(["Sales", "Tech-support"], n) for name in ADULT}
    columns |= {"age": whole(draw, 17, 80, n), "fnlwgt": whole(draw, 10_000, 900_000, n)}
    columns |= {"workclass": cycle(["Private", "State-gov", "?"], n)}
    columns |= {"education-num": cycle(["13", "9"], n), "hours-per-week": ["40"] * n}
    columns |= {"capital-gain": ["0"] * n, "capital-loss": ["0"] * n}
    columns |= {"race": cycle(["White", "Black", "Other"], n), "sex": cycle(["Male", "Female"], n)}
    columns |= {"native-country": cycle(["United-States", "Cuba"], n)}
    columns |= {"income": cycle([f"<=50K{period}", f">50K{period}"], n)}
    return table(columns, ", ", header=False)


def adult():
    """Commas and blanks, ``?`` for missing, a first line that is no row, labels with periods."""
    draw = np.random.default_rng(0)
    train, test = _adult_part(draw, 12, ""), _adult_part(draw, 6, ".")
    files = {
        "adult/adult.data": f"{train}\n",
        "adult/adult.test": f"|1x3 Cross validator\n{test}\n",
    }
    files = {path: text.encode() for path, text in files.items()}
    about = {"number": "hours-per-week", "target": "income", "header": False}
    return Raw("adult.load", files, 12, ADULT, **about)


GERMAN = words(
    "status month credit_history purpose credit_amount savings employment "
    "investment_as_income_percentage personal_status other_debtors residence_since property "
    "age installment_plans housing number_of_credits skill_level people_liable_for telephone "
    "foreign_worker credit"
)


def german():
    """Blank-separated codes without a header."""
    draw, n = np.random.default_rng(1), 10
    coded = {"status": 1, "credit_history": 3, "purpose": 4, "savings": 6, "employment": 7}
    coded |= {"other_debtors": 10, "property": 12, "installment_plans": 14, "housing": 15}
    coded |= {"skill_level": 17, "telephone": 19, "foreign_worker": 20}
    columns = {name: whole(draw, 1, 5, n) for name in GERMAN}
    columns |= {name: cycle([f"A{code}1", f"A{code}2"], n) for name, code in coded.items()}
    columns["personal_status"] = cycle(["A91", "A92", "A93", "A94"], n)
    columns["age"] = cycle(["24", "25", "26", "60"], n)
    columns["credit"] = cycle(["1", "1", "2"], n)
    about = {"number": "credit_amount", "target": "credit"}
    return of_columns("german.load", columns, header=False, separator=" ", **about)


COMPAS = words(
    "id name first last compas_screening_date sex dob age age_cat race juv_fel_count "
    "decile_score juv_misd_count juv_other_count priors_count days_b_screening_arrest "
    "c_jail_in c_jail_out c_case_number c_offense_date c_arrest_date c_days_from_compas "
    "c_charge_degree c_charge_desc is_recid r_case_number r_charge_degree r_days_from_arrest "
    "r_offense_date r_charge_desc r_jail_in r_jail_out violent_recid is_violent_recid "
    "vr_case_number vr_charge_degree vr_offense_date vr_charge_desc type_of_assessment "
    "decile_score score_text screening_date v_type_of_assessment v_decile_score v_score_text "
    "v_screening_date in_custody out_custody priors_count start end event two_year_recid"
)

# Never to be found in a Dataset: made up here, real in the archive's files.
SECRETS = ("jane roe", "roe", "1980-01-31", "13099999CF10A", "13088888CF10A")


def _compas(path, loader, names):
    draw, n = np.random.default_rng(2), 10
    rows = []
    priors, labels = whole(draw, 0, 9, n), cycle(["0", "1"], n)
    for i in range(n):
        cell = dict.fromkeys(names, "0")
        cell |= {"name": "jane roe", "first": "jane", "last": "roe", "dob": "1980-01-31"}
        cell |= {"c_case_number": "13099999CF10A", "r_case_number": "13088888CF10A"}
        cell |= {"sex": ("Male", "Female")[i % 2], "age": str(20 + i), "race": "Caucasian"}
        cell |= {"age_cat": ("Less than 25", "25 - 45", "Greater than 45")[i % 3]}
        cell |= {"c_charge_degree": "FM"[i % 2], "c_charge_desc": '"Theft, petit"'}
        cell |= {"score_text": "Low", "v_score_text": "Low", "priors_count": priors[i]}
        cell |= {"two_year_recid": labels[i], "days_b_screening_arrest": "-1"}
        rows.append(cell)
    # One row for each reason to leave a defendant out.
    rows[5]["days_b_screening_arrest"] = ""
    rows[6]["days_b_screening_arrest"] = "31"
    rows[7]["is_recid"] = "-1"
    rows[8]["c_charge_degree"] = "O"
    rows[9]["c_charge_desc"] = ""
    lines = [",".join(names), *(",".join(row[name] for name in names) for row in rows)]
    files = {path: ("\n".join(lines) + "\n").encode()}
    return Raw(loader, files, 5, names, number="age", target="two_year_recid")


def compas():
    """Repeated headers, quoted commas, empty cells, and names of persons."""
    return _compas("compas/compas-scores-two-years.csv", "compas.load", COMPAS)


def compas_zafar():
    """The same file, of which the row without a charge description is read, too."""
    return replace(compas(), loader="compas_zafar.load", rows=6, number="priors_count")


def compas_violent():
    """The same with ``two_year_recid`` repeated as well."""
    names = (*COMPAS, "two_year_recid")
    return _compas("compas/compas-scores-two-years-violent.csv", "compas.violent", names)


BANK = words(
    "age job marital education default housing loan contact month day_of_week duration campaign "
    "pdays previous poutcome emp.var.rate cons.price.idx cons.conf.idx euribor3m nr.employed y"
)


def bank():
    """Semicolons, quoted texts and headers, ``unknown`` for missing."""
    draw, n = np.random.default_rng(3), 12
    text = {name: ["a", "b"] for name in BANK[1:10]} | {"poutcome": ["failure", "success"]}
    text |= {"marital": ["married", "single", "divorced"], "y": ["no", "yes"]}
    text |= {"default": ["no", "no", "unknown"]}
    columns = {
        f'"{name}"': [f'"{value}"' for value in cycle(text[name], n)]
        if name in text
        else whole(draw, 1, 90, n)
        for name in BANK
    }
    columns['"age"'] = cycle(["39", "40", "41"], n)
    return of_columns("bank.load", columns, rows=8, number="euribor3m", target="y", separator=";")


def insurance():
    """A plain table."""
    draw, n = np.random.default_rng(4), 8
    columns = {
        "age": whole(draw, 18, 60, n),
        "sex": cycle(["female", "male"], n),
        "bmi": ["27.9"] * n,
        "children": whole(draw, 0, 4, n),
        "smoker": cycle(["no", "no", "yes"], n),
        "region": cycle(["southwest", "southeast", "northwest", "northeast"], n),
        "charges": [str(1000.5 * (row + 1)) for row in range(n)],
    }
    return of_columns("insurance.load", columns, number="charges")


def ihdp():
    """Numbers without a header; x14 is coded 1 and 2."""
    draw, n = np.random.default_rng(5), 10
    names = ("treatment", "y_factual", "y_cfactual", "mu0", "mu1", *(f"x{i}" for i in range(1, 26)))
    columns = {name: [f"{value:.4f}" for value in draw.normal(size=n)] for name in names}
    columns |= {"treatment": cycle(["0", "1", "0"], n), "x7": cycle(["0", "1"], n)}
    columns |= {f"x{i}": cycle(["1", "0"], n) for i in range(8, 26)} | {"x14": cycle(["1", "2"], n)}
    return of_columns("ihdp.load", columns, number="x3", header=False)


def ricci():
    """A conversion of the archive's text, without a pass column."""
    oral, written = [90.0, 60.0, 80.0, 50.0, 75.0, 70.0], [80, 60, 90, 70, 80, 70]
    scores = [0.6 * w + 0.4 * o for o, w in zip(oral, written, strict=True)]
    columns = {
        "Position": cycle(["Captain", "Lieutenant"], 6),
        "Oral": [str(score) for score in oral],
        "Written": [str(score) for score in written],
        "Race": cycle(["W", "B", "H"], 6),
        "Combine": [f"{score:g}" for score in scores],
    }
    return of_columns("ricci.load", columns, number="Combine")
