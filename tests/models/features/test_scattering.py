"""The scattering transform: kymatio's values, theory's inequalities, and one record at a time."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make_kymatio_reference import CASES, REFERENCE, images, kymatio_values
from sklearn.base import clone

from collegium import PATEClassifier
from collegium.errors import InputError
from collegium.models.features import ScatteringTransform
from collegium.models.features.cascade import Cascade, n_channels
from collegium.models.features.wavelets import FilterBank


def scattered(X, **options):
    return ScatteringTransform(n_jobs=1, **options).fit_transform(X)


def channels(X, J=2, L=8, max_order=2):
    """Features as (images, channels, height, width), and the images after padding."""
    cascade = Cascade(X.shape[1:], J, L, max_order, len(X))
    rows, columns = cascade._pad
    return cascade.run(X), X[:, rows][:, :, columns]


def one_line(call, *words):
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def agree(ours, theirs, case):
    _, J, L, _, _ = case
    assert ours.shape == theirs.shape
    # kymatio normalises each filter with π = 3.1415; order m has passed m + 1 filters.
    orders = np.repeat(np.arange(3), [1, J * L, L * L * J * (J - 1) // 2])[: ours.shape[1]]
    theirs = theirs * (3.1415 / np.pi) ** (orders + 1)[:, None, None]
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


class TestValues:
    @pytest.mark.parametrize("number", range(len(CASES)))
    def test_equal_kymatios_as_stored(self, number):
        case = CASES[number]
        _, J, L, max_order, _ = case
        ours = scattered(images(case), J=J, L=L, max_order=max_order)
        theirs = np.load(REFERENCE)[f"case{number}"]
        agree(ours.reshape(theirs.shape), theirs, case)

    @pytest.mark.parametrize(
        "J, L, max_order", [(2, 8, 2), (3, 5, 2), (3, 19, 2), (2, 8, 1), (1, 4, 2)]
    )
    @pytest.mark.parametrize("block", [1, 3, 7])
    def test_how_many_images_are_computed_together_does_not_matter(self, J, L, max_order, block):
        """One image is transformed at many angles together, many at one angle each."""
        X = np.random.default_rng(0).random((21, 16, 20)).astype(np.float32)
        whole = Cascade(X.shape[1:], J, L, max_order, 21).run(X)
        few = Cascade(X.shape[1:], J, L, max_order, block)
        apart = np.concatenate([few.run(part) for part in np.split(X, 21 // block)])
        np.testing.assert_allclose(apart, whole, rtol=2e-5, atol=1e-6)

    @pytest.mark.filterwarnings("ignore")
    def test_equal_kymatios_as_installed(self, monkeypatch):
        pytest.importorskip("torch", reason="kymatio's values need torch")
        scipy_special = pytest.importorskip("scipy.special")
        monkeypatch.setattr(scipy_special, "sph_harm", None, raising=False)
        pytest.importorskip(
            "kymatio.torch", reason="kymatio is not installed", exc_type=ImportError
        )
        case = ((32, 28), 2, 6, 2, 11)
        agree(channels(images(case), 2, 6)[0], kymatio_values(case), case)

    def test_a_direct_computation_with_fast_fourier_transforms(self):
        """One path of order 2, written down as in the paper's equations."""
        X = images(CASES[0])
        ours, padded = channels(X)
        bank = FilterBank(padded.shape[1:], 2, 8)
        waves = np.abs(np.fft.ifft2(np.fft.fft2(padded) * bank.wavelets(0, 0)[..., 3]))
        second = np.fft.ifft2(np.fft.fft2(waves) * bank.wavelets(1, 0)[..., 5])
        second = np.abs(second)[:, ::2, ::2]
        blurred = bank.low_pass(0, 1) @ second @ bank.low_pass(1, 1).T
        np.testing.assert_allclose(ours[:, 17 + 8 * 3 + 5], blurred, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize(("J", "L", "order"), [(1, 8, 2), (2, 8, 0), (2, 3, 1), (3, 4, 2)])
    def test_shapes(self, J, L, order):
        X = np.random.default_rng(0).random((3, 17, 24))
        transform = ScatteringTransform(J, L, order, n_jobs=1).fit(X)
        made = transform.transform(X)
        assert made.dtype == np.float32 and made.flags.c_contiguous
        assert made.shape == (3, n_channels(J, L, order) * (17 >> J) * (24 >> J))
        assert made.shape[1] == transform.n_features_out_ == len(transform.get_feature_names_out())

    def test_wavelets_have_no_mean_and_the_blur_keeps_it(self):
        bank = FilterBank((36, 40), 2, 8)
        for scale in (0, 1):
            np.testing.assert_allclose(bank.wavelets(scale, 0)[0, 0], 0, atol=1e-12)
            np.testing.assert_allclose(bank.low_pass(1, scale).sum(axis=1), 1, rtol=1e-9)

    def test_wavelets_and_blur_cover_every_frequency_and_amplify_none(self):
        for J, n_angles in [(2, 8), (2, 4), (2, 16)]:
            bank = FilterBank((36, 36), J, n_angles)
            energy = sum((bank.wavelets(scale, 0) ** 2).sum(axis=-1) for scale in range(J))
            mirrored = np.roll(energy[::-1, ::-1], (1, 1), (0, 1))
            low = np.fft.fft(np.exp(-(np.fft.fftfreq(36, 1 / 36) ** 2) / (2 * 1.6**2))).real
            low /= low[0]
            covered = (energy + mirrored) / 2 + np.outer(low, low) ** 2
            assert covered.max() <= 1 + 1e-6
            assert covered[:, :17].min() > 0.01


class TestProperties:
    @given(seed=st.integers(0, 2**32 - 1), smooth=st.integers(0, 2), shift=st.integers(1, 3))
    @settings(max_examples=25)
    def test_non_expansive(self, seed, smooth, shift):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(2, 28, 28))
        for _ in range(smooth):
            X = np.cumsum(np.cumsum(X, axis=1), axis=2)
        X[1] = np.roll(X[0], shift, axis=0) if seed % 2 else X[1]
        X = (X / np.abs(X).max()).astype(np.float32)
        features, padded = channels(X)
        moved = 4 * np.linalg.norm(features[0] - features[1])  # one place stands for 4 × 4 pixels
        assert moved <= np.linalg.norm(padded[0] - padded[1]) * (1 + 1e-5)

    @given(seed=st.integers(0, 1000))
    @settings(max_examples=10)
    def test_a_shift_of_one_pixel_moves_features_less_than_pixels(self, seed):
        generator = np.random.default_rng(seed)
        stroke = np.zeros((1, 28, 28), dtype=np.float32)
        row, column = generator.integers(9, 16, size=2)
        stroke[0, row : row + 2, column - 3 : column + 4] = 1
        moved = np.roll(stroke, 1, axis=1)
        features = scattered(np.concatenate([stroke, moved]))
        pixels = np.linalg.norm(stroke - moved) / np.linalg.norm(stroke)
        assert np.linalg.norm(features[0] - features[1]) < 0.5 * pixels * np.linalg.norm(
            features[0]
        )

    @given(factor=st.floats(0.01, 100))
    @settings(max_examples=10)
    def test_features_scale_with_the_image(self, factor):
        X = images(CASES[0])
        np.testing.assert_allclose(
            scattered(X * np.float32(factor)), scattered(X) * factor, rtol=1e-3, atol=1e-4 * factor
        )

    def test_zero_and_constant_images(self):
        assert (scattered(np.zeros((1, 28, 28))) == 0).all()
        features, _ = channels(np.full((1, 28, 28), 3, dtype=np.float32))
        np.testing.assert_allclose(features[:, 0], 3, rtol=1e-5)
        np.testing.assert_allclose(features[:, 1:], 0, atol=1e-5)

    def test_moduli_are_not_negative(self):
        assert (channels(images(CASES[0]))[0][:, 1:] > -1e-6).all()

    def test_root_keeps_signs(self):
        X = images(CASES[0]) - 0.5
        plain, rooted = scattered(X), scattered(X, root=True)
        np.testing.assert_allclose(np.sign(rooted) * rooted**2, plain, rtol=1e-4, atol=1e-6)


class TestOneRecordAtATime:
    def test_other_records_change_nothing_not_even_rounding(self):
        generator = np.random.default_rng(0)
        X = generator.random((21, 28, 28))
        changed = X.copy()
        changed[[0, 3, 20]] = 100 * generator.random((3, 28, 28))
        same = np.setdiff1d(np.arange(21), [0, 3, 20])
        np.testing.assert_array_equal(scattered(X)[same], scattered(changed)[same])
        np.testing.assert_array_equal(scattered(X)[:5], scattered(X[:5]))

    def test_order_batches_and_threads_change_nothing_but_rounding(self):
        X = np.random.default_rng(0).random((19, 28, 28))
        whole = scattered(X)
        order = np.random.default_rng(1).permutation(19)
        np.testing.assert_allclose(scattered(X[order]), whole[order], rtol=1e-4, atol=1e-6)
        for options in ({"batch_size": 3}, {"batch_size": 100}, {"batch_size": 1}):
            np.testing.assert_allclose(scattered(X, **options), whole, rtol=1e-4, atol=1e-6)
        threaded = ScatteringTransform(n_jobs=3).fit_transform(X)
        np.testing.assert_array_equal(threaded, whole)

    def test_fit_learns_the_shape_only(self):
        first = ScatteringTransform().fit(np.zeros((1, 28, 28)))
        second = ScatteringTransform().fit(np.random.default_rng(0).random((9, 28, 28)))
        assert pickle.dumps(first) == pickle.dumps(second)

    def test_all_forms_of_images(self):
        X = np.random.default_rng(0).integers(0, 256, size=(3, 12, 16, 2)).astype(np.uint8)
        colour = scattered(X)
        flat = scattered(X.reshape(3, -1), shape=(12, 16, 2))
        np.testing.assert_array_equal(colour, flat)
        single = [scattered(X[..., depth], batch_size=8) for depth in (0, 1)]
        np.testing.assert_allclose(colour, np.hstack(single), rtol=1e-4, atol=1e-3)
        square = X[:, :12, :12, 0]
        np.testing.assert_array_equal(scattered(square), scattered(square.reshape(3, 144)))

    def test_no_images_no_features(self):
        assert ScatteringTransform().fit(np.zeros((1, 8, 8))).transform(
            np.zeros((0, 8, 8))
        ).shape == (0, 81 * 4)

    def test_clones_and_pickles(self):
        X = images(CASES[4])
        transform = ScatteringTransform(J=1, L=4, max_order=1, root=True, n_jobs=1).fit(X)
        assert clone(transform).get_params() == transform.get_params()
        again = pickle.loads(pickle.dumps(transform))
        np.testing.assert_array_equal(again.transform(X), transform.transform(X))


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"J": 0}, ("J must be", "1 to 6", "got 0")),
            ({"J": 7}, ("J must be", "1 to 6", "got 7")),
            ({"J": 2.0}, ("J must be", "1 to 6", "got 2.0")),
            ({"J": True}, ("J must be", "1 to 6", "got True")),
            ({"L": 0}, ("L must be", "1 to 32", "got 0")),
            ({"L": 33}, ("L must be", "1 to 32", "got 33")),
            ({"max_order": 3}, ("max_order must be", "0 to 2", "got 3")),
            ({"batch_size": 0}, ("batch_size must be", "1 to 4,096", "got 0")),
            ({"shape": 28}, ("shape=28", "(height, width)")),
            ({"shape": (28,)}, ("shape=(28,)",)),
            ({"shape": (28, 0)}, ("shape", "at least 1")),
            ({"shape": (28, 27)}, ("784 values", "756")),
            ({"J": 5}, ("28 × 28", "too small", "32")),
        ],
    )
    def test_parameters(self, options, words):
        one_line(lambda: ScatteringTransform(**options).fit(np.zeros((2, 28, 28))), *words)

    @pytest.mark.parametrize(
        ("X", "words"),
        [
            (np.zeros((2, 783)), ("(783,)", "shape=(height, width)")),
            (np.zeros(784), ("(784,)", "stack")),
            (np.zeros((2, 3, 3)), ("3 × 3", "too small")),
            (np.array([["a"]]), ("type <U1",)),
            (np.zeros((2, 9, 9), dtype=complex), ("complex",)),
            (np.zeros((2, 3, 8, 8, 1)), ("shape=(height, width)",)),
        ],
    )
    def test_images(self, X, words):
        one_line(lambda: ScatteringTransform().fit(X), *words)

    def test_sparse(self):
        import scipy.sparse

        one_line(lambda: ScatteringTransform().fit(scipy.sparse.eye(784)), "sparse", "toarray")

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
    def test_missing_values_are_refused_and_not_quoted(self, bad):
        X = np.full((40, 28, 28), 0.125)
        transform = ScatteringTransform(n_jobs=1).fit(X)
        X[33, 5, 5] = bad
        one_line(lambda: transform.transform(X), "missing, infinite or too large")
        with pytest.raises(InputError) as caught:
            transform.transform(X)
        assert "0.125" not in str(caught.value) and "33" not in str(caught.value)

    def test_another_shape_than_fitted(self):
        transform = ScatteringTransform().fit(np.zeros((1, 28, 28)))
        one_line(lambda: transform.transform(np.zeros((1, 28, 27))), "28 × 28", "fit again")


def test_a_private_classifier_with_scattering_in_front():
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    from collegium import GNMax
    from collegium.models.closed_form.ridge import RidgeTeachers

    X, y = load_digits(return_X_y=True)
    images_of = X.reshape(-1, 8, 8)
    model = PATEClassifier(
        RidgeTeachers(),
        n_teachers=20,
        aggregator=GNMax(sigma=2),
        preprocessing=ScatteringTransform(J=1, root=True),
        student=SVC(),
        noise_seed=1,
        random_state=0,
    )
    model.fit(
        images_of[:1200],
        y[:1200],
        budgets=np.full(1200, 64.0),
        X_public=images_of[1200:1600],
    )
    assert model.score(images_of[1600:], y[1600:]) > 0.75
