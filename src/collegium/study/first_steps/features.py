"""The features of tables: which columns are left out, and which text is numbers with gaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from collegium.checks import listed
from collegium.data.column_types import NUMBER
from collegium.errors import InputError
from collegium.study.first_steps import inference
from collegium.study.first_steps.look import PRIVATE, PUBLIC, unlike
from collegium.study.first_steps.prompts import Draft


def choose_features(draft: Draft, roles: Iterable[str | None]) -> dict[str, Any]:
    """Choose the features; return the keys of [data] that describe them.

    ``roles``: columns of another meaning: target, level, owner.
    """
    files, public = draft.files, draft.files.public.name
    others = set(roles)
    excluded = dict.fromkeys(name for name in draft.given.exclude if name not in others)

    def leave_out(names: Iterable[str], why: str) -> None:
        new = [name for name in names if name not in {*others, *excluded}]
        excluded.update(dict.fromkeys(new))
        if new:
            draft.prompts.tell(f"data.exclude: {listed(map(repr, new), 8)}; {why}")

    def left() -> list[str]:
        return [name for name in files.common if name not in {*others, *excluded}]

    everywhere = dict.fromkeys(name for role in files.records for name in files.columns(role))
    unnamed = filter(inference.is_unnamed, everywhere)
    leave_out(unnamed, "without a name, like the row numbers that to_csv writes")
    for role, path in files.records.items():
        other = PUBLIC if role == PRIVATE else PRIVATE
        # Names that differ in capitals alone stay in: the reader of the study refuses them, and shows both.
        strays = unlike(files.columns(role), files.columns(other))
        leave_out(strays, f"in {path.name}, and not in {files.records[other].name}")
    leave_out(
        inference.identifiers(left(), files.public_table),
        f"named like numbers of people or records, with many values in {public}",
    )
    leave_out(
        inference.all_different(left(), files.public_table),
        f"text that differs in more than half of the records of {public} teaches hardly anything",
    )
    features = left()
    if not features:
        raise InputError(
            f"no column is left to learn from: {files.private.name} and {public} have in common only "
            f"{listed(files.common, 8)}; give public records with the same features"
        )
    draft.prompts.tell(f"features: {listed(features, 8)}")
    gaps = inference.numbers_with_gaps(features, files.public_table)
    for name, mark in gaps.items():
        draft.prompts.tell(
            f"data.types: {name!r} holds numbers; {mark!r} marks missing ones in {public}"
        )
    keys = {
        "exclude": list(excluded),
        "types": dict.fromkeys(gaps, NUMBER),
        "separator": files.separator,
    }
    return {key: value for key, value in keys.items() if value}
