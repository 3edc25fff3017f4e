"""The cascade of a scattering transform: wavelets, moduli and blurs, as products of small matrices.

Images of a block are the last axis of every array, and the Fourier transforms of their short axes are
matrix products: no array is ever transposed, and BLAS does nearly all of the work. For images below 100
pixels this is several times faster than calling a fast Fourier transform.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collegium.models.features.wavelets import FilterBank

Floats = NDArray[np.float32]
_COLUMNS = 16  # of a product, for each place in an image: fewer leave BLAS idle


class Cascade:
    """Scattering of blocks of images of one size.

    ``shape``: height and width, at least 2**n_scales each.
    ``block``: how many images :meth:`run` takes at once.

    Notes
    -----
    Not thread-safe: its work space is reused. Give each thread one.
    """

    def __init__(
        self, shape: tuple[int, int], n_scales: int, n_angles: int, max_order: int, block: int
    ) -> None:
        self._scales, self._angles, self._order, self._block = n_scales, n_angles, max_order, block
        self._together = max(1, min(n_angles, _COLUMNS // block))  # angles
        step = 2**n_scales
        height, width = (((length + step) // step + 1) * step for length in shape)
        self._size = height, width
        self._pad = [_reflected(*lengths) for lengths in zip(shape, self._size, strict=True)]
        levels = range(n_scales)
        self._low = _low_passes(self._size, n_scales)
        self._forward = [[_Forward(length >> level) for length in self._size] for level in levels]
        self._inverse = [[_Inverse(length >> level) for length in self._size] for level in levels]
        self._filters = _filters(self._size, n_scales, n_angles, max_order)
        self.n_channels = n_channels(n_scales, n_angles, max_order)
        self.output_shape = (self.n_channels, height // step - 2, width // step - 2)
        self._spaces: dict[tuple[str, int], Floats] = {}

    def run(self, images: Floats) -> Floats:
        """Scatter one block.

        ``images`` (block, height, width): exactly ``block`` images.
        Returns (block, n_channels, height / 2**J, width / 2**J): order 0, then order 1 by scale and
            angle, then order 2 by first and second wavelet.
        """
        result = np.empty((*self.output_shape, self._block), dtype=np.float32)
        rows, columns = self._pad
        padded = np.ascontiguousarray(images.transpose(1, 2, 0)[rows][:, columns])
        result[0] = self._blurred(padded, 0)
        first, second = 1, 1 + self._scales * self._angles
        spectrum = self._spectrum(padded, 0, "image") if self._order else padded
        for scale in range(self._scales if self._order else 0):
            coarser = range(scale + 1, self._scales if self._order > 1 else 0)
            for angle in range(0, self._angles, self._together):
                angles = slice(angle, min(angle + self._together, self._angles))
                n_angles = angles.stop - angle
                waves = self._modulus(spectrum, 0, scale, angles)
                blurred = self._blurred(waves, scale).reshape(*self.output_shape[1:], n_angles, -1)
                result[first : first + n_angles] = blurred.transpose(2, 0, 1, 3)
                first += n_angles
                if not coarser:
                    continue
                inner = self._spectrum(waves, scale, "wave")
                n_paths = n_angles * len(coarser) * self._angles
                paths = result[second : second + n_paths]
                paths = paths.reshape(n_angles, len(coarser), self._angles, *result.shape[1:])
                for place, outer in enumerate(coarser):
                    waves = self._modulus(inner, scale, outer, slice(None))
                    blurred = self._blurred(waves, outer)
                    blurred = blurred.reshape(*blurred.shape[:2], self._angles, n_angles, -1)
                    paths[:, place] = blurred.transpose(3, 2, 0, 1, 4)
                second += n_paths
        return np.ascontiguousarray(result.transpose(3, 0, 1, 2))

    def _space(self, name: str, *shape: int) -> Floats:
        """Memory for an intermediate array, the same one each time."""
        key = name, int(np.prod(shape))
        if key not in self._spaces:
            self._spaces[key] = np.empty(key[1], dtype=np.float32)
        return self._spaces[key].reshape(shape)

    def _spectrum(self, images: Floats, level: int, name: str) -> Floats:
        """Fourier transform: (y, x, N) → (wave number y, [re, im], wave number x, N)."""
        height, width, n = images.shape
        rows, columns = self._forward[level]
        half = self._space("half", 2 * height, width * n)
        np.matmul(rows.real_input, images.reshape(height, width * n), out=half)
        whole = self._space(name, height, 2 * width, n)
        np.matmul(columns.complex_input, half.reshape(height, 2 * width, n), out=whole)
        return whole.reshape(height, 2, width, n)

    def _modulus(self, spectrum: Floats, level: int, scale: int, angles: slice) -> Floats:
        """Filter by wavelets, subsample, transform back: (…spectrum) → |(y, x, angle · N)|."""
        factor = 2 ** (scale - level)
        n = spectrum.shape[-1]
        height, width = (length >> scale for length in self._size)
        folded = spectrum.reshape(factor, height, 2, factor, width, 1, n)
        quarters = self._filters[level, scale]
        n_angles = len(range(self._angles)[angles])
        total = self._space("total", height, 2, width, n_angles, n)
        term = self._space("term", height, 2, width, n_angles, n)
        for count, (row, column) in enumerate(np.ndindex(factor, factor)):
            wavelet = quarters[row, column][:, None, :, angles, None]
            np.multiply(folded[row, :, :, column], wavelet, out=term if count else total)
            if count:
                np.add(total, term, out=total)
        n *= n_angles
        rows, columns = self._inverse[scale]
        half = self._space("half back", height, 2 * width, n)
        np.matmul(columns.rows_together, total.reshape(height, 2 * width, n), out=half)
        whole = self._space("whole back", 2 * height, width * n)
        np.matmul(rows.parts_apart, half.reshape(2 * height, width * n), out=whole)
        np.multiply(whole, whole, out=whole)
        modulus = whole[:height]
        np.add(modulus, whole[height:], out=modulus)
        np.sqrt(modulus, out=modulus)
        return modulus.reshape(height, width, n)

    def _blurred(self, images: Floats, level: int) -> Floats:
        """Blur and subsample to the last scale: (y, x, N) → (y', x', N)."""
        height, width, n = images.shape
        rows, columns = self._low[level]
        half = (rows @ images.reshape(height, -1)).reshape(-1, width, n)
        return np.asarray(np.matmul(columns, half))


class _Forward:
    """A discrete Fourier transform of one axis, as a matrix for real and one for complex input."""

    def __init__(self, length: int) -> None:
        turn = np.fft.fft(np.eye(length))
        rows = np.stack([turn.real, turn.imag], axis=1)  # (wave number, [re, im], place)
        self.real_input = _single(rows.reshape(2 * length, length))
        self.complex_input = _single(_as_real(turn))


class _Inverse:
    """Its inverse, with the order of rows and columns that each axis wants."""

    def __init__(self, length: int) -> None:
        turn = np.fft.ifft(np.eye(length))
        blocks = _as_real(turn)  # ([re, im], place) × ([re, im], wave number)
        self.rows_together = _single(blocks)
        woven = blocks.reshape(2 * length, 2, length).transpose(0, 2, 1)
        self.parts_apart = _single(woven.reshape(2 * length, 2 * length))


@lru_cache(maxsize=8)
def _low_passes(size: tuple[int, int], n_scales: int) -> list[list[Floats]]:
    """Blurs by level and axis; made once, and never changed."""
    bank = FilterBank(size, n_scales, 1)
    return [[_single(bank.low_pass(axis, level)) for axis in (0, 1)] for level in range(n_scales)]


@lru_cache(maxsize=8)
def _filters(
    size: tuple[int, int], n_scales: int, n_angles: int, max_order: int
) -> dict[tuple[int, int], Floats]:
    """Wavelets by level and scale; made once, and never changed: they take longer than a block of images."""
    bank = FilterBank(size, n_scales, n_angles)
    starts = {0} | (set(range(n_scales - 1)) if max_order > 1 else set())
    return {
        (level, scale): _quarters(bank.wavelets(scale, level), 2 ** (scale - level))
        for level in sorted(starts)
        for scale in range(level, n_scales)
        if max_order and (level == 0 or scale > level)
    }


def n_channels(n_scales: int, n_angles: int, max_order: int) -> int:
    """Count the channels of a scattering transform.

    Examples
    --------
    >>> [n_channels(2, 8, order) for order in (0, 1, 2)]
    [1, 17, 81]
    """
    paths = (1, n_scales * n_angles, n_angles**2 * (n_scales * (n_scales - 1) // 2))
    return sum(paths[: max_order + 1])


def _as_real(matrix: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Write a complex matrix as a real one that acts on stacked real and imaginary parts."""
    return np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])


def _quarters(filters: NDArray[np.float64], factor: int) -> Floats:
    """Arrange (y, x, angle) by what subsampling folds onto each other; the fold's mean included."""
    height, width, n_angles = filters.shape
    folded = filters.reshape(factor, height // factor, factor, width // factor, n_angles)
    return _single(folded.transpose(0, 2, 1, 3, 4) / factor**2)


def _reflected(length: int, padded: int) -> NDArray[np.intp]:
    """Places whose values stand at each place of the padded axis."""
    before = (padded - length) // 2
    places = np.arange(length, dtype=np.intp)
    return np.pad(places, (before, padded - length - before), mode="reflect")


def _single(array: NDArray[np.float64]) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float32)
