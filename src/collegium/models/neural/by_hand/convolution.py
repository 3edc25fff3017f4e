"""Convolutions of many networks at once: as products of matrices, or with the processor's own kernels."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor, nn

from collegium.models.neural.by_hand.layers import Layer, Step, _pair

_FEW_TAPS = 32


class ConvolutionLayer(Layer):
    """A convolution of two-dimensional images.

    ``module``: padded with zeros, if at all; one group.
    ``precision``: what is multiplied; sums are kept in float32.
    ``as_matrices``: whether all networks are computed by one product of stacked matrices (patches ×
        kernels), or one after another by PyTorch's own convolution. Default: matrices on a graphics
        processor, or when there are several networks (a processor trains large networks one at a
        time anyway); one matrix for a single network's first layer; else PyTorch's own.

    Notes
    -----
    Weights are stored as (networks, kernels, height, width, channels).
    """

    def __init__(
        self,
        module: nn.Conv2d,
        device: torch.device,
        precision: torch.dtype,
        as_matrices: bool | None = None,
    ) -> None:
        super().__init__(device)
        self.kernel = _pair(module.kernel_size)
        self.stride = _pair(module.stride)
        self.padding = _pair(module.padding)
        self.dilation = _pair(module.dilation)
        self.kernels = module.out_channels
        self.has_bias = module.bias is not None
        self.precision = precision
        self._as_matrices = as_matrices
        self._on_processor = device.type == "cpu"
        self._taps = math.prod(self.kernel) * module.in_channels
        self._flat = self._taps <= _FEW_TAPS and precision == torch.float32
        self.way = ""

    def forward(self, x: Tensor, step: Step | None) -> Tensor:
        """Convolve."""
        self.x = x
        alone = self._on_processor and len(x) == 1
        if self._as_matrices or (self._as_matrices is None and not alone):
            self.way = "matrices"
            return self._forward_matrices(x)
        if alone and self._flat and self._as_matrices is None:
            self.way = "one matrix"
            return self._forward_flat(x)
        self.way = "singly"
        return self._forward_singly(x)

    def backward(self, gradient: Tensor, wanted: bool) -> Tensor:
        """Compute the gradients of kernels, biases and images."""
        if self.way == "one matrix" and not wanted:
            return self._backward_flat(gradient)
        if self.has_bias:
            torch.sum(gradient, dim=(1, 2, 3), out=self.gradients["bias"][: len(gradient)])
        if self.way == "matrices":
            return self._backward_matrices(gradient, wanted)
        return self._backward_singly(gradient, wanted)

    def _forward_flat(self, x: Tensor) -> Tensor:
        """Multiply kernels with a matrix of one row per tap, and one of ones for the bias.

        For the few taps of a first layer this is far faster, above all backwards, than either a
        convolution of the library's or a product with few columns.
        """
        seen = self._windows(x)[0].permute(3, 4, 5, 0, 1, 2)
        taps = self.memory.take("taps", self._taps + self.has_bias, math.prod(seen.shape[3:]))
        taps[: self._taps].view(seen.shape).copy_(seen)
        kernels = self.memory.take("kernels", len(taps), self.kernels)
        kernels[: self._taps] = self.values["weight"][0].view(self.kernels, -1).T
        if self.has_bias:
            taps[-1] = 1
            kernels[-1] = self.values["bias"][0]
        self.taps = taps
        out = self.memory.take("out", taps.shape[1], self.kernels)
        torch.mm(taps.T, kernels, out=out)
        return out.view(1, x.shape[1], *self.reach, self.kernels)

    def _backward_flat(self, gradient: Tensor) -> Tensor:
        of_kernels = self.taps @ gradient.reshape(-1, self.kernels)
        weights = self.gradients["weight"][0].view(self.kernels, -1)
        weights.copy_(of_kernels[: self._taps].T)
        if self.has_bias:
            self.gradients["bias"][0] = of_kernels[-1]
        return gradient

    def _forward_singly(self, x: Tensor) -> Tensor:
        weights = self.values["weight"].permute(0, 1, 4, 2, 3)
        results = [
            F.conv2d(
                images.permute(0, 3, 1, 2).to(self.precision),
                weights[number].to(self.precision),
                self.values["bias"][number].to(self.precision) if self.has_bias else None,
                self.stride,
                self.padding,
                self.dilation,
            ).permute(0, 2, 3, 1)
            for number, images in enumerate(x)
        ]
        if len(results) == 1:
            return results[0].unsqueeze(0).float().contiguous()
        return torch.stack(results).float()

    def _backward_singly(self, gradient: Tensor, wanted: bool) -> Tensor:
        weights = self.values["weight"].permute(0, 1, 4, 2, 3)
        for_images = []
        for number, (images, of_result) in enumerate(zip(self.x, gradient, strict=True)):
            for_x, for_weight, _ = torch.ops.aten.convolution_backward(
                of_result.permute(0, 3, 1, 2).to(self.precision),
                images.permute(0, 3, 1, 2).to(self.precision),
                weights[number].to(self.precision),
                None,
                self.stride,
                self.padding,
                self.dilation,
                False,
                [0, 0],
                1,
                [wanted, True, False],
            )
            self.gradients["weight"][number] = for_weight.permute(0, 2, 3, 1)
            for_images.append(for_x.permute(0, 2, 3, 1) if wanted else of_result)
        if not wanted:
            return gradient
        return torch.stack(for_images).float()

    def _windows(self, x: Tensor) -> Tensor:
        """See what lies under each position, (k, records, *positions, *kernel, channels), uncopied."""
        down, across = self.padding
        padded = F.pad(x, (0, 0, across, across, down, down)) if down or across else x.contiguous()
        k, records, height, width, channels = padded.shape
        self.padded_shape = padded.shape
        self.reach = [
            (extent - spread * (size - 1) - 1) // stride + 1
            for extent, spread, size, stride in zip(
                (height, width), self.dilation, self.kernel, self.stride, strict=True
            )
        ]
        whole, by_record, by_row, by_column, by_channel = padded.stride()
        return padded.as_strided(
            (k, records, *self.reach, *self.kernel, channels),
            (
                whole,
                by_record,
                by_row * self.stride[0],
                by_column * self.stride[1],
                by_row * self.dilation[0],
                by_column * self.dilation[1],
                by_channel,
            ),
        )

    def _patches(self, x: Tensor) -> Tensor:
        """Copy what lies under each position, shape (k, positions, kernel · channels)."""
        seen = self._windows(x)
        patches = self.memory.take("patches", *seen.shape, dtype=self.precision)
        patches.copy_(seen)
        return patches.view(len(x), -1, self._taps)

    def _forward_matrices(self, x: Tensor) -> Tensor:
        k, records = x.shape[:2]
        self.patches = self._patches(x)
        self.matrix = self.values["weight"][:k].flatten(2).to(self.precision)
        out = self.memory.take("out", k, self.patches.shape[1], self.kernels)
        if self.precision == torch.float32:
            torch.bmm(self.patches, self.matrix.mT, out=out)
        else:
            out.copy_(torch.bmm(self.patches, self.matrix.mT))
        if self.has_bias:
            out += self.values["bias"][:k, None]
        return out.view(k, records, *self.reach, self.kernels)

    def _backward_matrices(self, gradient: Tensor, wanted: bool) -> Tensor:
        k, records = gradient.shape[:2]
        flat = gradient.reshape(k, -1, self.kernels).to(self.precision)
        weights = self.gradients["weight"][:k]
        weights.copy_(torch.bmm(flat.mT, self.patches).view(weights.shape))
        if not wanted:
            return gradient
        height, width = self.reach
        for_patches = torch.bmm(flat, self.matrix).view(k, records, height, width, *self.kernel, -1)
        for_padded = self.memory.take("for_padded", *self.padded_shape).zero_()
        for row in range(self.kernel[0]):
            top = row * self.dilation[0]
            rows = slice(top, top + (height - 1) * self.stride[0] + 1, self.stride[0])
            for column in range(self.kernel[1]):
                left = column * self.dilation[1]
                columns = slice(left, left + (width - 1) * self.stride[1] + 1, self.stride[1])
                for_padded[:, :, rows, columns] += for_patches[:, :, :, :, row, column]
        (down, across), x = self.padding, self.x
        return for_padded[:, :, down : down + x.shape[2], across : across + x.shape[3]].contiguous()
