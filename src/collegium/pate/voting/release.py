"""What a labelling job shows of an answered query: its label, or the whole noisy histogram.

The account of a Gaussian or Laplace maximum is an account of the whole noisy vector: the vector comes
first, and the arg max is computed from it (Lemma 3 in ``docs/personalisations.md``). Under the worst-case
guarantee it may therefore be released as it is, at no more than that price. Three accounts pay for
the winner only, and a histogram is refused:

- **Data-dependent costs** bound the divergence of the *arg max* by the probability of another winner. Of
  two neighbouring histograms that bound says nothing: noise that almost never changes the winner may
  still tell the counts apart.
- **The price of labels alone** (:class:`~collegium.pate.voting.pricing.LabelPricing`), where it stands.
- **Exponential and Gumbel noise.** Exponential noise is never negative, so a noisy count can prove that
  the count was below it; Gumbel noise has a lower tail that falls doubly exponentially. The ratio of the
  densities of two neighbouring vectors is unbounded: the vector is not (ε, 0)-DP at any ε, while the
  account of the winner charges a pure ε and no δ.
"""

from __future__ import annotations

from collegium.errors import InputError
from collegium.pate.voting.aggregators import AGGREGATORS, Aggregator

LABELS, HISTOGRAM = "labels", "histogram"
RELEASES = (LABELS, HISTOGRAM)


def check_release(release: str, aggregator: Aggregator, guarantee: str) -> None:
    """Refuse a histogram that the account would not pay for.

    ``release``: what is to be shown of each answered query.

    Examples
    --------
    >>> from collegium.pate.voting.aggregators import GNMax, PermuteAndFlip
    >>> check_release("histogram", GNMax(sigma=40), "worst-case")
    >>> check_release("histogram", PermuteAndFlip(), "worst-case")
    Traceback (most recent call last):
    collegium.errors.InputError: a histogram of aggregator 'pfmax' cannot be released: ...
    """
    if release not in RELEASES:
        raise InputError(f"release must be one of {', '.join(RELEASES)}, got {release!r}")
    if release == LABELS:
        return
    if not aggregator.pays_for_histogram:
        allowed = ", ".join(name for name, cls in AGGREGATORS.items() if cls.pays_for_histogram)
        raise InputError(
            f"a histogram of aggregator {aggregator.name!r} cannot be released: its account pays for the "
            f"winner only, its {aggregator.noise} noise does not hide the counts; use one of {allowed}, "
            "or release labels"
        )
    if guarantee != "worst-case":
        raise InputError(
            f"a histogram cannot be released under a {guarantee} guarantee: that bound holds for the arg "
            "max only, the noisy counts tell more; use guarantee 'worst-case', or release labels"
        )
