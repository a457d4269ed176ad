"""Communities and crime (Redmond 2009): violent crimes per population in towns of the USA."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fairbench.components.datasets.raw_files import raw_file
from fairbench.core.errors import check_share
from fairbench.data.columns import at_least, one_of, scaled
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable

DATASHEET = Datasheet(
    title="Communities and crime (Redmond 2009; Redmond, Baveja 2002)",
    source="UCI Machine Learning Repository, data set 183, DOI 10.24432/C53W3X",
    licence="CC BY 4.0",
    paper_differences="As in FairlyUncertain, without the columns with a missing value and the "
    "five that are not predictors, and with one for whether racepctblack exceeds 0.2; 100 columns. "
    "The paper's target has the shape (n, 1), so its negative log likelihood is over an n x n "
    "matrix; here it has n values. The source scales every value to [0, 1], so `target_scale` "
    "changes nothing. In `communities_high_crime`, label 1 marks the 30 % of towns with the most "
    "crimes, our own cut.",
    criticism="Rows are towns, and groups are towns by their share of Black residents: a fairness "
    "measure compares places. The source clips values at three standard deviations, so the values "
    "0 and 1 are frequent. Crimes are those reported to the police. Whole states are missing, as "
    "they have no counts of rape. The census figures are of 1990, the crimes of 1995.",
)
TITLES = {
    "communities": "Communities and crime: violent crimes per population (Redmond 2009)",
    "communities_high_crime": "Communities and crime: whether a town is among the 30 % with the "
    "most violent crimes (Redmond 2009)",
}
COMMUNITIES = raw_file("communities/communities.data")
_ATTRIBUTES = """
state county community communityname fold population householdsize racepctblack racePctWhite
racePctAsian racePctHisp agePct12t21 agePct12t29 agePct16t24 agePct65up numbUrban pctUrban
medIncome pctWWage pctWFarmSelf pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc
whitePerCap blackPerCap indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov
PctPopUnderPov PctLess9thGrade PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu
PctEmplProfServ PctOccupManu PctOccupMgmtProf MalePctDivorce MalePctNevMarr FemalePctDiv
TotalPctDiv PersPerFam PctFam2Par PctKids2Par PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids
PctWorkMom NumIlleg PctIlleg NumImmig PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10
PctRecentImmig PctRecImmig5 PctRecImmig8 PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell
PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous PersPerRentOccHous
PctPersOwnOccup PctPersDenseHous PctHousLess3BR MedNumBR HousVacant PctHousOccup PctHousOwnOcc
PctVacantBoarded PctVacMore6Mos MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart
OwnOccMedVal OwnOccHiQuart RentLowQ RentMedian RentHighQ MedRent MedRentPctHousInc
MedOwnCostPctInc MedOwnCostPctIncNoMtg NumInShelters NumStreet PctForeignBorn PctBornSameState
PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps
LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop PolicReqPerOffic PolicPerPop
RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor
OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens PctUsePubTrans PolicCars
PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn PolicBudgPerPop
ViolentCrimesPerPop
"""
_COLUMNS = tuple(_ATTRIBUTES.split())
_NO_PREDICTORS = ("state", "county", "community", "communityname", "fold")
_TARGET = "ViolentCrimesPerPop"
_MANY = "racepctblack_above_0.2"


def load(
    archive: Archive,
    *,
    incomplete_columns: str = "drop",
    target_scale: str = "minmax",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the 1994 communities, grouped by whether racepctblack is over 0.2.

    Parameters
    ----------
    archive : where the raw file is found.
    incomplete_columns : ``drop`` the 23 predictors with missing values (22 of them in 84 % of the
        rows), ``keep`` them as they are, or ``impute`` their median over all rows.
    target_scale : ``minmax`` scales by the minimum and maximum of all rows; or ``none``.
    keep_sensitive : keep racepctblack, and whether it exceeds 0.2, among the features.
    """
    one_of("incomplete_columns", incomplete_columns, ("drop", "keep", "impute"))
    raw = RawTable.read(archive, COMMUNITIES, names=_COLUMNS)
    predictors = [name for name in _COLUMNS if name not in (*_NO_PREDICTORS, _TARGET)]
    for name in ("state", "fold"):
        raw.number(name)
    features = pd.DataFrame({name: raw.number(name, missing="?") for name in predictors})
    share = raw.number("racepctblack")
    if incomplete_columns == "drop":
        features = features.dropna(axis=1)
    elif incomplete_columns == "impute":
        features = features.fillna(features.median())
    if keep_sensitive:
        features = pd.concat([features, (share > 0.2).rename(_MANY)], axis=1)
    else:
        features = features.drop(columns="racepctblack")
    return raw.dataset(
        "communities",
        features,
        {"race": at_least(share, 0.2, "racepctblack", strict=True)},
        scaled(raw.number(_TARGET), target_scale),
        privileged={"race": "racepctblack <= 0.2"},
        task=Task.REGRESSION,
        target_name="violent crimes per population",
    )


def high_crime(
    archive: Archive,
    *,
    share: float = 0.3,
    incomplete_columns: str = "drop",
    keep_sensitive: bool = True,
) -> Dataset:
    """Return the communities; label 1 marks those with the most violent crimes.

    Parameters
    ----------
    archive : where the raw file is found.
    share : the share of communities that have label 1; ties at the cut have it too.
    incomplete_columns, keep_sensitive : as in :func:`load`.
    """
    check_share("dataset.share", share)
    data = load(archive, incomplete_columns=incomplete_columns, keep_sensitive=keep_sensitive)
    high = data.target >= data.target.quantile(1 - share)
    return replace(
        data,
        name="communities_high_crime",
        task=Task.BINARY,
        target=high.astype(int).rename("high_crime"),
        target_name="violent crimes per population",
        positive_label="high",
        favourable=0,
    )
