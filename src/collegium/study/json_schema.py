"""The JSON Schema of a study's file, by which editors complete keys, explain them and mark what is wrong.

Made from the fields of the sections. What needs arithmetic, such as shares that add up to 1, only
``collegium plan`` can tell.
"""

from __future__ import annotations

import inspect
import tomllib
from typing import Any

from collegium.parameters import Setting, settings_of
from collegium.study.methods.kinds import KINDS, SECTIONS, belonging, unused_by
from collegium.study.sections import AUTO, Method

Schema = dict[str, Any]

WRITTEN_BY = "Written by `collegium init --schema`."

_TYPES = {
    "text": "string", "path": "string", "number": "number", "whole number": "integer",
    "yes/no": "boolean",
}  # fmt: skip
_SPLIT = ("private_records", "public_records")


def study_schema() -> Schema:
    """Make the schema (draft 2020-12) of a study's TOML file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": WRITTEN_BY,
        "title": "A Collegium study",
        "type": "object",
        "properties": {section: _of_section(section) for section in SECTIONS},
        "required": ["data", "privacy"],
        "additionalProperties": False,
        "allOf": [
            _of_method(AUTO, ()),
            *(_of_method(kind, unused_by(kind)) for kind in KINDS),
            _public_records(),
        ],
    }


def _of_method(kind: str, unused: tuple[str, ...]) -> Schema:
    """Forbid what means nothing to a method."""
    chosen: Schema = {"properties": {"method": {"properties": {"kind": {"const": kind}}}}}
    if kind != Method.kind:
        chosen["required"] = ["method"]
        chosen["properties"]["method"]["required"] = ["kind"]
    forbidden: Schema = {}
    for path in unused:
        section, _, name = path.partition(".")
        if name:
            forbidden.setdefault(section, {"properties": {}})["properties"][name] = False
        else:
            forbidden[section] = {"maxProperties": 0}
    return {"if": chosen, "then": {"properties": forbidden}}


def _of_section(section: str) -> Schema:
    cls = SECTIONS[section]
    conditions = [
        *_ONLY_ONE.get(section, []),
        *(
            condition
            for choice in belonging()
            if choice.startswith(f"{section}.")
            for condition in _belonging(choice)
        ),
    ]
    return {
        "description": inspect.getdoc(cls),
        "type": "object",
        "properties": {name: _of_key(about) for name, about in settings_of(cls).items()},
        "additionalProperties": False,
        **({"allOf": conditions} if conditions else {}),
    }


def _of_key(about: Setting) -> Schema:
    schema: Schema = {"description": about.meaning, **_allowed(about)}
    if about.default is not None:
        schema["default"] = about.default
    elif about.example:
        schema["examples"] = [tomllib.loads(f"value = {about.example}")["value"]]
    return schema


def _allowed(about: Setting) -> Schema:
    words: Schema = {"type": "string"}
    if about.choices:
        words = {"enum": list(about.choices)}
    elif not about.may_be_empty:
        words["pattern"] = r"\S"
    if about.kind in ("text", "path"):
        return words
    if about.kind == "text or list":
        numbers = {"type": "number", **_limits(about)}
        return {"anyOf": [words, {"type": "array", "items": numbers, "minItems": 1}]}
    if about.kind == "list":
        lists = [{"type": "array", "items": {"type": _TYPES[kind]}} for kind in about.items]
        return {"anyOf": lists} if len(lists) > 1 else lists[0]
    if about.kind == "table":
        inside = {"type": [_TYPES[kind] for kind in about.items], **_limits(about)}
        return {"type": "object", "additionalProperties": inside if about.items else True}
    simple = {"type": _TYPES[about.kind], **_limits(about)}
    return {"anyOf": [simple, {"enum": list(about.also)}]} if about.also else simple


def _limits(about: Setting) -> Schema:
    limits = {
        "minimum": about.least,
        "exclusiveMinimum": about.above,
        "maximum": about.most,
        "exclusiveMaximum": about.below,
    }
    return {word: limit for word, limit in limits.items() if limit is not None}


def _belonging(choice: str) -> list[Schema]:
    """Forbid, for each choice, the keys that belong to others; and values that it does not know."""
    section, name = choice.split(".")
    default = settings_of(SECTIONS[section])[name].default
    choices = belonging()[choice]
    narrowed = next(one.narrowed for one in KINDS.values() if choice in one.belonging)
    every = {key for keys in choices.values() for key in keys}
    conditions = []
    for option, own in choices.items():
        chosen: Schema = {"properties": {name: {"const": option}}}
        if option != default:
            chosen["required"] = [name]
        allowed: Schema = dict.fromkeys(sorted(every.difference(own)), False)
        for key, values in narrowed.get(choice, {}).get(option, {}).items():
            allowed[key] = {"enum": list(values)}
        conditions.append({"if": chosen, "then": {"properties": allowed}})
    return conditions


def _exactly_one(*names: str) -> Schema:
    return {"oneOf": [{"required": [name]} for name in names]}


_ONLY_ONE: dict[str, list[Schema]] = {
    "data": [
        _exactly_one("dataset", "private"),
    ],
    "privacy": [_exactly_one("column", "file", "shares")],
}


def _public_records() -> Schema:
    """Require them of studies that learn."""
    asking = [one for one in KINDS.values() if not one.learns]
    named = {"enum": [one.name for one in asking]}
    said: Schema = {"properties": {"kind": named}, "required": ["kind"]}
    own = [{"required": [cls.section]} for one in asking for cls in one.sections]
    return {
        "if": {"anyOf": [{"properties": {"method": said}, "required": ["method"]}, *own]},
        "else": {
            "properties": {
                "data": {
                    "if": {"required": ["public"]},
                    "then": {"properties": dict.fromkeys(_SPLIT, False)},
                    "else": {"required": list(_SPLIT)},
                }
            }
        },
    }
