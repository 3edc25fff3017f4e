"""A study's TOML file: every key is documented, checked, and never silently ignored."""

import datetime
import math
import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from collegium import Account, Budget, Queries, Weighting
from collegium.errors import ConfigError, InputError
from collegium.parameters import settings_of
from collegium.pate.voting.aggregators import AGGREGATORS
from collegium.pate.voting.least_noise import least_sigma
from collegium.personalisation import PERSONALISATIONS
from collegium.study.config import config_from, read_config
from collegium.study.example import example_config
from collegium.study.json_schema import study_schema
from collegium.study.methods.kinds import SECTIONS, all_keys, belonging
from collegium.study.methods.votes.settings import (
    Aggregation,
    PersonalisationSection,
    aggregator_of,
)
from collegium.study.sections import Privacy, StudentSection

ROOT = Path(__file__).parents[2]
KEYS = all_keys()
SCHEMA = Draft202012Validator(study_schema())

MINIMUM = {
    "data": {"private": "private.csv", "public": "public.csv", "target": "kind"},
    "privacy": {"levels": {"high": 1.0, "low": 3.0}, "column": "privacy"},
}


def changed(**sections):
    """The smallest valid settings, with keys replaced; None removes a key."""
    settings = {name: dict(keys) for name, keys in MINIMUM.items()}
    for section, keys in sections.items():
        settings.setdefault(section, {}).update(keys)
        settings[section] = {k: v for k, v in settings[section].items() if v is not None}
    return settings


def config(**sections):
    return config_from(changed(**sections), Path("/somewhere"))


def refused(match, **sections):
    with pytest.raises(InputError, match=match) as error:
        config(**sections)
    assert "\n" not in str(error.value)
    return str(error.value)


def shown_in_example():
    """Section, key and value of every key in the example, commented out or not."""
    section = ""
    for line in example_config().splitlines():
        if line.startswith("["):
            section = line[1 : line.index("]")]
        found = re.fullmatch(r"(# )?([a-z_]+) = (.+)", line)
        if found:
            value = tomllib.loads(f"value = {found.group(3)}")["value"]
            yield section, found.group(2), found.group(1) is not None, value


def words(text):
    return " ".join(text.replace("#", " ").split())


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_key_is_in_the_example_with_its_meaning_and_choices(key):
    section = example_config().split(f"\n[{key.section}]")[1].split("\n\n[")[0]
    assert words(key.setting.meaning) in words(section)
    assert all(choice in section for choice in key.setting.choices)
    assert [
        (found_section, name) for found_section, name, _, _ in shown_in_example()
    ].count((key.section, key.name)) == 1  # fmt: skip


def test_the_example_has_no_other_keys_and_every_section_with_its_purpose():
    assert {(s, k) for s, k, _, _ in shown_in_example()} == {(k.section, k.name) for k in KEYS}
    for section, cls in SECTIONS.items():
        assert f"[{section}]  # {cls.__doc__}" in example_config()


def test_the_example_is_read_and_what_it_comments_out_is_the_default(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(example_config("Our study"), encoding="utf-8")
    read = read_config(path)
    assert read["study.name"] == "Our study"
    defaults = {(key.section, key.name): key.setting.default for key in KEYS}
    commented = [(s, k, value) for s, k, hidden, value in shown_in_example() if hidden]
    assert len(commented) > 20
    for section, name, value in commented:
        assert read[f"{section}.{name}"] == defaults[section, name]
        if defaults[section, name] is not None:
            assert value == defaults[section, name], f"{section}.{name}"


def test_the_example_without_its_comments_is_the_same_study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(example_config(), encoding="utf-8")
    bare = config_from(tomllib.loads(example_config()), tmp_path)
    assert bare.public() == read_config(path).public()


def test_an_example_value_of_every_commented_key_is_of_the_right_kind():
    kinds = {"text": str, "number": (int, float), "whole number": int, "list": list, "table": dict}
    kinds |= {"yes/no": bool, "path": str, "text or list": (str, list)}
    for section, name, _, value in shown_in_example():
        key = next(key for key in KEYS if key.path == f"{section}.{name}")
        assert isinstance(value, kinds[key.setting.kind]), key.path
        assert not key.setting.choices or value in key.setting.choices, key.path


WRONG = {
    "text": [3, True, ["x"]],
    "text or list": [3, True, {"x": 1}],
    "path": [3, True, ["x"], {"x": 1}],
    "number": ["1", True, math.nan, [1]],
    "whole number": [1.5, "1", True],
    "list": ["x", 1],
    "table": ["x", 1, [1]],
    "yes/no": ["true", 1, 0],
}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_key_refuses_values_of_other_types(key):
    for value in WRONG[key.setting.kind]:
        kind = "true or false" if key.setting.kind == "yes/no" else f"a {key.setting.kind}"
        refused(f"{key.path} must be {kind}, got", **{key.section: {key.name: value}})


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.setting.choices], ids=lambda key: key.path
)
def test_every_key_with_choices_refuses_others_and_lists_them(key):
    message = refused(f"{key.path} must be one of", **{key.section: {key.name: "elsewise"}})
    assert ", ".join(key.setting.choices) in message and "'elsewise'" in message


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.setting.kind == "whole number"], ids=lambda key: key.path
)
def test_every_whole_number_has_a_least_value(key):
    refused(f"{key.path} must be at least", **{key.section: {key.name: -2}})


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.setting.kind == "whole number"], ids=lambda key: key.path
)
def test_every_whole_number_has_a_largest_value(key):
    for value in (
        key.setting.most + 1,
        10**30,
        16**5000,
    ):  # the last has more digits than Python writes
        refused(
            f"{key.path} must be at most {key.setting.most:,}", **{key.section: {key.name: value}}
        )


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.setting.kind == "number"], ids=lambda key: key.path
)
def test_every_number_fits_into_a_float(key):
    refused(f"{key.path} is larger than any number", **{key.section: {key.name: 10**400}})


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.setting.kind in ("text", "path")], ids=lambda key: key.path
)
def test_a_text_is_not_empty_and_holds_no_zero_byte(key):
    refused(f"{key.path} must not contain", **{key.section: {key.name: "a\0b"}})
    if key.path == "data.missing":
        assert config(data={"missing": ""})["data.missing"] == ""
        return
    for value in ("", " ", "\n"):
        refused(f"{key.path} must not be empty", **{key.section: {key.name: value}})


@pytest.mark.parametrize("classes", [["a", "b"], [0, 1], [0.5, 1], [True, False]])
def test_classes_are_words_numbers_or_truths(classes):
    assert config(data={"classes": classes})["data.classes"] == classes


NAMED = {
    "private": None, "public": None, "target": None, "dataset": "digits", "private_records": 9,
    "public_records": 9,
}  # fmt: skip
DEALT = {"column": None, "shares": {"high": 0.5, "low": 0.5}}
DAY, HOUR = datetime.date(2020, 1, 1), datetime.time(1)


def dealt(**shares):
    return {"privacy": {"column": None, "shares": shares}}


def levels(**given):
    return {"privacy": {"levels": given}}


def answers(**aggregation):
    return {"aggregation": {"answers": 9, **aggregation}}


#: Refused by the file alone, and by its JSON Schema as well: names, types, ranges and what belongs elsewhere.
WRONG_ALONE = [
    ({"privcy": {}}, r"unknown section \[privcy\]: did you mean 'privacy'\?"),
    ({"zzz": {}}, r"unknown section \[zzz\]: allowed are study, data"),
    ({"teachers": {"teachers": 3}}, r"unknown key teachers.teachers: did you mean 'n_teachers'\?"),
    ({"teachers": {"numbr": 3}}, "unknown key teachers.numbr"),
    ({"aggregation": {"sigmathreshold": 3}}, "did you mean 'sigma_threshold'"),
    ({"run": {"qqq": 3}}, "unknown key run.qqq: allowed are n_jobs, streaming, .*data_dir"),
    ({"run": {"n_jobs": 0}}, "run.n_jobs must be at least 1, or -1 for all cores, got 0"),
    ({"data": {"exclude": [[]]}}, "data.exclude must be a list of text"),
    ({"data": {"exclude": [{}]}}, "data.exclude must be a list of text"),
    ({"data": {"exclude": [1]}}, "data.exclude must be a list of text"),
    ({"data": {"exclude": ["a", 1]}}, "data.exclude must be a list of text"),
    ({"data": {"exclude": [True]}}, "data.exclude must be a list of text"),
    ({"data": {"classes": [[]]}}, "data.classes must be a list of text, or of numb"),
    ({"data": {"classes": [{}]}}, "data.classes must be a list of text, or of numb"),
    ({"data": {"classes": ["a", 1]}}, "data.classes must be a list of text, or of numb"),
    ({"data": {"classes": [1, True]}}, "data.classes must be a list of text, or of numb"),
    ({"privacy": {"orders": []}}, "orders must be a non-empty list"),
    ({"privacy": {"orders": ["x"]}}, "privacy.orders must be a list of numbers"),
    ({"privacy": {"orders": [2, 1]}}, "privacy.orders must be greater than 1, got 1"),
    *[
        ({who: {"class_shares": {"a": []}}}, f"{who}.class_shares.a must be a number")
        for who in ("teachers", "student")
    ],
    *[
        (
            {"aggregation": {"aggregator": name, key: 1}},
            f"{key} means nothing to aggregator '{name}'",
        )
        for name, key in [
            ("lnmax", "sigma"),
            ("lnmax", "threshold"),
            ("gnmax", "gamma"),
            ("gnmax", "sigma_threshold"),
            ("confident", "confidence"),
            ("confident", "refit_every"),
            ("interactive", "gamma"),
        ]
    ],
    *[
        (
            {"personalisation": {"method": name, key: value}},
            f"personalisation.{key} means nothing to method '{name}' .*: remove it",
        )
        for name, key, value in [
            ("weighting", "max_duplicates", 1),
            ("uniform", "shuffle_every", 1),
            ("vanishing", "tolerance", 0.5),
        ]
    ],
    ({"personalisation": {"max_duplicates": 2}}, "means nothing to method 'weighting'"),
    ({"personalisation": {"rule": "thesis"}}, "has no weight rule 'thesis': allowed are exact"),
    ({"aggregation": {"sigma": 0.0}}, "sigma must be greater than 0"),
    ({"aggregation": {"sigma": -1.0}}, "sigma must be greater than 0"),
    ({"aggregation": {"sigma_threshold": 0}}, "sigma_threshold must be greater than 0"),
    (answers(aggregator="gnmax", answers=0), "aggregation.answers must be at least 1"),
    *[
        ({"privacy": {"delta": delta}}, "delta must lie strictly between 0 and 1")
        for delta in (0.0, 1.0, -1e-5, 2, math.inf)
    ],
    (levels(high=-1e-9), "privacy.levels.high must be at least 0, got -1e-09: give a positive ε"),
    (levels(high=-1.0), "privacy.levels.high must be at least 0, got -1.0"),
    ({"privacy": {"public": "high"}}, "privacy.public must be a list"),
    (levels(high="much"), "privacy.levels.high must be a number, got 'much'"),
    (levels(high=[1]), r"privacy.levels.high must be a number, got \[1\]"),
    (dealt(high=1.5, low=-0.5), "privacy.shares.high must lie between 0 and 1, got 1.5"),
    (dealt(high="half", low=0.5), "privacy.shares.high must be a number, got 'half'"),
    (dealt(high=True, low=0.0), "privacy.shares.high must be a number, got True"),
    ({"privacy": {"column": None}}, "exactly one of .*got none"),
    ({"privacy": {"file": "privacy.csv"}}, "got column and file"),
    (
        {"privacy": {"shares": {"high": 0.5, "low": 0.5}}},
        "exactly one of privacy.column, privacy.file and privacy.shares, got column and shares",
    ),
    ({"data": {"private": None}}, "either data.dataset .* or data.private"),
    ({"data": {"dataset": "digits"}}, "either data.dataset .* or data.private"),
    ({"data": {"public": None}}, "there are no public records"),
    ({"data": {"public": None, "private_records": 10}}, "there are no public records"),
    ({"data": {"private_records": 10}}, "give data.public or a split, not both"),
]

#: Refused when the file is read; a schema cannot tell.
WRONG_TOGETHER = [
    *[
        ({who: {"params": {"C": value}}}, f"{who}.params.C.* must be text, a number")
        for who in ("teachers", "student")
        for value in (DAY, [HOUR], {"x": [DAY]})
    ],
    ({"data": {"classes": [math.nan]}}, "data.classes must be a list of text, or of numb"),
    ({"aggregation": {"sigma": math.inf}}, "sigma"),
    ({"data": {"test_records": 10}}, "data.test_records would have no effect"),
    ({"data": {"test_labels": "x.npy"}}, "data.test_labels would have no effect"),
    *[
        ({"data": {**NAMED, key: "x"}, "privacy": DEALT}, f"data.{key} would have no effect")
        for key in ("owner", "target", "private_labels")
    ],
    (dealt(high=1.0), "must name the same levels"),
    (dealt(high=0.5, medium=0.5), "must name the same levels"),
    (dealt(high=0.5, low=0.4), "must add up to 1, got 0.9"),
    (levels(), "at least one level"),
    (levels(high=math.nan), "privacy.levels.high must be a number, got nan"),
    (levels(high=1e300), "level 'high': epsilon must be at most 1e[+]15, or infinite"),
    (levels(**{" ": 1.0}), "a level's name must be a word"),
    (answers(aggregator="confident"), "answers means nothing to aggregator 'confident'"),
    (
        answers(aggregator="gnmax", sigma=4),
        "answers finds the noise, and sigma gives it: give one of both",
    ),
    (
        {**answers(aggregator="gnmax"), "privacy": {"guarantee": "data-dependent"}},
        "only the worst-case guarantee knows",
    ),
]


@pytest.mark.parametrize(("sections", "message"), [*WRONG_ALONE, *WRONG_TOGETHER], ids=repr)
def test_what_is_wrong_is_refused_in_one_line(sections, message):
    refused(message, **sections)


@pytest.mark.parametrize("sections", [wrong for wrong, _ in WRONG_ALONE], ids=repr)
def test_the_schema_refuses_it_too(sections):
    assert not SCHEMA.is_valid(changed(**sections))


def test_the_schema_is_one_and_takes_every_example():
    Draft202012Validator.check_schema(study_schema())
    files = [*(ROOT / "examples").glob("*.toml"), ROOT / "src/collegium/study/demo.toml"]
    assert len(files) == 8
    texts = [*(path.read_text(encoding="utf-8") for path in files), example_config()]
    for text in texts:
        SCHEMA.validate(tomllib.loads(text))
    for settings in (changed(), changed(data=NAMED, privacy=DEALT)):
        SCHEMA.validate(settings)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_the_schema_explains_every_key_and_refuses_what_it_does_not_allow(key):
    known = study_schema()["properties"][key.section]["properties"][key.name]
    assert known["description"] == key.setting.meaning
    assert known.get("default") == key.setting.default
    wrong = [value for value in WRONG[key.setting.kind] if value == value]  # JSON knows no NaN
    wrong += ["elsewise"] if key.setting.choices else []
    if key.setting.kind == "whole number":
        wrong += [-2, key.setting.most + 1]
    if key.setting.kind in ("text", "path") and not key.setting.may_be_empty:
        wrong += ["", " "]
    for value in wrong:
        assert not Draft202012Validator(known).is_valid(value), value


def test_a_named_data_set_is_a_study():
    assert config(data=NAMED, privacy=DEALT).data.dataset == "digits"


@pytest.mark.parametrize("orders", ["wide", "seeds", [2, 3, 4.5]])
def test_orders_have_a_name_or_are_numbers(orders):
    read = config(privacy={"orders": orders})
    assert read.public()["privacy"]["orders"] == orders
    assert read.privacy.renyi_orders.min() > 1


def test_what_the_pipeline_knows_is_known_by_the_file_with_the_same_names_and_defaults():
    for cls, section in [(Account, Privacy), (Queries, Aggregation), (Queries, StudentSection)]:
        common = settings_of(cls).keys() & settings_of(section).keys() - {"targets"}
        assert common or section is StudentSection
        for name in common:
            assert settings_of(cls)[name] == settings_of(section)[name]
    known = settings_of(Aggregation).keys() | {"targets"}
    assert settings_of(Queries).keys() <= known
    for numbers in belonging()["aggregation.aggregator"].values():
        assert set(numbers) <= known
    for extras in belonging()["personalisation.method"].values():
        assert set(extras) <= settings_of(PersonalisationSection).keys()


def test_a_section_that_is_a_value_is_refused():
    with pytest.raises(ConfigError, match=r"\[study\] must be a section with keys"):
        config_from({**MINIMUM, "study": 3}, Path())


def test_long_values_are_cut_in_messages():
    assert len(refused("must be a number", privacy={"delta": "x" * 10_000})) < 120


def test_parameters_that_json_lacks_are_told_apart():
    params = {"a": math.inf, "b": -math.inf, "c": [math.nan]}
    assert config(teachers={"params": params}).public()["teachers"]["params"] == {
        "a": "inf", "b": "-inf", "c": ["nan"],
    }  # fmt: skip


def test_a_release_says_of_files_what_they_are_called(tmp_path):
    where = str(tmp_path / "weights.npz")
    given = config(
        data={"private": "../people/private.csv", "classes": ["/a", "b"]},
        teachers={"params": {"weights": where, "inner": {"tried": [where, "a/b"]}}},
    )
    said = given.published()
    assert said["data"]["private"] == "private.csv" and said["data"]["classes"] == ["/a", "b"]
    assert said["teachers"]["params"] == {
        "weights": "weights.npz", "inner": {"tried": ["weights.npz", "a/b"]},
    }  # fmt: skip
    assert given.public()["teachers"]["params"]["weights"] == where


def test_jobs_may_be_all_cores():
    assert config(run={"n_jobs": -1}).run.n_jobs == -1


@pytest.mark.parametrize("name", AGGREGATORS)
def test_every_aggregator_can_be_chosen(name):
    assert aggregator_of(config(aggregation={"aggregator": name})).name == name


@pytest.mark.parametrize("name", PERSONALISATIONS)
def test_every_personalisation_can_be_chosen(name):
    assert config(personalisation={"method": name}).of(PersonalisationSection).build().name == name


def test_noise_parameters_follow_the_number_of_teachers_unless_they_are_given():
    confident = aggregator_of(config(teachers={"n_teachers": 500})).resolved(500)
    assert (confident.threshold, confident.sigma_threshold, confident.sigma) == (400, 300, 80)
    given = config(teachers={"n_teachers": 500}, aggregation={"sigma": 7})
    given = aggregator_of(given).resolved(500)
    assert (given.threshold, given.sigma) == (400, 7)
    gamma = config(teachers={"n_teachers": 50}, aggregation={"aggregator": "lnmax"})
    gamma = aggregator_of(gamma).resolved(50)
    assert gamma.gamma == 0.25


def test_infinite_epsilon_can_be_written_in_toml(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        '[data]\nprivate="a.csv"\npublic="b.csv"\ntarget="y"\n'
        '[privacy]\ncolumn="p"\nlevels={ high = 1.0, none = inf }\n'
    )
    read = read_config(path)
    assert read.policy().levels["none"].is_unlimited
    assert read.public()["privacy"]["levels"] == {"high": 1.0, "none": "inf"}


def test_relative_paths_are_relative_to_the_toml_file(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "study.toml"
    path.write_text(
        '[data]\nprivate="../a.csv"\npublic="/b.csv"\ntarget="y"\n[privacy]\ncolumn="p"\n'
    )
    monkeypatch.chdir(tmp_path)
    read = read_config("deep/study.toml")
    assert read.path("data.private").resolve() == tmp_path / "a.csv"
    assert read.path("data.public") == Path("/b.csv")
    assert read.path("data.test") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[data", "is not valid TOML"),
        (b"\xff\xfe", "cannot be read"),
        (b"[data]\nprivate = 1\nprivate = 2\n", "is not valid TOML"),
        (b"x = " + b"9" * 5000, "is not valid TOML"),
        (b"x = " + b"[" * 100_000, "is not valid TOML"),
        (b"", "give either data.dataset"),
    ],
)
def test_a_file_that_is_no_study_is_refused_by_its_name(tmp_path, content, message):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as error:
        read_config(path)
    assert "broken.toml" in str(error.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no file .*collegium init"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path)


def test_speed_is_not_part_of_what_makes_a_study_the_same():
    assert "run" not in config(run={"n_jobs": 2}).public()
    assert config(run={"n_jobs": 2}).public() == config(run={"n_jobs": 1}).public()


def test_a_number_of_answers_decides_on_the_noise():
    budgets = {"high": Budget(1.0), "low": Budget(3.0)}
    plan = Weighting().plan(budgets, {"high": 600, "low": 400}, 250)
    asked = config(aggregation={"aggregator": "gnmax", "answers": 500})
    electorate = plan.electorate(0)
    resolved = aggregator_of(asked).resolved(250, electorate)
    assert resolved.sigma == least_sigma(electorate, 500)
