"""The commented example of a study's file: every key, with its meaning, values and default."""

from __future__ import annotations

import inspect
import textwrap

from collegium.parameters import Setting, settings_of
from collegium.study.methods.kinds import SECTIONS
from collegium.toml_files import toml_text

_SHOWN = {
    "data.private": '"private.csv"',
    "data.public": '"public.csv"',
    "data.test": '"test.csv"',
    "data.target": '"income"',
    "privacy.column": '"privacy"',
    "privacy.levels": "{ high = 1.0, average = 2.0, low = 3.0 }",
    "privacy.delta": "1e-5",
    "method.kind": '"pate"',
    "preprocessing.kind": '"tabular"',
    "teachers.model": '"random-forest"',
    "teachers.n_teachers": "",  # its default
    "personalisation.method": '"weighting"',
    "aggregation.aggregator": '"confident"',
    "student.model": '"random-forest"',
}
"""Keys that are no comments in the example, with their values as TOML."""


def example_config(name: str = "study", schema: str | None = None) -> str:
    """Write the commented example.

    ``schema``: name of a file with the JSON Schema beside it, by which editors complete and check
        keys.
    """
    lines = [
        f"#:schema {schema}"
        if schema
        else "# For help in an editor: `collegium init --all-keys --schema`.",
        "# A Collegium study: `collegium plan` shows what it would cost, `collegium run` runs it.",
        "# Keys that are commented out show their default, or an example where there is none.",
    ]
    used = {"study.name": toml_text(name), **_SHOWN}
    for section, cls in SECTIONS.items():
        lines += ["", f"[{section}]  # {inspect.getdoc(cls)}"]
        for key, about in settings_of(cls).items():
            lines += _comment(about)
            default = about.example if about.default is None else toml_text(about.default)
            value = used.get(f"{section}.{key}")
            value = default if value == "" else value
            lines.append(f"{key} = {value}" if value else f"# {key} = {default}")
    return "\n".join(lines) + "\n"


def _comment(about: Setting) -> list[str]:
    text = about.meaning + (f" One of: {', '.join(about.choices)}." if about.choices else "")
    wrapped = textwrap.wrap(
        text, 100, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
    return ["", *wrapped]
