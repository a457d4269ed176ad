"""Every task's generated raw files, by the task's name."""

from tests.datasets import raw_desk, raw_large, raw_papers, raw_schools, raw_survey
from tests.datasets.raw_papers import SECRETS

__all__ = ["RAW", "SECRETS"]

RAW = {
    make.__name__: make
    for make in (
        raw_papers.adult,
        raw_papers.german,
        raw_papers.compas,
        raw_papers.compas_violent,
        raw_papers.compas_zafar,
        raw_papers.bank,
        raw_papers.insurance,
        raw_papers.ihdp,
        raw_papers.ricci,
        raw_survey.credit_default,
        raw_survey.dutch_census,
        raw_survey.oulad,
        raw_survey.student_mat,
        raw_survey.student_por,
        raw_schools.communities,
        raw_schools.law_school,
        raw_schools.law_school_kusner,
        raw_schools.law_school_bar,
        raw_schools.law_school_survey,
        raw_schools.law_school_black_white,
        raw_large.twins,
        raw_large.twins_under2000g,
        raw_large.acs_income,
        raw_large.acs_mobility,
        raw_large.acs_public_coverage,
        raw_large.acs_employment_fu,
        raw_large.acs,
        raw_desk.hmda_boston,
        raw_desk.resume,
        raw_desk.loan_application,
        raw_desk.recid,
    )
}
