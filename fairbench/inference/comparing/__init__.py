"""Many methods, runs or trials against each other: which differ, which may be the best.

Begin with `sign_flips` (all pairs of methods), `new_tasks` (which is near the best elsewhere) and
`selection` (the one that was chosen because its value was smallest).
"""
