"""fairbench watch: predictions that keep coming, and alarms that are seldom false.

Begin with `alarms.look`, which is one look at the file; `sequences` has the intervals that hold no
matter how often you look, `verb` the command.
"""
