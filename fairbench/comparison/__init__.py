"""Finished runs against each other: which is better, which to choose, and how sure that is.

Two runs (`runs`), many (`choice`), tuned ones (`tuning_result`), any benchmark (`rank`) and the
atlas of many data sets (`atlas`). Statistics are in :mod:`fairbench.inference`, pages in
:mod:`fairbench.reporting`. Begin with `runs`.
"""
