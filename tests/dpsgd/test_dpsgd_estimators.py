"""The estimators of direct training: scikit-learn's manners, nobody over budget, nothing private kept."""

import doctest
import inspect
import math
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import collegium as cg
from collegium import PrivacyWarning
from collegium.dpsgd.by_rule import signal
from collegium.dpsgd.estimator_base import usual_preprocessing
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError, StudentWarning
from collegium.models.preprocessing.crossed_table import CrossedTable
from collegium.parameters import settings_of
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.runs.records import Records

DIGITS, CLASSES_OF_DIGITS = load_digits(return_X_y=True)
N, PUBLIC = 300, 100
X, Y = DIGITS[:N], CLASSES_OF_DIGITS[:N]
X_PUBLIC, Y_PUBLIC = DIGITS[N : N + PUBLIC], CLASSES_OF_DIGITS[N : N + PUBLIC]
X_TEST, Y_TEST = DIGITS[600:900], CLASSES_OF_DIGITS[600:900]
POLICY = cg.Policy({"high": 1.0, "low": 3.0})
LEVELS = np.where(np.arange(N) % 4 == 0, "high", "low")
BUDGETS = POLICY.assign(LEVELS)

pytestmark = pytest.mark.filterwarnings("ignore::collegium.PrivacyWarning")


def classifier(**settings):
    return cg.DPSGDClassifier(**{"steps": 6, "classes": range(10), "noise_seed": 1, **settings})


def fit(model=None, **given):
    model = classifier() if model is None else model
    return model.fit(given.pop("X", X), given.pop("y", Y), **{"budgets": BUDGETS, **given})


def bits(model):
    return model.model_[-1].coef_ if model.preprocessing_ is None else model.model_[-1][-1].coef_


def numbers(n=400, seed=0):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(n, 5))
    return features, features @ [1.0, -2.0, 0.5, 0.0, 1.0] + generator.normal(size=n)


@pytest.mark.parametrize("public", [None, X_PUBLIC])
def test_same_bits_as_the_run_that_every_face_shares(public):
    model = fit(classifier(noise_seed=5, learning_rate=2.0), X_public=public)
    preprocessing = None if public is None else usual_preprocessing(public)
    recipe = DPSGDRecipe(DPSGDSettings(steps=6, learning_rate=2.0), preprocessing, noise_seed=5)
    run = DPSGDRun(recipe, Records(X, Y, BUDGETS, np.arange(10), public))
    learnt = run.learn()
    assert (bits(model) == run.model(learnt)[-1].coef_).all()
    assert model.privacy_.groups == learnt.privacy.groups


def test_every_setting_of_a_dpsgd_is_a_parameter_with_its_one_default():
    for model in (cg.DPSGDClassifier, cg.DPSGDRegressor):
        parameters = inspect.signature(model).parameters
        of_sampling = cg.Sampling().settings()
        for name, about in settings_of(DPSGDSettings).items():
            # An estimator is given labels, or not; and a learning rate, or none.
            if name in ("public_labels", "solver"):
                continue
            own = parameters[name].default if name in parameters else of_sampling[name]
            assert own == about.default == of_sampling.get(name, about.default), name


def test_scikit_learns_manners():
    model = fit(classifier(momentum=0.5, random_state=3), X_public=X_PUBLIC)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "model_")
    with pytest.raises(Exception, match="not fitted"):
        copy.predict(X)
    copy.set_params(steps=3, learning_rate=1.0)
    assert fit(copy).steps_taken_ == 3
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X_TEST) == model.predict(X_TEST)).all()
    assert again.plan_ == model.plan_
    beliefs = model.predict_proba(X_TEST)
    assert beliefs.shape == (len(X_TEST), 10) and np.allclose(beliefs.sum(axis=1), 1)
    assert (model.classes_[beliefs.argmax(axis=1)] == model.predict(X_TEST)).all()
    assert (model.model_.predict(X_TEST) == model.predict(X_TEST)).all()  # what is published
    assert model.score(X_TEST, Y_TEST) == np.mean(model.predict(X_TEST) == Y_TEST) > 0.3
    assert model.quality(X_TEST, Y_TEST).verdict.startswith("The model is better")
    assert model.decision_function(X_TEST).shape == (len(X_TEST), 10)
    with pytest.raises(InputError, match="is expecting 64 features"):
        model.predict(X_TEST[:, :5])


class OpenHanded(cg.DPSGDClassifier):
    """Fits on (X, y) alone, as scikit-learn's checks do: budgets are ample."""

    def fit(self, X, y):
        return super().fit(X, y, budgets=1e4)


@parametrize_with_checks(
    [OpenHanded(steps=2, noise_seed=1)],
    expected_failed_checks=lambda estimator: {
        "check_dtype_object": "numbers among objects are one private cell away from text"
    },
)
def test_scikit_learns_rules_for_direct_training(estimator, check):
    check(estimator)


def test_settings_can_be_searched():
    search = GridSearchCV(classifier(), {"learning_rate": [0.5, 2.0]}, cv=2)
    search.fit(X, Y, budgets=BUDGETS)
    assert set(search.cv_results_["param_learning_rate"]) == {0.5, 2.0}


MANY = [f"person {i}" for i in range(N)]


def without_noise_seed(**settings):
    return classifier(steps=2, noise_seed=None, **settings)


@pytest.mark.parametrize(
    "search",
    [
        lambda fit: GridSearchCV(
            without_noise_seed(), {"learning_rate": [0.5, 2.0]}, cv=2, error_score="raise"
        ).fit(X, Y, **fit),
        lambda fit: cross_val_score(
            without_noise_seed(), X, Y, cv=2, params=fit, error_score="raise"
        ),
        lambda fit: CalibratedClassifierCV(without_noise_seed(), cv=2).fit(X, Y, **fit),
    ],
)
def test_a_search_with_a_ledger_spends_nothing(search, tmp_path):
    """Its first fit would spend all that the others need."""
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    fit = {"budgets": POLICY.assign(LEVELS, owners=MANY), "ledger": ledger}
    with pytest.raises(InputError, match="fits many times, and every fit with a ledger") as refusal:
        search(fit)
    assert "\n" not in str(refusal.value)
    assert not ledger.standings()
    make_pipeline(without_noise_seed()).fit(
        X, Y, **{f"dpsgdclassifier__{name}": value for name, value in fit.items()}
    )
    assert ledger.standings()


def test_each_fit_of_a_search_without_a_ledger_is_told_of():
    with pytest.warns(PrivacyWarning, match="times in this process"):
        GridSearchCV(without_noise_seed(), {"learning_rate": [0.5]}, cv=2).fit(
            X, Y, budgets=POLICY.assign(LEVELS, owners=[f"searched {i}" for i in range(N)])
        )


def test_columns_go_by_name_and_by_what_public_records_show():
    table = pd.DataFrame(X[:, 2:8], columns=list("abcdef")).assign(kind=np.where(Y > 4, "x", "y"))
    public, private = table.iloc[:PUBLIC], table.iloc[PUBLIC:]
    budgets = cg.Budgets.from_epsilons(np.full(len(private), 5.0))
    model = classifier().fit(private, Y[PUBLIC:], budgets=budgets, X_public=public)
    assert isinstance(model.preprocessing_, CrossedTable)
    assert list(model.feature_names_in_) == [*"abcdef", "kind"]
    turned = private[list(reversed(private.columns))]
    assert (model.predict(turned) == model.predict(private)).all()
    with pytest.raises(InputError, match="feature names should match"):
        model.predict(private.rename(columns={"a": "z"}))
    with pytest.raises(InputError, match="other columns"):
        classifier().fit(private, Y[PUBLIC:], budgets=budgets, X_public=public.drop(columns="a"))
    with pytest.raises(
        InputError, match=r"column kind .* give X_public"
    ):  # nothing read off private ones
        classifier().fit(private, Y[PUBLIC:], budgets=budgets)
    numbers_alone = private.drop(columns="kind").astype({"a": "Int64", "b": bool})
    numbers_alone.loc[PUBLIC, "a"] = pd.NA
    classifier().fit(numbers_alone, Y[PUBLIC:], budgets=budgets)


@pytest.mark.parametrize("model", [cg.DPSGDClassifier, cg.DPSGDRegressor])
def test_nothing_private_is_in_what_is_fitted(model):
    """Every value of a marked person is looked for, in all spellings that records pass through."""
    marked, y = X.astype(float).copy(), Y.copy()
    marked[7] = 0.123456789 + np.arange(64) / 1000
    target = {"classes": range(10)} if model is cg.DPSGDClassifier else {"bounds": (0, 9)}
    names = np.array([f"person {i}" for i in range(N)])
    budgets = POLICY.assign(LEVELS, owners=names)
    target["components"] = 20  # by rule more for more people
    fitted = model(steps=3, noise_seed=1, **target).fit(
        marked, y, budgets=budgets, X_public=X_PUBLIC, y_public=Y_PUBLIC
    )
    kept = pickle.dumps(fitted)
    for value in (*marked[7], *(marked[7] / np.linalg.norm(marked[7]))):
        assert np.float64(value).tobytes() not in kept
        assert np.float64(value).tobytes()[::-1] not in kept
    assert b"person 7" not in kept
    few = model(steps=3, noise_seed=1, **target).fit(
        X[:50], y[:50], budgets=POLICY.assign(LEVELS[:50]), X_public=X_PUBLIC, y_public=Y_PUBLIC
    )
    assert len(kept) - len(pickle.dumps(few)) < 5_000  # 250 records of 64 numbers alone are 128,000
    assert marked.tobytes() in pickle.dumps((fitted, marked))  # it would be found


@pytest.mark.parametrize("sampling", ["full-batch", cg.Sampling("sample", 0.2, accountant="rdp")])
def test_nobody_pays_more_than_granted_and_the_table_says_what(sampling):
    model = fit(classifier(sampling=sampling))
    table = model.privacy_.by_group()
    assert (table["epsilon_spent"] <= table["epsilon"]).all()
    assert (table["spent_share"] > 0.99).all()
    assert "NOT PRIVATE" in model.privacy_.title
    assert "NOT PRIVATE" not in fit(classifier(noise_seed=None)).privacy_.title


def test_a_plan_costs_nothing_and_is_that_of_the_fit():
    plan = classifier().plan(BUDGETS)
    assert isinstance(plan, DPSGDPlan) and plan == fit().plan_
    table = plan.by_group()
    assert table["all_steps"].to_dict() == pytest.approx({"high": 1.0, "low": 3.0}, abs=1e-9)
    assert table["first_step"].to_dict() == plan.epsilon(1)
    assert table["say"].sum() == pytest.approx(1)
    assert (table["noise_multiplier"] * table["weight"]).to_numpy() == pytest.approx(plan.noise)
    assert "6 steps of full-batch" in str(plan) and "Signal to noise" in str(plan)
    assert classifier().plan(2.0, n_records=50).groups["ε=2"].owners == 50
    assert classifier(neighbours="replace-one").plan(BUDGETS).noise == pytest.approx(2 * plan.noise)


def test_who_granted_nothing_changes_no_bit():
    with_zeros = np.concatenate([X, X[:20] + 5.0, np.full((1, 64), np.nan)])
    y = np.concatenate([Y, Y[:20], [3]])
    levels = np.concatenate([LEVELS, ["none"] * 21])
    budgets = cg.Policy({"high": 1.0, "low": 3.0, "none": 0}).assign(levels)
    assert (bits(fit(X=with_zeros, y=y, budgets=budgets)) == bits(fit())).all()


def test_missing_numbers_are_zero_and_say_nothing_about_others():
    broken = X.astype(float).copy()
    broken[5, 3], broken[6, 1] = np.nan, np.inf
    zero = broken.copy()
    zero[5, 3] = zero[6, 1] = 0.0
    assert (bits(fit(X=broken)) == bits(fit(X=zero))).all()
    model = fit(X=broken)
    assert (model.predict(broken[4:7]) == model.predict(zero[4:7])).all()


@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e-100, 1e-20, 1e200, 1e306])
def test_rows_of_any_length_count_alike(unit):
    """Directions are what a model weighs: also of rows whose squares no float holds."""
    digits = (X - 8.0) if unit == 1e-320 else X / 16.0
    usual, far = fit(X=digits), fit(X=digits * unit)
    assert far.score(X=digits * unit, y=Y) == pytest.approx(usual.score(digits, Y), abs=0.01)
    assert np.allclose(bits(usual), bits(far), atol=0.02)
    assert (fit(X=X / 16.0).model_[-1].coef_ == fit(X=np.ldexp(X, 900)).model_[-1].coef_).all()


def test_what_only_longer_floats_hold_counts_as_no_number():
    broken, long = X.astype(float), X.astype(np.longdouble)
    broken[5, 3], long[5, 3] = np.inf, np.longdouble("1e4000")
    assert (bits(fit(X=long)) == bits(fit(X=broken))).all()


def test_public_records_that_32_bits_cannot_tell_apart_are_refused():
    with pytest.raises(InputError, match="lost in 32 bits: give all records in another unit"):
        fit(X=X[:, :60] * 1e-50, X_public=X_PUBLIC[:, :60] * 1e-50)  # no images


@pytest.mark.parametrize("model", [cg.DPSGDClassifier, cg.DPSGDRegressor])
def test_budgets_that_buy_noise_alone_are_told_in_public_numbers(model):
    target = {"classes": [0, 1]} if model is cg.DPSGDClassifier else {"bounds": (0, 1)}
    made, y = model(steps=5, noise_seed=1, **target), (Y > 4).astype(int)

    def told(n, epsilon, **given):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made.fit(X[:n], y[:n], budgets=epsilon, **given)
        said = [str(one.message) for one in caught]
        return [line for line in said if line.startswith("these budgets buy")]

    (line,) = told(1, 1.0)
    found = signal(made.plan_)
    assert (
        f"all 1 people together, if they agreed, would move a model by {found:.2g} standard" in line
    )
    assert f"about {math.ceil(2 / found)} people with such budgets" in line
    assert told(math.ceil(2 / found), 1.0) == []
    assert told(N, 1.0) == [] and len(told(N, 1e-3)) == 1
    (same,) = told(N, 1e-3, X_public=X_PUBLIC)  # nothing but budgets and classes
    assert same == told(N, 1e-3)[0]


def test_one_person_may_have_a_thousand_records_and_a_group_one_member():
    many = np.concatenate([np.repeat(X[:1], 1000, axis=0), X[1:]])
    y = np.concatenate([np.repeat(Y[:1], 1000), Y[1:]])
    owners = np.concatenate([np.zeros(1000, int), np.arange(1, N)])
    levels = np.concatenate([["alone"] * 1000, LEVELS[1:]])
    policy = cg.Policy({"alone": 2.0, "high": 1.0, "low": 3.0})
    budgets = policy.assign(levels, owners=owners)
    table = fit(X=many, y=y, budgets=budgets).privacy_.by_group()
    assert table.loc["alone", "owners"] == 1 and table.loc["alone", "epsilon_spent"] <= 2.0


def test_public_labels_help_and_cost_nothing():
    tiny = {"budgets": 0.01, "X_public": X_PUBLIC}
    cold = fit(classifier(), **tiny)
    warm = fit(classifier(), y_public=Y_PUBLIC, **tiny)
    assert warm.score(X_TEST, Y_TEST) > cold.score(X_TEST, Y_TEST) + 0.3
    assert warm.privacy_.groups == cold.privacy_.groups
    some = Y_PUBLIC.astype(object).copy()
    some[50:] = None
    assert fit(classifier(), y_public=some, **tiny).score(X_TEST, Y_TEST) > 0.4
    assert "cross-validated" in warm.quality_.measured_on
    with pytest.raises(InputError, match="give X_public"):
        fit(y_public=Y_PUBLIC)
    with pytest.raises(InputError, match="not among the classes"):
        fit(X_public=X_PUBLIC, y_public=np.full(PUBLIC, 77))


def test_records_that_people_let_be_published_are_where_it_starts_and_nobody_pays_for_them():
    policy = cg.Policy({"high": 0.01, "gift": math.inf}, public=["gift"])
    levels = np.where(np.arange(N) < 150, "gift", "high")
    model = fit(budgets=policy.assign(levels))
    assert list(model.privacy_.by_group().index) == ["high"]
    assert model.score(X_TEST, Y_TEST) > 0.6
    assert any("let their records be published" in line for line in model.privacy_.provisos)


def test_it_says_what_it_can_without_a_known_class():
    assert fit().quality_ is None
    with pytest.warns(StudentWarning, match="The model answers “"):
        lone = fit(classifier(steps=1), y=np.full(N, 4), X_public=X_PUBLIC, budgets=50.0)
    assert lone.quality_.names_one_class and lone.quality_.better is None
    assert "is unknown" in fit(X_public=X_PUBLIC).quality_.verdict


def test_each_step_is_told_with_what_is_spent_and_may_be_the_last():
    told = []

    def on_step(progress):
        told.append((progress.step, dict(progress.epsilon)))
        assert progress.model.predict(X_PUBLIC).shape == (PUBLIC,)
        assert progress.steps == 6 and progress.seconds_left >= 0
        return progress.step == 4

    model = fit(X_public=X_PUBLIC, on_step=on_step)
    assert [step for step, _ in told] == [1, 2, 3, 4] and model.steps_taken_ == 4
    assert model.privacy_.by_group()["epsilon_spent"].to_dict() == told[-1][1]
    assert told[-1][1] == model.plan_.epsilon(4)
    assert all(model.plan_.epsilon(6)[name] > spent for name, spent in told[-1][1].items())


def test_who_keeps_what_was_told_keeps_no_record():
    told = []
    fit(X=X[:, :60], X_public=X_PUBLIC[:, :60], on_step=told.append)  # no images
    kept = pickle.dumps(told)
    again = pickle.loads(kept)[-1]
    assert (again.model.predict(X_TEST[:, :60]) == told[-1].model.predict(X_TEST[:, :60])).all()
    assert len(kept) < 150_000  # 6 states; the records alone are as much
    assert X.tobytes() not in kept and X[:1].tobytes() not in kept


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y": "a"}, "300 test records, but an array of shape|must be one column of numbers"),
        ({"y": Y_TEST[:5]}, "300 test records, but 5"),
        ({"y": X_TEST}, "300 test records, but an array|one column"),
        ({"sample_weight": "a"}, "an array of shape .. of weights"),
        ({"sample_weight": [1.0]}, "300 test records, but 1 weights"),
        ({"sample_weight": np.full(300, np.nan)}, "finite numbers of at least 0"),
        ({"sample_weight": np.full(300, -1)}, "finite numbers of at least 0"),
        ({"sample_weight": ["many"] * 300}, "finite numbers of at least 0"),
        ({"X": None}, "new records are missing"),
    ],
)
@pytest.mark.parametrize("numbers", [False, True])
def test_what_cannot_be_scored_is_said_in_one_line(given, said, numbers):
    model = cg.DPSGDRegressor(bounds=(0, 9), noise_seed=1, steps=2) if numbers else classifier()
    model = fit(model)
    with pytest.raises(InputError, match=said) as refusal:
        model.score(**{"X": X_TEST, "y": Y_TEST, **given})
    assert "\n" not in str(refusal.value)
    weights = np.arange(300) / 7
    assert model.score(X_TEST, Y_TEST, sample_weight=weights) != model.score(X_TEST, Y_TEST)


def test_progress_is_written_with_the_time_left(capsys):
    fit(classifier(verbose=2))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6 and "s left" in lines[0] and lines[-1] == "step 6 of 6, done"
    fit(classifier(verbose=0))
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "given", "said"),
    [
        ({"steps": 0}, {}, "^steps must be at least 1"),
        ({"sampling__rate": 0.1}, {}, "rate goes with sampling"),
        ({"sampling": "sample"}, {}, "^rate goes with sampling"),
        (
            {"sampling__kind": "sample", "sampling__rate": 1.5},
            {},
            "rate must be at least 0.0001 and below 1",
        ),
        (
            {"sampling": "some"},
            {},
            "^sampling must be one of full-batch, sample, scale, got 'some'",
        ),
        ({"sampling": 3}, {}, "^sampling must be a word such as 'full-batch', or one such as"),
        ({"sampling__rates": 0.1}, {}, "has no parameter 'rates': allowed are kind, rate"),
        ({"steps": 100_000}, {"budgets": 1e-6}, "lower steps"),
        ({}, {"y": np.full(N, 77)}, "not among the classes"),
        ({}, {"y": Y[:-1]}, "300 private records, but 299 labels"),
        ({}, {"budgets": cg.Budgets.from_epsilons([1.0, 2.0])}, "but 2 budgets"),
        ({}, {"X": X.astype(str)}, "give an array of numbers"),
        ({}, {"X": X.reshape(N, 8, 8)}, "flatten images"),
        ({}, {"X_public": X_PUBLIC[:, :9]}, "give both the same features"),
        ({}, {"X_public": X[:PUBLIC]}, "public_may_overlap"),
        ({}, {"budgets": math.inf}, "every budget is unlimited"),
        ({"preprocessing": StandardScaler()}, {}, "fitted on public records, and there are none"),
        ({"preprocessing": "whiten"}, {}, "must be 'auto', None or a transformer"),
        ({"n_jobs": 0}, {}, "n_jobs must be"),
        ({"noise_seed": -1}, {}, "noise_seed"),
        ({"verbose": "loud"}, {}, "verbose"),
        ({"clip_norm": 1e-9}, {}, "too small for exact sums"),
        (
            {"sampling": cg.Sampling("sample", rate=0.1), "neighbours": "replace-one"},
            {},
            "^neighbours = 'replace-one' was given with sampling = 'sample'.*use sampling 'full-batch'",
        ),
        ({}, {"y": None}, "labels are missing"),
        ({}, {"budgets": 0.0}, "everybody granted nothing"),
    ],
)
def test_bad_input_is_told_in_one_line_before_anything_is_spent(settings, given, said):
    model = fit()
    with pytest.raises(InputError, match=said) as caught:
        fit(model.set_params(**settings), **given)
    assert "\n" not in str(caught.value)
    if not any("__" in name for name in settings):  # of which some are refused when they are set
        assert not hasattr(model, "model_") and not hasattr(model, "privacy_")


def test_what_belongs_to_sampling_can_be_searched_and_parameters_are_few():
    model = cg.DPSGDClassifier(sampling=cg.Sampling("sample", rate=0.1))
    assert model.get_params()["sampling__rate"] == 0.1
    other = clone(model).set_params(sampling__rate=0.2)
    assert (model.sampling.rate, other.sampling.rate) == (0.1, 0.2)
    filtered = cg.DPSGDRegressor().set_params(sampling__individual_filter=1.5)
    assert filtered.sampling == cg.Sampling("full-batch", individual_filter=1.5)
    for estimator in (cg.DPSGDClassifier(), cg.DPSGDRegressor()):
        assert len(estimator.get_params(deep=False)) <= 16


def test_a_list_of_classes_read_off_private_labels_is_told_everywhere():
    with pytest.warns(PrivacyWarning, match="taken from the private labels"):
        model = fit(classifier(classes=None))
    assert "Not covered: the list of class names" in model.privacy_.adjacency
    assert "Not covered" not in fit().privacy_.adjacency


def test_warnings_point_to_the_line_that_called_fit():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier(classes=None, learning_rate=1e4).fit(X, Y, budgets=POLICY.assign(LEVELS))
    assert len(caught) >= 2 and {one.filename for one in caught} == {__file__}


@pytest.mark.parametrize(("name", "least"), [("dpsgd.md", 20), ("dpsgd-proofs.md", 5)])
def test_what_the_pages_show_is_so(name, least):
    page = Path(__file__).parents[2] / "docs" / name
    results = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.attempted > least and not results.failed


def test_threads_change_no_bit():
    assert (bits(fit(classifier(n_jobs=1))) == bits(fit(classifier(n_jobs=2)))).all()


class TestNumbers:
    def model(self, **settings):
        return cg.DPSGDRegressor(**{"bounds": (-6, 6), "noise_seed": 1, "steps": 30, **settings})

    def fitted(self, y=None, **settings):
        features, target = numbers()
        given = {name: settings.pop(name) for name in ("y_public",) if name in settings}
        model = self.model(**settings)
        y = target[:300] if y is None else y
        return model.fit(features[:300], y, budgets=5.0, X_public=features[300:], **given)

    def test_it_learns_and_stays_within_its_bounds(self):
        model = self.fitted()
        features, target = numbers(400, seed=1)
        assert model.score(features, target) > 0.6
        assert model.bounds_ == (-6.0, 6.0)
        predicted = self.fitted(bounds=(-1, 1)).predict(features)
        assert predicted.min() >= -1 and predicted.max() <= 1
        assert np.allclose(
            model.model_.predict(features).clip(-6, 6), model.predict(features), atol=1e-5
        )
        assert (model.privacy_.by_group()["epsilon_spent"] <= 5.0).all()
        assert pickle.loads(pickle.dumps(model)).plan_ == clone(model).set_params().plan(
            5.0, n_records=300
        )

    def test_targets_beyond_the_bounds_are_cut(self):
        _, target = numbers()
        far = target[:300].copy()
        far[far > 2] = 1e9
        one, two = self.fitted(far, bounds=(-2, 2)), self.fitted(bounds=(-2, 2))
        assert (one.model_[-1][-1].coef_ == two.model_[-1][-1].coef_).all()

    def test_bounds_are_public_or_those_of_public_targets(self):
        _, target = numbers()
        model = self.fitted(bounds=None, y_public=target[300:])
        assert model.bounds_ == (target[300:].min(), target[300:].max())
        for wrong in (None, (1,), (2, 1), (0, math.inf), (0, math.nan), "wide", 3):
            with pytest.raises(InputError, match=r"bounds (are|must)"):
                self.fitted(bounds=wrong)

    @pytest.mark.parametrize(
        ("y", "said"),
        [
            (["seven"] * 300, "300 record.s. whose target is no finite number"),
            ([1.0] * 299 + [math.nan], "1 record.s. whose target is no finite number"),
            ([[1.0, 2.0]] * 300, "one column"),
            ([1.0] * 299, "but 299 labels"),
        ],
    )
    def test_bad_targets(self, y, said):
        with pytest.raises(InputError, match=said):
            self.fitted(y)


def test_images_of_another_size_are_refused_and_flattened_ones_are_the_same():
    random = np.random.default_rng(0)
    X = random.random((260, 16, 16))
    y = (X[:, :8].mean(axis=(1, 2)) > 0.5).astype(int)
    model = cg.DPSGDClassifier(classes=[0, 1], noise_seed=1, steps=3)
    model.fit(X[:150], y[:150], budgets=5.0, X_public=X[150:])
    expected = model.predict(X[:20])
    for same in (X[:20].reshape(20, 256), X[:20, :, :, None]):
        assert (model.predict(same) == expected).all()
    for other in (
        random.random((5, 20, 20)),
        random.random((5, 16)),
        random.random((5, 16, 16, 3)),
    ):
        with pytest.raises(
            InputError, match=r"records of shape .* fitted to records of shape \(16, 16"
        ):
            model.predict(other)
