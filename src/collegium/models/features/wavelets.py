"""The filters of a two-dimensional scattering transform: oriented Morlet wavelets and a Gaussian.

Everything here is a function of the image's size alone. Filters are real in the Fourier domain, and
periodic, as the discrete Fourier transform sees them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_PERIODS = 2  # copies on each side that are folded into one period of a filter


@dataclass(frozen=True, eq=False)
class FilterBank:
    """Wavelets of all scales and orientations, and the low-pass filter of the largest scale.

    ``shape``: height and width of the padded image, multiples of 2**n_scales.
    """

    shape: tuple[int, int]
    n_scales: int
    n_angles: int

    def wavelets(self, scale: int, level: int) -> Floats:
        """Fourier transforms of all orientations of one scale, for images subsampled by 2**level.

        ``scale``: j, from 0 (finest) to J - 1.
        ``level``: at most ``scale``, so that the filter still fits below the sampled frequencies.
        Returns (height / 2**level, width / 2**level, n_angles): centred at frequency (3π/4)
            2**-scale in the direction of the angle.
        """
        first = max(0, (self.n_angles - 2) // 2)
        filters = [
            morlet(self.shape, scale, (first - turn) * np.pi / self.n_angles, 4 / self.n_angles)
            for turn in range(self.n_angles)
        ]
        return np.stack([cropped(one, level) for one in filters], axis=-1)

    def low_pass(self, axis: int, level: int) -> Floats:
        """Blur, subsample and cut one axis of an image that was subsampled by 2**level already.

        The Gaussian is isotropic, so its two axes are matrices that are applied one after the other.

        ``axis``: height or width.
        ``level``: from 0 to J - 1.
        Returns (length / 2**J - 2, length / 2**level): the outermost sample on either side, which
            only the padding decides, is cut.
        """
        length = self.shape[axis]
        sigma = 0.8 * 2 ** (self.n_scales - 1)
        places = np.arange(-_PERIODS * length, (_PERIODS + 1) * length)
        bell = np.exp(-(places**2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
        spectrum = np.fft.fft(bell.reshape(-1, length).sum(axis=0)).real
        kept = cropped(spectrum, level)
        blur = np.fft.ifft(kept[:, None] * np.fft.fft(np.eye(len(kept)), axis=0), axis=0).real
        return np.ascontiguousarray(blur[:: 2 ** (self.n_scales - level)][1:-1])


def morlet(shape: tuple[int, int], scale: int, angle: float, slant: float) -> Floats:
    """Fourier transform of a periodic Morlet wavelet.

    ``shape``: height and width.
    ``scale``: j: the wavelet has width σ = 0.8 · 2**j pixels and frequency ξ = (3π/4) 2**-j.
    ``angle``: direction of its wave, in radians from the vertical axis.
    ``slant``: width along the wave over width across it.
    Returns: the transform, real since the wavelet ψ(u) = g(u) (exp(i ξ·u) − β) is Hermitian; 0 at
        frequency 0.

    References
    ----------
    J. Bruna, S. Mallat, *Invariant scattering convolution networks*, IEEE TPAMI 35(8), 2013, section 2.1.
    The parameters are those of kymatio (M. Andreux et al., *Kymatio: scattering transforms in Python*,
    JMLR 21(60), 2020).
    """
    sigma, frequency = 0.8 * 2**scale, 0.75 * np.pi / 2**scale
    height, width = shape
    y = np.arange(-_PERIODS * height, (_PERIODS + 1) * height)[:, None]
    x = np.arange(-_PERIODS * width, (_PERIODS + 1) * width)[None, :]
    along = np.cos(angle) * y + np.sin(angle) * x
    across = np.cos(angle) * x - np.sin(angle) * y
    bell = np.exp(-(along**2 + slant**2 * across**2) / (2 * sigma**2))
    bell *= slant / (2 * np.pi * sigma**2)

    def spectrum(function: NDArray[np.complex128]) -> Floats:
        periods = 2 * _PERIODS + 1
        return np.fft.fft2(function.reshape(periods, height, periods, width).sum(axis=(0, 2))).real

    wave, envelope = spectrum(bell * np.exp(1j * frequency * along)), spectrum(bell + 0j)
    return np.asarray(wave - wave[0, 0] / envelope[0, 0] * envelope)


def cropped(spectrum: Floats, level: int) -> Floats:
    """Keep the frequencies that an image subsampled by 2**level still has.

    Examples
    --------
    >>> cropped(np.array([0.0, 1, 2, 3, 4, 3, 2, 1]), 1).tolist()
    [0.0, 1.0, 2.0, 1.0]
    """
    for axis in range(spectrum.ndim):
        length = spectrum.shape[axis] >> level
        wave_numbers = np.arange(length)
        negative = 2 * wave_numbers >= length
        if level:
            kept = np.where(negative, wave_numbers - length, wave_numbers)
            spectrum = np.take(spectrum, kept, axis=axis)
    return spectrum
