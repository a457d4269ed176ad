"""fairbench tune, alternative and choose: search for a better model, corrected for the search.

Begin with `tuning.Search`, which proposes trials, and keeps them so that it resumes. `goals` has
what is minimised, `corrected` the intervals of what was chosen of many, `gains` those of what it
gains, `alternative` how it is judged on test rows, `choice` the choice among finished runs, `pages`
what is printed, the modules that end in `_verb` the commands.
"""
