"""What ``python audit.py --help`` says of labelling."""

COMMANDS = ("next", "label", "report")

USAGE = """\
Label only what matters: which rows to label next, and why

python audit.py next PREDICTIONS state=audit.json OPTION=VALUE ...    start; OPTIONs as above
python audit.py next state=audit.json n=5          five rows, each with the reason for its group
python audit.py label state=audit.json 17=1 18=0   store labels of rows 17 and 18
python audit.py label state=audit.json row=17 label=1
python audit.py label state=audit.json labels=new.csv      columns row and label
python audit.py label state=audit.json             show rows one after the other and ask; q stops
python audit.py report state=audit.json            the report, with the labels so far

state=audit.json    all of it, in plain JSON: a kill, or a second person, loses no label
n=1                 how many rows to name
question=worst      which group is least accurate (the default)
question=gap        whether the accuracy of any two groups differs by more than epsilon
question=accuracy   how accurate each group is
question=calibration  whose scores are furthest from how often predictions are right
strategy=top_two    or thompson, bayesian_ucb, epsilon_greedy, random_arm (any group, equally
                    often), random (any row)
by=[sex,race]       rows are chosen among the groups of these columns; group='s by default
part=1/2            the first of two people who label at the same time, on different rows
overwrite=true      replaces labels that are there

Rows count from 1. Groups are chosen by what is known (each gets at least half of an equal share),
rows within a group at random: so the report's intervals hold. Label what next names, and all of
it; a row you cannot tell the label of gets ?, such as 17=?. Question and strategy can be changed at
any time. The score and the decision are not shown, lest they sway you.

Example, from no labels at all:
python audit.py next loans.csv state=audit.json target=repaid score=score 'group=[sex,race]' n=3
python audit.py label state=audit.json
python audit.py report state=audit.json
"""
