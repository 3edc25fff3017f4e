"""Losses for answers that are noisy, and for records without any. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor

Network = Callable[[Tensor], Tensor]


def soft_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each record against soft targets, shape (n,).

    ``logits`` (n, n_classes): of the network.
    ``targets`` (n, n_classes): rows add up to 1.

    Examples
    --------
    >>> soft_loss(torch.tensor([[0.0, 9.0]]), torch.tensor([[1.0, 0.0]])).round(decimals=2).tolist()
    [9.0]
    """
    return -(targets * F.log_softmax(logits, dim=1)).sum(dim=1)


def evidence_loss(logits: Tensor, evidence: Tensor) -> Tensor:
    """Negative log-likelihood of what was released: −log Σ_c p_c(x)·P(r | c)/P(r), shape (n,).

    The right loss for noisy histograms: a network that is fitted to the *posteriors* learns to be as
    unsure as a single answer is, this one learns what all answers together say.

    ``logits`` (n, n_classes): of the network.
    ``evidence`` (n, n_classes): log-likelihood ratios:
        :func:`collegium.distillation.released.log_evidence`.

    Examples
    --------
    >>> evidence = torch.tensor([[0.5, -1.0]])
    >>> float(evidence_loss(torch.tensor([[9.0, -9.0]]), evidence).round(decimals=3))
    -0.5
    """
    return -torch.logsumexp(F.log_softmax(logits, dim=1) + evidence, dim=1)


def consistency_loss(weak: Tensor, strong: Tensor, confidence: float) -> Tensor:
    """FixMatch: where the weak view is confidently of a class, the strong view must be of it too.

    ``weak``, ``strong`` (n, n_classes): logits of both views; no gradient flows through ``weak``.
    ``confidence``: probability from which on the weak view counts.
    Returns (n,): cross-entropy, 0 where the weak view is not confident.

    References
    ----------
    Sohn et al., *FixMatch: simplifying semi-supervised learning with consistency and confidence*, NeurIPS
    2020, arXiv:2001.07685, Eq. 4.

    Examples
    --------
    >>> weak = torch.tensor([[5.0, 0.0], [0.1, 0.0]])
    >>> consistency_loss(weak, torch.zeros(2, 2), 0.9).tolist() == [torch.tensor(2.0).log().item(), 0.0]
    True
    """
    believed, labels = weak.detach().softmax(dim=1).max(dim=1)
    sure = believed >= confidence
    return F.cross_entropy(strong, labels, reduction="none") * sure.to(strong)


def virtual_adversarial_loss(
    network: Network, records: Tensor, logits: Tensor, radius: float, generator: torch.Generator
) -> Tensor:
    """VAT: the prediction must not change in the direction in which it changes most.

    One step of power iteration on the Hessian of KL(p(x) ‖ p(x + r)) finds that direction.

    ``network``: returns logits of records: a module without dropout, or one that drops out the same
        each time.
    ``records``: (n, ...).
    ``logits`` (n, n_classes): the network's, of these records; no gradient flows through them.
    ``radius``: euclidean length of the change, in units of the records.
    ``generator``: for the first direction.
    Returns (n,): KL divergences.

    References
    ----------
    Miyato, Maeda, Koyama & Ishii, *Virtual adversarial training*, IEEE TPAMI 2019, arXiv:1704.03976,
    Algorithm 1 (ξ = 0.1 of the radius, one iteration).
    """
    believed = logits.detach().log_softmax(dim=1)

    def divergence(change: Tensor) -> Tensor:
        changed = network(records + change).log_softmax(dim=1)
        kl: Tensor = (believed.exp() * (believed - changed)).sum(dim=1)
        return kl

    first = torch.randn(records.shape, generator=generator).to(records)
    direction = (0.1 * radius * _unit(first)).requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(divergence(direction).sum(), direction)
    return divergence(radius * _unit(gradient.detach()))


def entropy(logits: Tensor) -> Tensor:
    """Entropy of predictions in nats, shape (n,)."""
    logs = logits.log_softmax(dim=1)
    return -(logs.exp() * logs).sum(dim=1)


def _unit(vectors: Tensor) -> Tensor:
    flat = vectors.flatten(1)
    lengths = flat.norm(dim=1).clamp_min(1e-12)
    return torch.div(vectors, lengths.view(-1, *[1] * (vectors.ndim - 1)))
