"""collegium statement: what a release says to programs, computed again from that alone."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from collegium import CollegiumError
from collegium.accounting.neighbours import Arrangement
from collegium.cli.main import app
from collegium.study.journal import FileJournal
from collegium.study.registry import record_of
from collegium.study.terms import read_terms

dp = pytest.importorskip("dp_accounting")
from dp_accounting import pld  # noqa: E402
from dp_accounting.pld.privacy_loss_mechanism import (  # noqa: E402
    AdjacencyType,
    GaussianPrivacyLoss,
)

from tests.accounting.a_stranger import dp_event, exact_mu_squared  # noqa: E402
from tests.settings_file import settings  # noqa: E402

SCHEMA = Path(__file__).parents[2] / "docs" / "statement.schema.json"
EXACT = 1e-9
SIGMA = ("aggregation.sigma = 30",)
SETTINGS = {
    "histograms": ["aggregation.release = 'histogram'", *SIGMA],
    "vanishing": [
        "aggregation.release = 'histogram'",
        *SIGMA,
        "personalisation.method = 'vanishing'",
    ],
    "labels": ["privacy.price = 'labels'", *SIGMA],
    "lnmax": ["aggregation.aggregator = 'lnmax'", "aggregation.gamma = 0.05"],
    "data-dependent": ["privacy.guarantee = 'data-dependent'", *SIGMA],
    "seeded": [*SIGMA, "aggregation.noise = 'seeded'", "aggregation.noise_seed = 3"],
}


def command(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory, house):
    """Label jobs by name, each made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("jobs"), {}
    np.save(folder / "votes.npy", house.predictions(400, 100))
    rows = "\n".join(["1"] * 54 + ["2"] * 37 + ["3"] * 9)
    (folder / "teachers.csv").write_text(f"epsilon\n{rows}\n", encoding="utf-8")

    def job(name):
        if name not in made:
            made[name] = folder / name
            result = command(
                "label", "--votes", folder / "votes.npy", "--budgets", folder / "teachers.csv",
                "--classes", 4, "--votes-are", "predictions", "--out", made[name],
                *settings(folder, "aggregation.max_labels = 6", *SETTINGS[name]),
            )  # fmt: skip
            assert result.exit_code == 0, result.output
        return made[name]

    return job


def said(job, form="json"):
    result = command("statement", job, "--format", form)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def deltas(mu, epsilons):
    one = GaussianPrivacyLoss(1 / mu, adjacency_type=AdjacencyType.REMOVE)
    return [one.get_delta_for_epsilon(epsilon) for epsilon in epsilons]


def by_pld(group):
    accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(dp.ComposedDpEvent([dp_event(use) for use in group["events"]]))
    return accountant.get_epsilon(group["spent"]["delta"])


@pytest.mark.parametrize("name", SETTINGS)
def test_every_statement_follows_its_schema(jobs, name):
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    content = said(jobs(name))
    Draft202012Validator(schema).validate(content)
    assert content["guarantee"]["noise_is_private"] == (name != "seeded")
    assert sum(group["teachers"] for group in content["groups"]) == 100


@pytest.mark.parametrize("name", ["histograms", "vanishing"])
def test_what_was_spent_is_recomputed_from_the_statement_alone(jobs, name):
    content = said(jobs(name))
    assert content["guarantee"]["gaussian"]
    for group in content["groups"]:
        spent, promised = group["spent"], group["promised"]
        mu = math.sqrt(math.fsum(map(exact_mu_squared, group["events"])))
        assert spent["mu"] == pytest.approx(mu, rel=EXACT)
        assert spent["epsilon"] == pytest.approx(
            dp.get_epsilon_gaussian(1 / mu, spent["delta"]), rel=EXACT
        )
        assert by_pld(group) == pytest.approx(spent["epsilon"], abs=2e-3)
        limit = 1 / dp.get_sigma_gaussian(promised["epsilon"], promised["delta"])
        assert promised["mu"] == pytest.approx(limit, rel=EXACT) and mu <= limit
        for its in (spent, promised):
            at = [point["epsilon"] for point in its["profile"]]
            found = [point["delta"] for point in its["profile"]]
            assert found == pytest.approx(deltas(its["mu"], at), rel=1e-6, abs=1e-12)
            assert len(at) > 5 and found == sorted(found, reverse=True)


@pytest.mark.parametrize("name", ["labels", "lnmax"])
def test_what_was_charged_otherwise_says_what_holds(jobs, name):
    content = said(jobs(name))
    assert not content["guarantee"]["gaussian"]
    assert content["mechanism"]["price"] == ("labels" if name == "labels" else "histogram")
    for group in content["groups"]:
        spent, promised = group["spent"], group["promised"]
        assert 0 < spent["epsilon"] <= promised["epsilon"]
        within = dp.get_epsilon_gaussian(1 / spent["mu"], spent["delta"])
        if name == "labels":  # μ is of the noise on all counts; ε is of Rényi DP, at one order
            assert by_pld(group) == pytest.approx(within, abs=2e-3)
            mu = math.sqrt(math.fsum(map(exact_mu_squared, group["events"])))
            assert spent["mu"] == pytest.approx(mu, rel=EXACT)
            assert spent["mu"] <= promised["mu"]
        else:
            assert by_pld(group) <= spent["epsilon"] + 2e-3
            assert spent["epsilon"] <= within * (1 + EXACT) and "mu" not in promised


def test_nothing_that_was_spent_is_told_of_a_data_dependent_account(jobs):
    for form in ("json", "registry"):
        text = json.dumps(said(jobs("data-dependent"), form))
        assert not any(word in text for word in ('"spent"', '"events"', "noise_multiplier", '"mu"'))
        assert "sensitive" in text


def test_text_says_the_same_in_words(jobs):
    content, text = said(jobs("histograms")), command("statement", jobs("histograms")).stdout
    assert all(sentence in text for sentence in content["statement"])
    assert text.count("Gaussian DP of group") == len(content["groups"]) == 3
    assert "6 labels were released" in text
    assert said(jobs("histograms")) == json.loads(
        command("statement", jobs("histograms"), "--json").stdout
    )


# Names of the registry's fields, and whether they are required there: schemas/deployments-schema.yaml of
# opendp/deployments-registry-data at commit 057e5d8.
REGISTRY = {
    "basic": {
        "name": True, "data_curators": True, "description": True, "intended_use": True,
        "data_product_type": True, "data_product_region": True, "data_product_sector": False,
        "publication_date": True,
    },
    "dp_variant": {"variant_name": False, "data_domain": False, "unprotected_quantities": False},
    "privacy_loss": {
        "privacy_unit": False, "privacy_unit_details": False, "number_of_privacy_units": False,
        "privacy_parameters": False, "privacy_parameters_details": False,
    },
    "deployment_model": {
        "model_name": False, "model_name_details": False, "trust_assumptions": False, "actors": False,
        "release_type": False, "release_type_details": False, "data_source_type": False,
        "data_source_type_details": False, "access_type": False, "access_type_details": False,
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": False, "mechanisms": False, "composition": False,
        "post_processing": False, "justification": False, "utility": False,
        "additional_information": False,
    },
    "administrative": {
        "evidence_sources": False, "status": True, "registry_authors": True, "tier": True,
    },
}  # fmt: skip
CHOICES = {
    "data_product_type": {
        "Summary statistics",
        "Machine learning model",
        "Dataset",
        "Synthetic data",
    },
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static", "Dynamic"},
    "access_type": {"Interactive", "Non-interactive"},
    "status": {"Draft"},
    "tier": {1, 2, 3},
}


@pytest.mark.parametrize("name", ["histograms", "labels", "lnmax", "data-dependent"])
def test_a_record_has_the_registrys_fields_and_one_extension(jobs, name):
    record, content = said(jobs(name), "registry"), said(jobs(name))
    assert set(record) == {"url_slug", "deployment"}
    assert list(record["deployment"]) == list(REGISTRY)
    loss = record["deployment"]["privacy_loss"]
    extension = loss.pop("individual_budgets")
    for section, fields in REGISTRY.items():
        told = record["deployment"][section]
        assert set(told) <= set(fields)
        assert set(told) >= {field for field, required in fields.items() if required}
        for field, value in told.items():
            assert value in CHOICES.get(field, [value])
            if field not in (
                "data_curators",
                "number_of_privacy_units",
                "privacy_parameters",
                "tier",
            ):
                assert isinstance(value, list if field == "registry_authors" else str)
    assert loss["privacy_parameters"] == {"epsilon": 3.0, "delta": 1e-5}
    assert loss["number_of_privacy_units"] == 100
    assert loss["privacy_unit"] == "the data of one teacher"
    one_data_set = (
        name == "data-dependent"
    )  # which is no differential privacy towards other data sets
    variant = record["deployment"]["dp_variant"]["variant_name"]
    assert variant == ("Custom" if one_data_set else "Approximate DP")
    assert loss["privacy_parameters_details"].startswith("Data-dependent") == one_data_set
    words = {"histograms": "exact Gaussian", "labels": "labels alone", "lnmax": "pure epsilons"}
    composition = record["deployment"]["implementation"]["composition"]
    assert words.get(name, "computed from raw votes") in composition
    assert extension["schema"] == content["schema"]
    for its, group in zip(extension["groups"], content["groups"], strict=True):
        assert its["name"] == group["group"]
        assert its["number_of_privacy_units"] == group["teachers"]
        assert its["privacy_parameters"]["epsilon"] == group["promised"]["epsilon"]
        for key in ("spent", "events"):
            assert its.get(key) == group.get(key)


def test_a_record_of_people_says_what_is_theirs(jobs):
    content, arrangement = said(jobs("histograms")), Arrangement()
    terms = replace(read_terms(jobs("histograms"))[0], arrangement=arrangement)
    content["unit"], content["name"], content["released"]["student"] = "owner", "Animals", True
    for group in content["groups"]:
        group["people"] = group.pop("teachers")
    deployment = record_of(content, terms)["deployment"]
    basic, loss = deployment["basic"], deployment["privacy_loss"]
    assert (basic["name"], basic["data_product_type"]) == ("Animals", "Machine learning model")
    assert loss["privacy_unit"] == "one person (all their records)"
    assert (
        "54 owners): epsilon = 1 at delta = 1e-05, within mu = 0.268051"
        in (loss["privacy_parameters_details"])
    )
    content["groups"][0]["promised"] = {"epsilon": "inf", "delta": 1e-5}
    loss = record_of(content, terms)["deployment"]["privacy_loss"]
    assert "privacy_parameters" not in loss  # no number holds for everybody
    assert "no privacy is promised" in loss["privacy_parameters_details"]


@pytest.mark.parametrize(
    ("name", "form", "message"),
    [
        ("seeded", "registry", "drawn from a seed"),
        ("histograms", "xml", "--format 'xml' is unknown"),
    ],
)
def test_what_cannot_be_said_is_refused(jobs, name, form, message):
    with pytest.raises(CollegiumError, match=message) as refusal:
        command("statement", jobs(name), "--format", form)
    assert "\n" not in str(refusal.value)


def test_a_folder_that_tells_of_nothing_or_too_little_is_refused(jobs, tmp_path, monkeypatch):
    with pytest.raises(CollegiumError, match="the folder of a study or label job"):
        command("statement", tmp_path)
    settled = FileJournal.settled
    with monkeypatch.context() as patch:
        patch.setattr(FileJournal, "settled", lambda journal: settled(journal)[:-1])
        with pytest.raises(CollegiumError, match="its release tells of"):
            command("statement", jobs("histograms"))
