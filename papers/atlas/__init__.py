"""The atlas: whether claims of the literature hold across many data sets.

`approaches.parquet` has what every approach did on every split. `python -m papers.atlas.page`
writes its leaderboard with what becomes of the claims, and `docs/atlas.md`. `claims` judges each
claim, `thresholds` compares interventions with thresholds for each group, `multilevel` tells which
facts about a data set explain differences, and `seeds` whether another seed's splits say the same.
"""
