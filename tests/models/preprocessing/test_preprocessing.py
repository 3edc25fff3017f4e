"""Public preprocessing: what is learned comes from the public records, record by record."""

import datetime
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from collegium import load_dataset
from collegium.errors import InputError
from collegium.models.preprocessing import PixelScaler, TabularEncoder

SETTINGS = [
    {"categorical": categorical, "scale": scale, "max_categories": limit}
    for categorical in ("ordinal", "onehot")
    for scale in ("minmax", "standard", "none")
    for limit in (None, 1)
]
PUBLIC = pd.DataFrame(
    {
        "age": [20, 60, 30, 40],
        "work": ["office", "field", "office", None],
        "income": [1.5, np.nan, 2.5, 9.5],
        "member": [True, False, True, True],
    }
)
rows = st.lists(
    st.tuples(
        st.integers(-(10**12), 10**12),
        st.sampled_from(["office", "field", "sea", "", "<missing>", None]),
        st.floats(allow_infinity=False),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def table(records):
    frame = pd.DataFrame(records, columns=PUBLIC.columns)
    return frame.astype({"work": object, "income": float})


def one_line(call, *words):
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


class TestOnlyPublicRecordsAreLearned:
    @pytest.mark.parametrize("options", SETTINGS)
    @given(private=rows)
    @settings(max_examples=8)
    def test_transform_changes_nothing(self, options, private):
        encoder = TabularEncoder(**options).fit(PUBLIC)
        before = joblib.hash(encoder)
        encoder.transform(table(private))
        assert joblib.hash(encoder) == before

    @pytest.mark.parametrize("options", SETTINGS)
    @given(private=rows, others=rows)
    @settings(max_examples=8)
    def test_each_record_by_itself(self, options, private, others):
        encoder = TabularEncoder(**options).fit(PUBLIC)
        together = encoder.transform(pd.concat([table(private), table(others)]))
        np.testing.assert_array_equal(together[: len(private)], encoder.transform(table(private)))
        assert np.isfinite(together).all()
        assert together.dtype == np.float32

    def test_numbers_near_the_largest_double_do_not_overflow(self):
        huge = table([(0, "office", 8.98846567431158e307, False), (0, "office", np.nan, False)])
        assert np.isfinite(TabularEncoder().fit(huge).transform(huge)).all()

    @given(records=rows)
    def test_fit_leaves_the_table_alone(self, records):
        frame = table(records)
        before = frame.copy(deep=True)
        TabularEncoder().fit(frame).transform(frame)
        pd.testing.assert_frame_equal(frame, before)

    @given(private=rows, categorical=st.sampled_from(["ordinal", "onehot"]))
    def test_minmax_stays_in_the_public_range(self, private, categorical):
        encoded = TabularEncoder(categorical).fit(PUBLIC).transform(table(private))
        assert encoded.min() >= 0
        assert encoded.max() <= 1

    @given(private=rows, order=st.permutations(list(PUBLIC.columns)))
    def test_order_of_columns_is_irrelevant(self, private, order):
        encoder = TabularEncoder().fit(PUBLIC)
        frame = table(private)
        np.testing.assert_array_equal(encoder.transform(frame[order]), encoder.transform(frame))

    def test_labels_are_not_looked_at(self):
        states = [joblib.hash(TabularEncoder().fit(PUBLIC, y)) for y in (None, [1, 2], "private")]
        assert len(set(states)) == 1


class TestCategories:
    def encode(self, values, **options):
        public = pd.DataFrame({"work": ["sea", "field", "sea", "office", "office", "sea"]})
        encoder = TabularEncoder(**options).fit(public)
        return encoder, encoder.transform(pd.DataFrame({"work": values})).tolist()

    def test_codes(self):
        encoder, codes = self.encode(["field", "office", "sea", None, "unseen"], scale="none")
        assert codes == [[0], [1], [2], [3], [-1]]
        assert encoder.categories_ == {"work": ["field", "office", "sea", "<missing>"]}

    def test_scaled_codes_are_all_different(self):
        values = ["field", "office", "sea", None, "unseen"]
        assert self.encode(values)[1] == [[0.25], [0.5], [0.75], [1], [0]]
        _, standard = self.encode(values, scale="standard")
        order = np.argsort(np.ravel(standard)).tolist()
        assert order == [4, 0, 1, 2, 3]
        codes = np.array([2, 0, 2, 1, 1, 2])
        expected = (np.array([0, 1, 2, 3, -1]) - codes.mean()) / codes.std()
        np.testing.assert_allclose(np.ravel(standard), expected, rtol=1e-6)

    def test_onehot(self):
        encoder, encoded = self.encode(["sea", "unseen", np.nan], categorical="onehot")
        assert encoded == [[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
        names = ["work_field", "work_office", "work_sea", "work_<missing>"]
        assert encoder.get_feature_names_out().tolist() == names

    def test_rare_ones_are_like_unseen_ones(self):
        encoder, encoded = self.encode(["sea", "field", "unseen"], max_categories=2, scale="none")
        assert encoder.categories_ == {"work": ["office", "sea", "<missing>"]}
        assert encoded == [[1], [-1], [-1]]

    @given(
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30),
        st.integers(1, 6),
        st.randoms(use_true_random=False),
    )
    def test_order_of_public_records_is_irrelevant(self, values, limit, random):
        shuffled = list(values)
        random.shuffle(shuffled)
        kept = [
            TabularEncoder(max_categories=limit).fit(pd.DataFrame({"c": some})).categories_["c"]
            for some in (values, shuffled)
        ]
        assert kept[0] == kept[1]
        assert len(kept[0]) == min(limit, len(set(values))) + 1

    @pytest.mark.parametrize(
        "values",
        [
            pd.Series(["a", "b", None], dtype="category"),
            pd.Series(["a", "b", None], dtype="string"),
            pd.Series([1, 2, None], dtype="Int64").astype("category"),
            pd.Series([1, "b", None], dtype=object),
            pd.Series([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None]),
        ],
    )
    def test_other_types(self, values):
        frame = pd.DataFrame({"c": values})
        assert TabularEncoder(scale="none").fit_transform(frame).tolist() == [[0], [1], [2]]


class TestNumbers:
    @pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
    @pytest.mark.parametrize("unit", ["s", "ns"])
    def test_dates_are_days(self, zone, unit):
        dates = pd.to_datetime(
            pd.Series(["1970-01-01T00:00", "1970-01-03T12:00", None])
        ).dt.as_unit(unit)
        frame = pd.DataFrame({"c": dates.dt.tz_localize(zone)})
        ahead = 1 / 24 if zone == "Europe/Berlin" else 0.0
        encoder = TabularEncoder(scale="none").fit(frame)
        assert encoder.numeric_columns_ == ["c"]
        days = encoder.transform(frame)[:, 0]
        assert days.tolist() == pytest.approx([-ahead, 2.5 - ahead, 1.25 - ahead], abs=1e-6)

    def test_ranges_medians_and_clipping(self):
        encoder = TabularEncoder().fit(PUBLIC[["age", "income", "member"]])
        assert encoder.medians_ == {"age": 35.0, "income": 2.5, "member": 1.0}
        private = pd.DataFrame(
            {"age": [10, 100], "income": [None, 5.5], "member": pd.array([None, False], "boolean")}
        )
        assert encoder.transform(private).tolist() == [[0, 0.125, 1], [1, 0.5, 0]]

    def test_standard(self):
        public = pd.DataFrame({"x": [1.0, 3.0]})
        encoder = TabularEncoder(scale="standard").fit(public)
        assert encoder.transform(pd.DataFrame({"x": [5.0, np.nan]})).tolist() == [[3], [0]]

    @pytest.mark.parametrize("scale", ["minmax", "standard", "none"])
    def test_constant_empty_and_huge_columns(self, scale):
        public = pd.DataFrame({"same": [7, 7], "empty": [np.nan, np.nan], "big": [1e150, -1e150]})
        encoder = TabularEncoder(scale=scale).fit(public)
        private = public.assign(same=[6, 9], empty=[-5.0, 5.0], big=[-1.7e308, 1.7e308])
        assert np.isfinite(encoder.transform(private)).all()

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "Int64", "Float64", "boolean"])
    def test_types(self, dtype):
        public = pd.DataFrame({"x": pd.array([0, 1], dtype=dtype)})
        assert TabularEncoder().fit_transform(public).tolist() == [[0], [1]]


class TestRefusals:
    encoder = TabularEncoder().fit(PUBLIC)

    def test_other_columns(self):
        one_line(
            lambda: self.encoder.transform(PUBLIC.drop(columns="age").assign(extra=1)),
            "lacks columns 'age'",
            "unknown columns 'extra'",
        )

    def test_changed_kind(self):
        changed = PUBLIC.assign(age="secret", work=1)
        one_line(lambda: self.encoder.transform(changed), "'age', 'work'", "astype")
        with pytest.raises(InputError) as caught:
            self.encoder.transform(changed)
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
    def test_column_without_values_is_no_change(self, nothing):
        empty = pd.DataFrame({c: pd.Series([nothing] * 2, dtype=object) for c in PUBLIC.columns})
        for frame in (empty, empty.replace({pd.NA: np.nan}).astype({"work": float})):
            encoded = self.encoder.transform(frame)
            np.testing.assert_array_equal(encoded[0], encoded[1])
            assert encoded[0, -1] == 1  # missing

    def test_infinite(self):
        infinite = PUBLIC.assign(income=[1, np.inf, 2, 3])
        one_line(lambda: self.encoder.transform(infinite), "'income'", "infinite")
        one_line(lambda: TabularEncoder().fit(infinite), "'income'", "infinite")

    def test_no_table(self):
        one_line(lambda: TabularEncoder().fit(np.eye(2)), "ndarray", "DataFrame")
        one_line(lambda: TabularEncoder().fit(pd.DataFrame(np.eye(2))), "not text")
        twice = pd.DataFrame(np.eye(2), columns=["a", "a"])
        one_line(lambda: TabularEncoder().fit(twice), "several columns named 'a'")
        one_line(lambda: TabularEncoder().fit(PUBLIC[:0]), "0 rows")
        one_line(lambda: TabularEncoder().fit(PUBLIC[[]]), "0 columns")

    @pytest.mark.parametrize(
        "options",
        [
            {"categorical": "one-hot"},
            {"scale": None},
            {"max_categories": 0},
            {"max_categories": 2.5},
            {"max_categories": True},
        ],
    )
    def test_settings(self, options):
        one_line(lambda: TabularEncoder(**options).fit(PUBLIC), *options, "must be", "got")

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            TabularEncoder().transform(PUBLIC)


class TestEstimatorRules:
    @pytest.mark.parametrize(
        "estimator", [TabularEncoder("onehot", "standard", 3), PixelScaler(maximum=16)]
    )
    def test_clone_and_parameters(self, estimator):
        copy = clone(estimator)
        assert copy is not estimator
        assert copy.get_params() == estimator.get_params()
        assert copy.set_params(**estimator.get_params()).get_params() == estimator.get_params()
        assert all(value is not None for value in copy.get_params().values())

    @pytest.mark.parametrize("options", SETTINGS)
    def test_set_output_and_names(self, options):
        encoder = TabularEncoder(**options).set_output(transform="pandas").fit(PUBLIC)
        frame = PUBLIC.set_index(pd.Index([5, 6, 7, 8]))
        out = encoder.transform(frame)
        assert out.columns.tolist() == encoder.get_feature_names_out().tolist()
        assert out.columns[:3].tolist() == ["age", "income", "member"]
        assert out.index.tolist() == [5, 6, 7, 8]

    @pytest.mark.parametrize("options", SETTINGS)
    def test_pickled_and_global_output(self, options):
        import sklearn

        expected = TabularEncoder(**options).fit(PUBLIC).transform(PUBLIC)
        with sklearn.config_context(transform_output="pandas"):
            encoder = TabularEncoder(**options).fit(PUBLIC)
            np.testing.assert_array_equal(encoder.transform(PUBLIC).to_numpy(), expected)
        again = pickle.loads(pickle.dumps(encoder))
        np.testing.assert_array_equal(again.transform(PUBLIC), expected)

    def test_only_numbers_only_categories_and_no_records(self):
        for columns in (["age"], ["work"], ["work", "age"]):
            encoder = TabularEncoder("onehot").fit(PUBLIC[columns])
            assert encoder.transform(PUBLIC[columns]).shape[1] == 3 * ("work" in columns) + (
                "age" in columns
            )
            empty = encoder.transform(PUBLIC[columns][:0])
            assert empty.shape == (0, len(encoder.get_feature_names_out()))

    def test_refit_forgets(self):
        encoder = TabularEncoder().fit(PUBLIC).fit(PUBLIC[["age"]])
        assert joblib.hash(encoder) == joblib.hash(TabularEncoder().fit(PUBLIC[["age"]]))

    def test_in_a_pipeline(self):
        model = make_pipeline(TabularEncoder(), LogisticRegression()).fit(PUBLIC, [0, 1, 0, 1])
        assert model.predict(PUBLIC).shape == (4,)


class TestPixelScaler:
    images = np.random.default_rng(0).integers(0, 256, (60, 5, 4, 3), dtype=np.uint8)

    def test_flattens_and_scales(self):
        out = PixelScaler().transform(self.images)
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, self.images.reshape(60, 60) / 255, rtol=1e-6)
        assert out.max() <= 1
        assert PixelScaler().transform(self.images[:0]).shape == (0, 60)

    @given(st.integers(0, 1))
    def test_independent_of_the_data_it_is_fitted_on(self, fill):
        scaler = PixelScaler(maximum=1).fit(np.full((3, 2, 2), fill))
        assert joblib.hash(scaler) == joblib.hash(PixelScaler(1).fit(np.eye(2).reshape(1, 2, 2)))

    @given(st.floats(1e-3, 1e9), st.floats(0, 1))
    def test_stays_in_range(self, maximum, share):
        out = PixelScaler(maximum).transform([[0.0, maximum * share, maximum]])
        assert out.min() >= 0
        assert out.max() == 1

    def test_leaves_images_alone(self):
        images = np.ones((2, 3), dtype=np.float32)
        PixelScaler(2).transform(images)
        assert (images == 1).all()

    def test_names_and_output(self):
        scaler = PixelScaler().set_output(transform="pandas").fit(self.images)
        assert scaler.transform(self.images).columns[-1] == "pixel59"
        with pytest.raises(NotFittedError):
            PixelScaler().get_feature_names_out()

    def test_before_components(self):
        pipeline = Pipeline([("scale", PixelScaler()), ("components", PCA(50))])
        assert pipeline.fit(self.images).transform(self.images[:7]).shape == (7, 50)
        digits = load_dataset("digits")
        assert make_pipeline(PixelScaler(16), PCA(50)).fit_transform(digits.X).shape == (1797, 50)

    def test_refusals(self):
        fitted = PixelScaler().fit(self.images)
        one_line(lambda: fitted.transform(self.images[:, :4]), "(4, 4, 3)", "(5, 4, 3)")
        one_line(lambda: PixelScaler(1).transform(self.images), "0 to 1", "maximum")
        one_line(lambda: PixelScaler().transform([[-1.0]]), "outside")
        one_line(lambda: PixelScaler().transform([[np.nan]]), "outside")
        one_line(lambda: PixelScaler().transform([1, 2]), "(2,)")
        one_line(lambda: PixelScaler().transform([["a"]]), "numbers")
        for maximum in (0, -1, np.inf, np.nan, "255", True, None):
            one_line(lambda m=maximum: PixelScaler(m).fit(self.images), "maximum must be")
