"""Batch normalisation of many networks at once, each with statistics of its own records only."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from collegium.models.neural.by_hand.layers import Layer, MaxPoolLayer, Step


class BatchNormLayer(Layer):
    """Batch normalisation of images (per channel) or vectors (per unit).

    ``module``: with running averages and a fixed momentum.
    """

    def __init__(self, module: nn.BatchNorm1d | nn.BatchNorm2d, device: torch.device) -> None:
        super().__init__(device)
        assert module.momentum is not None
        self.momentum = module.momentum
        self.epsilon = module.eps
        self.affine = module.affine
        self._on_processor = device.type == "cpu"

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Normalise with the statistics of the step's records, or with the running averages."""
        self.shape = x.shape
        if step is None:
            return self._by_averages(x)
        # PyTorch divides by the number of values less one, even if there is but one value.
        self.alone = self._on_processor and len(x) == 1 and x.numel() > x.shape[-1]
        self.x = x
        if self.alone:
            return self._alone(x)
        return self._together(x, step)

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Compute the gradients of scale, offset and input."""
        return self._backward_alone(gradient) if self.alone else self._backward_together(gradient)

    def _by_averages(self, x: Tensor) -> Tensor:
        k, channels = len(x), x.shape[-1]
        scale = torch.rsqrt(self.values["running_var"][:k] + self.epsilon)
        if self.affine:
            scale = scale * self.values["weight"][:k]
        offset = -self.values["running_mean"][:k] * scale
        if self.affine:
            offset = offset + self.values["bias"][:k]
        flat = x.view(k, -1, channels)
        out = self.memory.take("out", *flat.shape)
        return torch.addcmul(offset[:, None], flat, scale[:, None], out=out).view(x.shape)

    def _alone(self, x: Tensor) -> Tensor:
        out = self.memory.take("out", *x.shape)
        channels = x.shape[-1]
        self.mean = self.memory.take("mean", channels)
        self.scale = self.memory.take("scale", channels)
        torch.ops.aten.native_batch_norm.out(
            _as_planes(x),
            self.values["weight"][0] if self.affine else None,
            self.values["bias"][0] if self.affine else None,
            self.values["running_mean"][0],
            self.values["running_var"][0],
            True,
            self.momentum,
            self.epsilon,
            out=_as_planes(out),
            save_mean=self.mean,
            save_invstd=self.scale,
        )
        return out

    def _backward_alone(self, gradient: Tensor) -> Tensor:
        grad_x, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
            _as_planes(gradient),
            _as_planes(self.x),
            self.values["weight"][0] if self.affine else None,
            None,
            None,
            self.mean,
            self.scale,
            True,
            self.epsilon,
            [True, self.affine, self.affine],
        )
        if self.affine:
            self.gradients["weight"][0] = grad_weight
            self.gradients["bias"][0] = grad_bias
        last: Tensor = grad_x.permute(0, 2, 3, 1)
        return last.reshape(self.shape)

    def _together(self, x: Tensor, step: Step) -> Tensor:
        k, channels = len(x), x.shape[-1]
        flat = x.view(k, -1, channels)
        pixels = math.prod(x.shape[2:-1])
        self.present = None
        if step.present is not None:
            self.present = step.present.repeat_interleave(pixels, dim=1)
        self.counts = step.counts * pixels
        mean = self._sum(flat) / self.counts
        self.centred = torch.sub(flat, mean, out=self.memory.take("centred", *flat.shape))
        if self.present is not None:
            self.centred *= self.present
        squares = torch.mul(self.centred, self.centred, out=self.memory.take("out", *flat.shape))
        variance = squares.sum(dim=1, keepdim=True) / self.counts
        self.scale = torch.rsqrt(variance + self.epsilon)
        self._update(mean, variance)
        self.centred *= self.scale
        if not self.affine:
            return self.centred.view(x.shape)
        out = self.memory.take("out", *flat.shape)
        torch.addcmul(
            self.values["bias"][:k, None],
            self.centred,
            self.values["weight"][:k, None],
            out=out,
        )
        return out.view(x.shape)

    def _update(self, mean: Tensor, variance: Tensor) -> None:
        k = len(mean)
        unbiased = variance * (self.counts / (self.counts - 1).clamp_(min=1))
        self.values["running_mean"][:k].lerp_(mean[:, 0], self.momentum)
        self.values["running_var"][:k].lerp_(unbiased[:, 0], self.momentum)

    def _backward_together(self, gradient: Tensor) -> Tensor:
        k, channels = len(gradient), gradient.shape[-1]
        flat = gradient.reshape(k, -1, channels)
        # Absent records have gradient 0 and are centred at 0, so that plain sums are right.
        if self.present is not None:
            flat = flat * self.present
        products = torch.mul(flat, self.centred, out=self.memory.take("grad_x", *flat.shape))
        for_weight = products.sum(dim=1, keepdim=True)
        for_bias = flat.sum(dim=1, keepdim=True)
        factor = self.scale
        if self.affine:
            self.gradients["weight"][:k] = for_weight[:, 0]
            self.gradients["bias"][:k] = for_bias[:, 0]
            factor = factor * self.values["weight"][:k, None]
        grad_x = self.memory.take("grad_x", *flat.shape)
        torch.mul(self.centred, -for_weight / self.counts, out=grad_x)
        grad_x += flat
        grad_x -= for_bias / self.counts
        grad_x *= factor
        if self.present is not None:
            grad_x *= self.present
        return grad_x.view(self.shape)

    def _sum(self, flat: Tensor) -> Tensor:
        if self.present is None:
            return flat.sum(dim=1, keepdim=True)
        return (flat * self.present).sum(dim=1, keepdim=True)


class NormalisedMaximumLayer(Layer):
    """Batch normalisation of images and then the maximum over windows, in one.

    Normalising with positive scales keeps the order of values, so the maximum may be taken first: then
    the normalised image, which is several times as large, is neither written nor read again. Where a
    scale is not positive, and for several networks, the two layers are applied one after the other.

    ``maximum``: of what the former returns.
    """

    def __init__(
        self, normalisation: BatchNormLayer, maximum: MaxPoolLayer, device: torch.device
    ) -> None:
        super().__init__(device)
        self.normalisation, self.maximum = normalisation, maximum
        self._on_processor = device.type == "cpu"

    def see(self, values: dict[str, Tensor], gradients: dict[str, Tensor]) -> None:
        """See :meth:`Layer.see`."""
        super().see(values, gradients)
        self.normalisation.see(values, gradients)

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Normalise, and take the maximum of each window."""
        alone = self._on_processor and len(x) == 1 and x.numel() > x.shape[-1]
        self.in_one = alone and bool((self.values["weight"][0] > 0).all())
        if not self.in_one:
            return self.maximum.forward(self.normalisation.forward(x, step), step)
        if step is None:
            return self.normalisation.forward(self.maximum.forward(x, step), step)
        mean, variance = torch.batch_norm_update_stats(
            _as_planes(x),
            self.values["running_mean"][0],
            self.values["running_var"][0],
            self.normalisation.momentum,
        )
        self.x, self.mean = x, mean
        self.scale = torch.rsqrt(variance + self.normalisation.epsilon)
        factor = self.scale * self.values["weight"][0]
        self.maxima = self.maximum.forward(x, step)
        out = self.memory.take("out", *self.maxima.shape)
        return torch.addcmul(
            torch.addcmul(self.values["bias"][0], mean, factor, value=-1),
            self.maxima,
            factor,
            out=out,
        )

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Compute the gradients of scale, offset and input."""
        if not self.in_one:
            return self.normalisation.backward(self.maximum.backward(gradient, True), wanted)
        axes = (0, 1, 2, 3)
        for_bias = gradient.sum(dim=axes)
        products = torch.mul(gradient, self.maxima, out=self.maxima)
        for_weight = self.scale * (products.sum(dim=axes) - self.mean * for_bias)
        self.gradients["weight"][0] = for_weight
        self.gradients["bias"][0] = for_bias
        factor = self.scale * self.values["weight"][0]
        pixels = self.x.numel() // self.x.shape[-1]
        slope = -factor * self.scale * for_weight / pixels
        level = -factor * for_bias / pixels - slope * self.mean
        grad_x = self.maximum.backward(gradient.mul_(factor), True)
        return grad_x.addcmul_(self.x, slope).add_(level)


def _as_planes(x: Tensor) -> Tensor:
    """See one network's records as (records, channels, height, width), channels last in memory."""
    if x.dim() == 5:
        return x[0].permute(0, 3, 1, 2)
    return x[0][:, :, None, None].as_strided(
        (x.shape[1], x.shape[2], 1, 1), (x.shape[2], 1, x.shape[2], x.shape[2])
    )
