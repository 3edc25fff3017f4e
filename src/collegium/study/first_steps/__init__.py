"""The first steps of a study: roles of files and columns are inferred, the rest is asked.

Of the private records only the header is read. Everything inferred is shown with its source, and an option
overrules it. What the file says is checked by the readers of every study: its keys here, its records by
``collegium plan``.
"""
