"""fairbench dossier: what a rule or a format asks to be told of a model, each with its measurement.

Begin with `verb.dossiers`, the function of each dossier; `documents.pack_of` reads the laws and
formats of the folder `rules`, and `documents.dossier` puts what they ask for before what was
measured.
"""
