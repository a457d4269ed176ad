"""Tiny files in each data set's raw format, quirks included, and ways of spoiling them."""

import csv
import io
from dataclasses import dataclass, field, replace

import numpy as np


@dataclass(frozen=True)
class Raw:
    """A task's raw files, and what the generic tests need to know of the first of them.

    `rows` are those a loader keeps; `number` and `target` are columns of the first file by name;
    `header` and `separator` say how it is written, `skipped` lines come before the table, and
    `wide` says that columns the archive's file does not have are refused, and `gaps` that an empty
    `number` is no fault.
    """

    loader: str
    files: dict[str, bytes]
    rows: int
    names: tuple[str, ...]
    number: str | None
    target: str | None
    header: bool = True
    separator: str = ","
    skipped: int = 0
    wide: bool = True
    gaps: bool = False
    options: dict[str, object] = field(default_factory=dict)

    @property
    def path(self):
        """Return the path of the first file."""
        return next(iter(self.files))

    def lines(self):
        """Return what comes before the table, and the table's lines."""
        lines = self.files[self.path].decode().replace("\r\n", "\n").split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        return lines[: self.skipped], lines[self.skipped :]

    def split(self, line):
        """Return the cells of a line."""
        return next(csv.reader([line], delimiter=self.separator))

    def join(self, cells):
        """Return the line of some cells, quoted where a cell holds the separator."""
        line = io.StringIO()
        csv.writer(line, delimiter=self.separator, lineterminator="").writerow(cells)
        return line.getvalue()

    def with_lines(self, head, lines):
        """Return the files with the first one's lines replaced."""
        return {**self.files, self.path: ("\n".join([*head, *lines]) + "\n").encode()}

    def with_cell(self, row, column, value):
        """Return the files with one cell of the first one changed (row 1 is the first data row)."""
        head, lines = self.lines()
        place = row if self.header else row - 1
        cells = self.split(lines[place])
        for at, name in enumerate(self.names):
            if name == column:
                cells[at] = value
        lines[place] = self.join(cells)
        return self.with_lines(head, lines)


def words(text):
    """Return the words of a text."""
    return tuple(text.split())


def choice(draw, values, n):
    return [values[i] for i in draw.integers(len(values), size=n)]


def cycle(values, n):
    return [values[i % len(values)] for i in range(n)]


def whole(draw, low, high, n):
    return [str(v) for v in draw.integers(low, high, size=n)]


def table(columns, separator=",", *, header=True, end="\n"):
    """Return columns of strings as delimited text."""
    lines = [separator.join(columns)] if header else []
    lines += [separator.join(row) for row in zip(*columns.values(), strict=True)]
    return end.join(lines) + end


ADULT = words(
    "age workclass fnlwgt education education-num marital-status occupation relationship race "
    "sex capital-gain capital-loss hours-per-week native-country income"
)


def _adult_part(draw, n, period):
    columns = {
        "age": whole(draw, 17, 80, n),
        "workclass": cycle(["Private", "State-gov", "?"], n),
        "fnlwgt": whole(draw, 10_000, 900_000, n),
        "education": cycle(["Bachelors", "HS-grad"], n),
        "education-num": cycle(["13", "9"], n),
        "marital-status": cycle(["Divorced", "Never-married"], n),
        "occupation": cycle(["Sales", "Tech-support"], n),
        "relationship": cycle(["Husband", "Wife"], n),
        "race": cycle(["White", "Black", "Other"], n),
        "sex": cycle(["Male", "Female"], n),
        "capital-gain": ["0"] * n,
        "capital-loss": ["0"] * n,
        "hours-per-week": ["40"] * n,
        "native-country": cycle(["United-States", "Cuba"], n),
        "income": [f"{value}{period}" for value in cycle(["<=50K", ">50K", "<=50K", ">50K"], n)],
    }
    return table(columns, ", ", header=False)


def adult():
    """Commas and blanks, ``?`` for missing, a first line that is no row, labels with periods."""
    draw = np.random.default_rng(0)
    return Raw(
        loader="adult.load",
        files={
            "adult/adult.data": (_adult_part(draw, 12, "") + "\n").encode(),
            "adult/adult.test": (
                "|1x3 Cross validator\n" + _adult_part(draw, 6, ".") + "\n"
            ).encode(),
        },
        rows=12,
        names=ADULT,
        number="hours-per-week",
        target="income",
        header=False,
    )


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
    content = table({name: columns[name] for name in GERMAN}, " ", header=False).encode()
    return Raw(
        loader="german.load",
        files={"german/german.data": content},
        rows=n,
        names=GERMAN,
        number="credit_amount",
        target="credit",
        header=False,
        separator=" ",
    )


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
    return Raw(
        loader=loader,
        files={path: ("\n".join(lines) + "\n").encode()},
        rows=5,
        names=names,
        number="age",
        target="two_year_recid",
    )


def compas():
    """Repeated headers, quoted commas, empty cells, and names of persons."""
    return _compas("compas/compas-scores-two-years.csv", "compas.load", COMPAS)


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
    return Raw(
        loader="bank.load",
        files={"bank/bank-additional-full.csv": table(columns, ";").encode()},
        rows=8,
        names=BANK,
        number="euribor3m",
        target="y",
        separator=";",
    )


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
    return Raw(
        loader="insurance.load",
        files={"insurance/insurance.csv": table(columns).encode()},
        rows=n,
        names=tuple(columns),
        number="charges",
        target=None,
    )


def ihdp():
    """Numbers without a header; x14 is coded 1 and 2."""
    draw, n = np.random.default_rng(5), 10
    names = ("treatment", "y_factual", "y_cfactual", "mu0", "mu1", *(f"x{i}" for i in range(1, 26)))
    columns = {name: [f"{value:.4f}" for value in draw.normal(size=n)] for name in names}
    columns |= {"treatment": cycle(["0", "1", "0"], n), "x7": cycle(["0", "1"], n)}
    columns |= {f"x{i}": cycle(["1", "0"], n) for i in range(8, 26)} | {"x14": cycle(["1", "2"], n)}
    return Raw(
        loader="ihdp.load",
        files={"ihdp/ihdp_npci_1.csv": table(columns, header=False).encode()},
        rows=n,
        names=names,
        number="x3",
        target=None,
        header=False,
    )


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
    return Raw(
        loader="ricci.load",
        files={"ricci/ricci.csv": table(columns).encode()},
        rows=6,
        names=tuple(columns),
        number="Combine",
        target=None,
    )


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
    content = f"\ufeff{codes}\n{table(columns)}"
    return Raw(
        loader="credit_default.load",
        files={"credit_default/default_of_credit_card_clients.csv": content.encode()},
        rows=n,
        names=names,
        number="BILL_AMT3",
        target=names[-1],
        skipped=1,
    )


DUTCH = words(
    "sex age household_position household_size prev_residence_place citizenship country_birth "
    "edu_level economic_status cur_eco_activity Marital_status occupation"
)


def dutch_census():
    """Weka's ARFF: attribute declarations, a line ``@data``, then rows of codes."""
    n = 10
    columns = {name: cycle([str(i), str(i + 1)], n) for i, name in enumerate(DUTCH)}
    columns |= {"sex": cycle(["1", "2", "2"], n), "occupation": cycle(["2_1", "5_4_9"], n)}
    head = ["@relation dutch", ""]
    head += [f"@attribute {name} {{{','.join(columns[name])}}}" for name in DUTCH]
    head += ["", "@data", ""]
    body = table(columns, header=False)
    return Raw(
        loader="dutch_census.load",
        files={"dutch_census/dutch_census_2001.arff": ("\n".join(head) + "\n" + body).encode()},
        rows=n,
        names=DUTCH,
        number=None,
        target="occupation",
        header=False,
        skipped=len(head),
    )


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
    return Raw(
        loader="oulad.load",
        files={"oulad/oulad_clean_derived.csv": table(columns).encode()},
        rows=n,
        names=tuple(columns),
        number="studied_credits",
        target="final_result",
    )


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
    return Raw(
        loader="student.load",
        files={f"student/student_{subject}_derived.csv": table(columns).encode()},
        rows=n,
        names=STUDENT,
        number="absences",
        target="class",
        options={"subject": subject},
    )


def student_mat():
    """Mathematics, the final grade cut to a class."""
    return _student("mat")


def student_por():
    """Portuguese."""
    return _student("por")


def communities():
    """No header, CRLF, ``?`` for missing."""
    from datasets.communities import _COLUMNS

    draw, n = np.random.default_rng(8), 10
    columns = {name: [f"{value:.2f}" for value in draw.random(n)] for name in _COLUMNS}
    columns |= {"state": whole(draw, 1, 50, n), "fold": whole(draw, 1, 10, n)}
    columns |= {"county": ["?"] * n, "community": ["?"] * n}
    columns |= {"communityname": [f"Town{row}" for row in range(n)]}
    columns |= {"LemasSwornFT": cycle(["?", "0.5"], n), "OtherPerCap": cycle(["0.2", "0.3"], n)}
    columns["OtherPerCap"][3] = "?"
    columns["racepctblack"] = cycle(["0.2", "0.21", "0.1"], n)
    return Raw(
        loader="communities.load",
        files={"communities/communities.data": table(columns, header=False, end="\r\n").encode()},
        rows=n,
        names=_COLUMNS,
        number="population",
        target=None,
        header=False,
    )


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
    return Raw(
        loader="law_school.gpa",
        files={"law_school/law_school_gpa_reconstructed.csv": table(columns).encode()},
        rows=n,
        names=tuple(columns),
        number="lsat",
        target=None,
    )


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
    return Raw(
        loader="law_school.kusner",
        files={"law_school/law_data.csv": table(columns).encode()},
        rows=n,
        names=tuple(columns),
        number="UGPA",
        target=None,
    )


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
    return Raw(
        loader="law_school_bar.bar",
        files={"law_school/bar_pass_prediction.csv": table(columns).encode()},
        rows=n,
        names=BAR,
        number=None,
        target="pass_bar",
    )


def _bar_cut(loader, path, race, numbers):
    n = 8
    columns = {name: cycle(["9.0", "7.0"], n) for name in (*STUDIES, "tier")}
    columns |= {"male": cycle(numbers[::-1], n), **race}
    columns["pass_bar"] = cycle([numbers[0], numbers[1], numbers[0]], n)
    return Raw(
        loader=f"law_school_bar.{loader}",
        files={path: table(columns).encode()},
        rows=n,
        names=tuple(columns),
        number="lsat",
        target="pass_bar",
    )


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
    return Raw(
        loader="twins.load",
        files=files,
        rows=n - 1,
        names=tuple(weights),
        number="dbirwt_0",
        target=None,
        wide=False,
    )


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
    columns |= {"tobacco": cycle(["", "1.0", "0.0"], n)}
    columns["crace"] = [value for pair in range(6) for value in ("12"[pair % 2],) * 2]
    return Raw(
        loader="twins.under_2000g",
        files={"twins/twins_under2000g_long_derived.csv": table(columns).encode()},
        rows=n - 2,
        names=TWINS,
        number="wt",
        target=None,
    )


def _acs(loader, path, names, target, options):
    draw, n = np.random.default_rng(12), 12
    columns = {name: whole(draw, 0, 9, n) for name in names}
    if "row" in columns:
        columns["row"] = [str(400_000 * row // 3) for row in range(n)]
    shift = 0 if "row" in names else 1
    columns["RAC1P"] = cycle([str(shift), str(shift + 1)], n)
    columns |= {"SEX": cycle(["1", "2", "2"], n), "AGEP": whole(draw, 17, 94, n)}
    columns[target] = cycle(["0", "1", "0"], n)
    if "group" in columns:
        columns["group"] = cycle(["0", "1"], n)
    return Raw(
        loader=loader,
        files={path: table(columns).encode()},
        rows=n,
        names=names,
        number="AGEP",
        target=None,
        options=options,
    )


def acs_income():
    """Whole-number codes; race recoded to start at 0; the target first."""
    names = words("row PINCP RAC1P SCHL POBP SEX OCCP RELP COW MAR WKHP AGEP")
    path = "acs/acs_income_us2018_20pct_derived.csv"
    return _acs("acs.national", path, names, "PINCP", {"task": "income"})


def acs_mobility():
    """The same for mobility, where income is a feature of more than 16 bits."""
    names = words(
        "row MIG RAC1P DEAR SEX ESP DEYE MIL AGEP DIS ANC SCHL ESR RELP NATIVITY COW PINCP DREM "
        "MAR JWMNP WKHP GCL CIT"
    )
    path = "acs/acs_mobility_us2018_20pct_derived.csv"
    raw = _acs("acs.national", path, names, "MIG", {"task": "mobility"})
    return replace(raw, files=raw.with_cell(3, "PINCP", "123456"))


def acs_public_coverage():
    """The same for public coverage."""
    names = words(
        "row PUBCOV RAC1P DEAR SEX ESP DEYE MIL AGEP DIS ANC SCHL MIG ESR NATIVITY FER PINCP DREM "
        "MAR CIT"
    )
    path = "acs/acs_public_coverage_us2018_20pct_derived.csv"
    return _acs("acs.national", path, names, "PUBCOV", {"task": "public_coverage"})


def acs_employment_fu():
    """FairlyUncertain's sample: race 1 and 2, and the group beside it."""
    names = words(
        "AGEP SCHL MAR RELP DIS ESP CIT MIG MIL ANC NATIVITY DEAR DEYE DREM SEX RAC1P "
        "ESR_employed group"
    )
    path = "acs/acs_employment_ny2018_10pct_derived.csv"
    return _acs("acs.employment_fu", path, names, "ESR_employed", {})


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
    return Raw(
        loader="acs_pums.load",
        files={"acs/2018/1-Year/psam_p36.csv": table(columns).encode()},
        rows=n,
        names=PUMS,
        number="AGEP",
        target=None,
        options={"task": "employment"},
        wide=False,
        gaps=True,
    )


RAW = {
    make.__name__: make
    for make in (
        *(adult, german, compas, compas_violent, bank, insurance, ihdp, ricci, credit_default),
        *(dutch_census, oulad, student_mat, student_por, communities, law_school),
        *(law_school_kusner, law_school_bar, law_school_survey, law_school_black_white, twins),
        *(twins_under2000g, acs_income, acs_mobility, acs_public_coverage, acs_employment_fu, acs),
    )
}
