"""A study's TOML file: every key is documented, checked, and never silently ignored."""

import datetime
import math
import re
import tomllib
from pathlib import Path

import pytest

from collegium.budgets import Budget
from collegium.errors import ConfigError, InputError
from collegium.pate.voting.aggregators import AGGREGATORS
from collegium.pate.voting.least_noise import least_sigma
from collegium.personalisation import PERSONALISATIONS, Weighting
from collegium.study.config import config_from, example_config, read_config
from collegium.study.sections import KEYS, SECTIONS

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
    assert words(key.meaning) in words(section)
    assert all(choice in section for choice in key.choices)
    assert [
        (found_section, name) for found_section, name, _, _ in shown_in_example()
    ].count((key.section, key.name)) == 1  # fmt: skip


def test_the_example_has_no_other_keys_and_every_section_with_its_purpose():
    assert {(s, k) for s, k, _, _ in shown_in_example()} == {(k.section, k.name) for k in KEYS}
    for section, purpose in SECTIONS.items():
        assert f"[{section}]  # {purpose}" in example_config()


def test_the_example_is_read_and_what_it_comments_out_is_the_default(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(example_config("Our study"), encoding="utf-8")
    read = read_config(path)
    assert read["study.name"] == "Our study"
    defaults = {(key.section, key.name): key.default for key in KEYS}
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
    kinds |= {"yes/no": bool, "path": str}
    for section, name, _, value in shown_in_example():
        key = next(key for key in KEYS if key.path == f"{section}.{name}")
        assert isinstance(value, kinds[key.kind]), key.path
        assert not key.choices or value in key.choices, key.path


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"privcy": {}}, r"unknown section \[privcy\]: did you mean 'privacy'\?"),
        ({"zzz": {}}, r"unknown section \[zzz\]: allowed are study, data"),
        ({"teachers": {"numbr": 3}}, r"unknown key teachers.numbr: did you mean 'number'\?"),
        ({"aggregation": {"sigmathreshold": 3}}, "did you mean 'sigma_threshold'"),
        ({"run": {"qqq": 3}}, "unknown key run.qqq: allowed are jobs, streaming, .*data_dir"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(sections, message):
    refused(message, **sections)


def test_a_section_that_is_a_value_is_refused():
    with pytest.raises(ConfigError, match=r"\[study\] must be a section with keys"):
        config_from({**MINIMUM, "study": 3}, Path())


WRONG = {
    "text": [3, True, ["x"]],
    "path": [3, True, ["x"], {"x": 1}],
    "number": ["1", True, math.nan, [1]],
    "whole number": [1.5, "1", True],
    "list": ["x", 1],
    "table": ["x", 1, [1]],
    "yes/no": ["true", 1, 0],
}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_key_refuses_values_of_other_types(key):
    for value in WRONG[key.kind]:
        kind = "true or false" if key.kind == "yes/no" else f"a {key.kind}"
        refused(f"{key.path} must be {kind}, got", **{key.section: {key.name: value}})


@pytest.mark.parametrize("key", [key for key in KEYS if key.choices], ids=lambda key: key.path)
def test_every_key_with_choices_refuses_others_and_lists_them(key):
    message = refused(f"{key.path} must be one of", **{key.section: {key.name: "elsewise"}})
    assert ", ".join(key.choices) in message and "'elsewise'" in message


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.kind == "whole number"], ids=lambda key: key.path
)
def test_every_whole_number_has_a_least_value(key):
    refused(f"{key.path} must be at least", **{key.section: {key.name: -2}})


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.kind == "whole number"], ids=lambda key: key.path
)
def test_every_whole_number_has_a_largest_value(key):
    for value in (key.most + 1, 10**30, 16**5000):  # the last has more digits than Python writes
        refused(f"{key.path} must be at most {key.most:,}", **{key.section: {key.name: value}})


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.kind == "number"], ids=lambda key: key.path
)
def test_every_number_fits_into_a_float(key):
    refused(f"{key.path} is larger than any number", **{key.section: {key.name: 10**400}})


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.kind in ("text", "path")], ids=lambda key: key.path
)
def test_a_text_is_not_empty_and_holds_no_zero_byte(key):
    refused(f"{key.path} must not contain", **{key.section: {key.name: "a\0b"}})
    if key.path == "data.missing":
        assert config(data={"missing": ""})["data.missing"] == ""
        return
    for value in ("", " ", "\n"):
        refused(f"{key.path} must not be empty", **{key.section: {key.name: value}})


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("exclude", [[[]], [{}], [1], ["a", 1], [True]], "must be a list of text"),
        (
            "classes",
            [[[]], [{}], ["a", 1], [1, True], [math.nan]],
            "must be a list of text, or of numb",
        ),
    ],
)
def test_a_list_holds_things_of_one_kind(key, values, message):
    for value in values:
        refused(f"data.{key} {message}", data={key: value})


@pytest.mark.parametrize("classes", [["a", "b"], [0, 1], [0.5, 1], [True, False]])
def test_classes_are_words_numbers_or_truths(classes):
    assert config(data={"classes": classes})["data.classes"] == classes


@pytest.mark.parametrize("section", ["teachers", "student"])
def test_tables_hold_what_they_should(section):
    refused(f"{section}.class_shares.a must be a number", **{section: {"class_shares": {"a": []}}})
    for value in (
        datetime.date(2020, 1, 1),
        [datetime.time(1)],
        {"x": [datetime.date(2020, 1, 1)]},
    ):
        refused(
            f"{section}.params.C.* must be text, a number", **{section: {"params": {"C": value}}}
        )


def test_long_values_are_cut_in_messages():
    assert len(refused("must be a number", privacy={"delta": "x" * 10_000})) < 120


def test_parameters_that_json_lacks_are_told_apart():
    params = {"a": math.inf, "b": -math.inf, "c": [math.nan]}
    assert config(teachers={"params": params}).public()["teachers"]["params"] == {
        "a": "inf", "b": "-inf", "c": ["nan"],
    }  # fmt: skip


def test_jobs_may_be_all_cores_but_not_zero():
    assert config(run={"jobs": -1})["run.jobs"] == -1
    refused("run.jobs must be at least -1, got 0", run={"jobs": 0})


@pytest.mark.parametrize("name", AGGREGATORS)
def test_every_aggregator_can_be_chosen(name):
    assert config(aggregation={"aggregator": name}).aggregator().name == name


@pytest.mark.parametrize("name", PERSONALISATIONS)
def test_every_personalisation_can_be_chosen(name):
    assert config(personalisation={"method": name}).personalisation().name == name


@pytest.mark.parametrize(
    ("aggregator", "key"),
    [
        ("lnmax", "sigma"),
        ("lnmax", "threshold"),
        ("gnmax", "gamma"),
        ("gnmax", "sigma_threshold"),
        ("confident", "confidence"),
        ("confident", "refit_every"),
        ("interactive", "gamma"),
    ],
)
def test_parameters_that_mean_nothing_to_the_aggregator_are_refused(aggregator, key):
    message = refused(
        f"aggregation.{key} means nothing to aggregator '{aggregator}'",
        aggregation={"aggregator": aggregator, key: 1},
    )
    assert message.endswith("remove it")


@pytest.mark.parametrize(
    ("method", "key"),
    [("weighting", "max_duplicates"), ("uniform", "shuffle_every"), ("vanishing", "tolerance")],
)
def test_parameters_that_mean_nothing_to_the_personalisation_are_refused(method, key):
    refused(
        f"personalisation.{key} means nothing to method '{method}'",
        personalisation={"method": method, key: 1},
    )


def test_noise_parameters_follow_the_number_of_teachers_unless_they_are_given():
    confident = config(teachers={"number": 500}).aggregator()
    assert (confident.threshold, confident.sigma_threshold, confident.sigma) == (400, 300, 80)
    given = config(teachers={"number": 500}, aggregation={"sigma": 7}).aggregator()
    assert (given.threshold, given.sigma) == (400, 7)
    gamma = config(teachers={"number": 50}, aggregation={"aggregator": "lnmax"}).aggregator()
    assert gamma.gamma == 0.25


@pytest.mark.parametrize(
    ("key", "value"),
    [("sigma", 0.0), ("sigma", -1.0), ("sigma", math.inf), ("sigma_threshold", 0)],
)
def test_noise_that_is_none_is_refused(key, value):
    refused(key, aggregation={key: value})


@pytest.mark.parametrize(
    ("privacy", "got"),
    [
        ({"column": None}, "got none"),
        ({"file": "privacy.csv"}, "got column and file"),
        ({"shares": {"high": 0.5, "low": 0.5}}, "got column and shares"),
    ],
)
def test_levels_come_from_exactly_one_source(privacy, got):
    sources = "privacy.column, privacy.file and privacy.shares"
    refused(f"exactly one of {sources}, {got}", privacy=privacy)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"high": 1.0}, "must name the same levels"),
        ({"high": 0.5, "medium": 0.5}, "must name the same levels"),
        ({"high": 0.5, "low": 0.4}, "must add up to 1, got 0.9"),
        ({"high": 1.5, "low": -0.5}, "must lie between 0 and 1"),
        ({"high": "half", "low": 0.5}, "privacy.shares.high must be a number, got 'half'"),
        ({"high": True, "low": 0.0}, "privacy.shares.high must be a number, got True"),
    ],
)
def test_shares_are_of_the_levels_and_add_up(shares, message):
    refused(message, privacy={"column": None, "shares": shares})


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({}, "at least one level"),
        ({"high": 0}, "level 'high': epsilon must be greater than 0"),
        ({"high": -1.0}, "level 'high': epsilon must be greater than 0"),
        ({"high": math.nan}, "privacy.levels.high must be a number, got nan"),
        ({"high": "much"}, "privacy.levels.high must be a number, got 'much'"),
        ({"high": [1]}, r"privacy.levels.high must be a number, got \[1\]"),
        ({"high": 1e300}, "level 'high': epsilon must be at most 1e[+]15, or infinite"),
        ({" ": 1.0}, "a level's name must be a word"),
    ],
)
def test_levels_that_mean_nothing_are_refused(levels, message):
    refused(message, privacy={"levels": levels})


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, 2, math.inf])
def test_delta_outside_of_0_and_1_is_refused(delta):
    refused("delta must lie strictly between 0 and 1", privacy={"delta": delta})


def test_infinite_epsilon_can_be_written_in_toml(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        '[data]\nprivate="a.csv"\npublic="b.csv"\ntarget="y"\n'
        '[privacy]\ncolumn="p"\nlevels={ high = 1.0, none = inf }\n'
    )
    read = read_config(path)
    assert read.policy().levels["none"].is_unlimited
    assert read.public()["privacy"]["levels"] == {"high": 1.0, "none": "inf"}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"data": {"private": None}}, "either data.dataset .* or data.private"),
        ({"data": {"dataset": "digits"}}, "either data.dataset .* or data.private"),
        ({"data": {"public": None}}, "there are no public records"),
        ({"data": {"public": None, "private_records": 10}}, "there are no public records"),
        ({"data": {"private_records": 10}}, "give data.public or a split, not both"),
        ({"data": {"test_records": 10}}, "data.test_records would have no effect"),
        ({"data": {"test_labels": "x.npy"}}, "data.test_labels would have no effect"),
    ],
)
def test_records_come_from_one_place_each(sections, message):
    refused(message, **sections)


@pytest.mark.parametrize("key", ["owner", "target", "private_labels"])
def test_what_a_named_data_set_knows_itself_cannot_be_given(key):
    named = {"private": None, "public": None, "target": None, "dataset": "digits",
             "private_records": 9, "public_records": 9}  # fmt: skip
    privacy = {"column": None, "shares": {"high": 0.5, "low": 0.5}}
    assert config(data=named, privacy=privacy)["data.dataset"] == "digits"
    refused(f"data.{key} would have no effect", data={**named, key: "x"}, privacy=privacy)


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
    assert "run" not in config(run={"jobs": 2}).public()
    assert config(run={"jobs": 2}).public() == config(run={"jobs": 1}).public()


@pytest.mark.parametrize(
    ("aggregation", "privacy", "message"),
    [
        ({"aggregator": "confident", "answers": 9}, {}, "'confident' is not 'gnmax'"),
        ({"aggregator": "gnmax", "answers": 9, "sigma": 4}, {}, "aggregation.sigma is given, too"),
        ({"aggregator": "gnmax", "answers": 9}, {"guarantee": "data-dependent"}, "worst-case"),
        ({"aggregator": "gnmax", "answers": 0}, {}, "aggregation.answers must be at least 1"),
    ],
)
def test_a_number_of_answers_needs_noise_that_it_can_decide_on(aggregation, privacy, message):
    refused(message, aggregation=aggregation, privacy=privacy)


def test_a_number_of_answers_decides_on_the_noise():
    budgets = {"high": Budget(1.0), "low": Budget(3.0)}
    plan = Weighting().plan(budgets, {"high": 600, "low": 400}, 250)
    asked = config(aggregation={"aggregator": "gnmax", "answers": 500})
    assert asked.aggregator(plan).sigma == least_sigma(plan.electorate(0), 500)
