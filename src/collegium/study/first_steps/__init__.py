"""The first steps of a study: files are looked at, the rest is guessed or asked, and a short file written.

Of the private records only the header is read, unless the names of levels are asked for. Everything that is
guessed is said, with what it was guessed from, and can be said otherwise.
"""
