"""Generated raw files of the collections Rdatasets and FairGround, quirks included."""

import io

import numpy as np
import pandas as pd

from tests.datasets.raw_format import cycle, of_columns, whole, words

HMDA = words(
    "rownames deny pirat hirat lvrat chist mhist phist unemp selfemp insurance condomin afam "
    "single hschool"
)


def _rows(n):
    return [str(row + 1) for row in range(n)]


def hmda_boston():
    """Yes and no; row names of R in the first column."""
    draw, n = np.random.default_rng(20), 8
    columns = {name: cycle(["no", "yes", "no"], n) for name in HMDA}
    columns |= {name: whole(draw, 1, 5, n) for name in ("chist", "mhist", "unemp")}
    columns |= {name: [f"0.{i + 1}" for i in range(n)] for name in ("pirat", "hirat", "lvrat")}
    columns |= {"rownames": _rows(n), "deny": cycle(["no", "no", "no", "yes"], n)}
    return of_columns("hmda_boston.load", columns, number="pirat", target="deny")


RESUME = words(
    "rownames job_ad_id job_city job_industry job_type job_fed_contractor job_equal_opp_employer "
    "job_ownership job_req_any job_req_communication job_req_education job_req_min_experience "
    "job_req_computer job_req_organization job_req_school received_callback firstname race gender "
    "years_college college_degree honors worked_during_school years_experience computer_skills "
    "special_skills volunteer military employment_holes has_email_address resume_quality"
)


def resume():
    """Four résumés an advertisement; empty where nothing is known."""
    draw, n = np.random.default_rng(21), 12
    columns = {name: whole(draw, 0, 2, n) for name in RESUME}
    texts = ("job_city", "job_industry", "job_type", "job_ownership", "job_req_school")
    columns |= {name: cycle(["a", "b"], n) for name in texts}
    columns |= {"rownames": _rows(n), "job_ad_id": [str(384 + row // 4) for row in range(n)]}
    columns |= {"race": cycle(["white", "black"], n), "gender": cycle(["f", "f", "m", "m"], n)}
    columns |= {"firstname": cycle(["Kristen", "Lakisha", "Jay", "Tyrone"], n)}
    columns |= {"job_fed_contractor": cycle(["", "0.0", "1.0"], n)}
    columns |= {"job_req_min_experience": cycle(["some", "", "0.5"], n)}
    columns |= {"resume_quality": cycle(["low", "high"], n)}
    columns |= {"received_callback": cycle(["0", "0", "1"], n)}
    about = {"number": "years_experience", "target": "received_callback"}
    return of_columns("resume.load", columns, **about)


LOANS = words(
    "rownames occ loanamt action msa suffolk appinc typur unit married dep emp yjob self atotinc "
    "cototinc hexp price other liq rep gdlin lines mortg cons pubrec hrat obrat fixadj term apr "
    "prop inss inson gift cosign unver review netw unem min30 bd mi old vr sch black hispan male "
    "reject approve mortno mortperf mortlat1 mortlat2 chist multi loanprc thick white"
)


def loan_application():
    """Gaps are empty; 666, 999999.375 and, of liquid assets, 1000000 are gaps as well."""
    draw, n = np.random.default_rng(22), 9
    columns = {name: whole(draw, 0, 2, n) for name in LOANS}
    columns |= {"rownames": _rows(n), "loanamt": whole(draw, 20, 900, n)}
    columns |= {"liq": cycle(["34.5", "1000000.0"], n), "term": cycle(["360.0", "999999.375"], n)}
    columns |= {"gdlin": cycle(["1", "0", "666"], n), "dep": cycle(["0.0", ""], n)}
    columns |= {"married": cycle(["1.0", "0.0", ""], n), "male": cycle(["1.0", "", "0.0"], n)}
    columns |= {"black": cycle(["0", "0", "1"], n), "hispan": cycle(["0", "1", "0"], n)}
    columns |= {"min30": cycle(["0.0", "1.0", ""], n), "approve": cycle(["1", "1", "0"], n)}
    return of_columns("loan_application.load", columns, number="loanamt", target="approve")


RECID = words(
    "rownames black alcohol drugs super married felon workprg property person priors educ rules "
    "age tserved follow durat cens ldurat"
)


def recid():
    """Ages and times in months; ``cens`` is 1 for those who did not return."""
    draw, n = np.random.default_rng(23), 8
    columns = {name: whole(draw, 0, 2, n) for name in RECID}
    columns |= {"rownames": _rows(n), "age": cycle(["299", "300", "441"], n)}
    columns |= {"cens": cycle(["1", "0"], n), "follow": ["72"] * n}
    columns |= {"durat": cycle(["72", "9", "71", "30"], n), "black": cycle(["0", "1", "1"], n)}
    return of_columns("recid.load", columns, number="tserved", target="cens")


def _parquet(columns):
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file, index=False)
    return file.getvalue()


def heart_disease():
    """Return path and content: numbers of several types, with six gaps in the archive's file."""
    n = 10
    names = words("age sex cp trestbps chol fbs restecg thalach exang oldpeak slope")
    columns = {name: np.arange(n) % 2 for name in names}
    columns |= {"age": np.arange(50, 50 + n), "oldpeak": np.arange(n) / 4}
    columns |= {"ca": [0.0, np.nan] * 5, "thal": [3.0, 6.0, 7.0, np.nan, 3.0] * 2}
    columns |= {"num": np.arange(n) % 5}
    return "fairground/heart_disease.parquet", _parquet(columns)


def south_german_credit():
    """Return path and content: texts, with blanks and dots."""
    n = 8
    names = words(
        "status duration credit_history purpose amount savings employment_duration "
        "installment_rate personal_status_sex other_debtors present_residence property age "
        "other_installment_plans housing number_credits job people_liable telephone "
        "foreign_worker credit_risk"
    )
    columns = {name: cycle(["... < 0 DM", "0<= ... < 200 DM"], n) for name in names}
    columns |= {"duration": np.arange(6, 6 + n), "amount": 100 * np.arange(1, n + 1)}
    columns |= {"age": cycle([24, 25, 26, 40], n), "foreign_worker": cycle(["no", "yes"], n)}
    columns |= {"credit_risk": cycle(["good", "good", "bad"], n)}
    return "fairground/south_german_credit.parquet", _parquet(columns)


def acs_travel_time():
    """Return path and content: whole numbers; race and sex start at 0."""
    draw, n = np.random.default_rng(24), 12
    names = words(
        "JWMNP RAC1P OCCP POVPIP JWTR SCHL MAR POWPUMA MIG AGEP DIS RELP ESP CIT PUMA SEX ST"
    )
    columns = {name: draw.integers(0, 9, size=n) for name in names}
    columns |= {"RAC1P": np.arange(n) % 3, "SEX": np.arange(n) % 2, "JWMNP": np.arange(n) % 2}
    columns |= {"POWPUMA": 70100 - np.arange(n), "ST": 20 * (np.arange(n) % 2)}
    return "fairground/folktables_acstraveltime_small.parquet", _parquet(columns)


def nursery():
    """Return path and content: texts; one class has few rows."""
    names = words("parents has_nurs form children housing finance social health class")
    columns = {name: cycle(["usual", "other"], 10) for name in names}
    columns["finance"] = cycle(["convenient", "inconv"], 10)
    columns["class"] = words("not_recom recommend very_recom priority spec_prior") * 2
    return "fairground/nursery.parquet", _parquet(columns)


def drug():
    """Return path and content: texts and scores; nicotine is in the column semer."""
    draw, n = np.random.default_rng(25), 14
    columns = {"id": np.arange(n), "age": cycle(["18-24", "25-34", "65+"], n)}
    columns |= {"gender": cycle(["Male", "Female"], n)}
    columns |= {name: cycle(["UK", "Other"], n) for name in ("education", "country")}
    columns |= {"ethnicity": cycle(["White", "White", "Black", "Asian"], n)}
    scores = words("nscore escore oscore ascore cscore impulsive ss")
    columns |= {name: draw.normal(size=n) for name in scores}
    substances = words(
        "alcohol amphet amyl benzos caff cannabis choc coke crack ecstasy heroin ketamine legalh "
        "lsd meth mushrooms semer nicotine vsa"
    )
    columns |= {name: [f"CL{row % 7}" for row in range(n)] for name in substances}
    columns |= {"nicotine": ["CL0"] * n}
    return "fairground/drug.parquet", _parquet(columns)


_MAKERS = (heart_disease, south_german_credit, acs_travel_time, nursery, drug)
PARQUET = {make.__name__: make for make in _MAKERS}
