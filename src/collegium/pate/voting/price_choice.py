"""Which worst-case price stands: that of all noisy counts, or the smaller one of a label alone.

Decided once, before the first query, from public numbers only: budgets, weights, participation, noise, and
how many answers may be asked for. Then it is one of the job's terms, and nobody decides again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium.accounting.promises import ONLY_PURE, Promise
from collegium.errors import InputError
from collegium.pate.voting.affordable import answers_affordable
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import IN_MU, IN_PURE, WorstCasePricing, worst_case_pricing
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.personalisation.electorate import Electorate

_IN_WORDS = {HISTOGRAM: "all noisy counts", LABELS: "its label alone"}


@dataclass(frozen=True)
class ChosenPrice:
    """What an answer is charged in a worst-case account.

    ``name``: one of :data:`~collegium.pate.voting.pricing.PRICES`.
    ``why``: in one sentence; empty where there was nothing to choose.
    """

    name: str
    why: str = ""


def check_price(price: str | None, release: str, aggregator: Aggregator, guarantee: str) -> None:
    """Refuse a price that does not cover what is released, or is not known.

    ``price``: None: whichever pays for more.

    Examples
    --------
    >>> from collegium.pate.voting.aggregators import GNMax
    >>> check_price("labels", "labels", GNMax(sigma=40), "worst-case")
    >>> check_price("labels", "histogram", GNMax(sigma=40), "worst-case")
    Traceback (most recent call last):
    collegium.errors.InputError: price 'labels' pays for labels alone, and noisy counts are released: ...
    """
    if price is None:
        return
    if guarantee != WorstCasePricing.guarantee:
        raise InputError(
            f"price {price!r} is one of the worst-case guarantee, and this one is {guarantee}: leave it out"
        )
    if price == LABELS and release == HISTOGRAM:
        raise InputError(
            "price 'labels' pays for labels alone, and noisy counts are released: leave it out, or release "
            "labels"
        )
    if price == LABELS and not aggregator.has_label_price:
        raise InputError(
            f"no price of labels alone is known for aggregator {aggregator.name!r}: leave it out, or use one "
            "with Gaussian noise (gnmax, confident, interactive)"
        )


def price_on(promise: Promise, aggregator: Aggregator, price: str | None) -> str:
    """Find the price of an answer that adds up to what a ledger promises.

    Raises InputError: of noise that is not pure, where that is promised; of the price of labels alone.
    """
    if promise is Promise.PURE and aggregator.has_label_price:
        raise InputError(
            f"{ONLY_PURE}; the aggregator is {aggregator.name!r}, and lnmax has Laplace noise"
        )
    if price not in (None, HISTOGRAM):
        raise InputError(
            f"price {price!r} is for a release that no ledger remembers: a ledger adds releases up in μ, "
            "where a label costs as much as all noisy counts; leave price out"
        )
    if aggregator.has_label_price:
        return HISTOGRAM
    return IN_PURE if promise is Promise.PURE else IN_MU


def choose_price(
    price: str | None,
    release: str,
    aggregator: Aggregator,
    electorate: Electorate,
    guarantee: str,
    most: int,
    promise: Promise = Promise.EITHER,
) -> ChosenPrice:
    """Choose the price that pays for more answers, if each query is answered; the histogram's in a tie.

    Counted is as ``collegium plan`` counts: until the first group cannot pay. Where as many answers as may
    be asked for can be paid either way, the account of noisy counts says more (a μ), and costs less.

    ``price``: as set; None: to be chosen.
    ``most``: answers that may be asked for.
    ``promise``: of the ledger that remembers them, if one does.
    """
    check_price(price, release, aggregator, guarantee)
    if promise is not Promise.EITHER:
        return ChosenPrice(price_on(promise, aggregator, price))
    if (
        release == HISTOGRAM
        or guarantee != WorstCasePricing.guarantee
        or not aggregator.has_label_price
    ):
        return ChosenPrice(HISTOGRAM)
    if price is not None:
        return ChosenPrice(price, f"Each answer is charged as {_IN_WORDS[price]}, as set.")
    with np.errstate(over="ignore", divide="ignore"):  # an infinite price is refused soon enough
        counts, labels = (
            answers_affordable(worst_case_pricing(name, aggregator, electorate), electorate, most)
            for name in (HISTOGRAM, LABELS)
        )
    chosen = LABELS if labels > counts else HISTOGRAM
    if chosen == LABELS:
        every = "all " if labels == most else ""
        why = (
            f"the budgets pay for {every}{labels:,} answers, and for {counts:,} if all noisy counts are "
            "charged"
        )
    else:
        fewer = "fewer" if labels < counts else "no more"
        why = f"as labels alone, the budgets would pay for {fewer} of the {most:,} that may be asked for"
    return ChosenPrice(chosen, f"Each answer is charged as {_IN_WORDS[chosen]}: {why}.")
