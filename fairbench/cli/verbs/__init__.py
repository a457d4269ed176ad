"""What ``fairbench VERB`` can do: each file here is a verb, and is found by its name.

A file's docstring is what ``--help`` says of the verb, its first line what ``fairbench --help``
says. It defines ``COMMAND``, or ``COMMANDS`` by name where the verb has several parts, such as
``fairbench store ls``. A verb that reads its words itself defines ``main(words)`` instead. Verbs of
extensions are modules of theirs, made in the same way.
"""
