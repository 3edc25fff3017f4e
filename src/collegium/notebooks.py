"""Objects that a notebook shows as tables: what Jupyter, VS Code and Colab ask an object for."""

from __future__ import annotations

from importlib import import_module

_WRITER = "collegium.report.notebook"


class InNotebooks:
    """Is shown in a notebook by the rows that its terminal and its pages show.

    Who writes them lies above what is written, so that it is looked up by name when it is asked.
    """

    def _repr_html_(self) -> str:
        written: str = import_module(_WRITER).html_of(self)
        return written
