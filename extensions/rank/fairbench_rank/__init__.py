"""fairbench rank: which methods of a benchmark are better, how sure that is, and what is open.

Begin with `rank`, the verb, the function and the page of any table of scores. `leaderboard` writes
the page of finished runs, `resolve` adds splits to a sweep where they tell approaches apart.
"""
