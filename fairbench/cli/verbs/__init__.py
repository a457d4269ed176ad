"""What ``fairbench VERB`` can do: a verb is a file here, or a class beside another verb.

Its docstring is what ``--help`` says of the verb, the first line what ``fairbench --help`` says;
`fairbench.cli.main` lists the verbs, and which are beside another. It defines ``COMMAND``, or
``COMMANDS`` by name where the verb has several parts, such as ``fairbench store ls``. A verb that
reads its words itself defines ``main(words)`` instead. Verbs of extensions are modules of theirs,
made in the same way.
"""
