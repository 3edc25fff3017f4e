"""Exported events as somebody reads them who has dp_accounting, and nothing of Collegium."""

import dp_accounting as dp
from dp_accounting import rdp
from dp_accounting.pld.privacy_loss_mechanism import LaplacePrivacyLoss
from scipy.special import ndtri


def dp_event(use):
    """One entry of a list of events, for dp_accounting."""
    event, noise, times = use["event"], use["noise_multiplier"], use["count"]
    if use["kind"] in ("gaussian", "pure"):  # `pure`: the Gaussian mechanism that dominates it
        return dp.SelfComposedDpEvent(dp.GaussianDpEvent(noise), times)
    if use["kind"] == "laplace":
        return dp.SelfComposedDpEvent(dp.LaplaceDpEvent(noise), times * event["coordinates"])
    assert use["kind"] == "poisson-gaussian"
    (rate,) = event["rate"]
    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise))
    return dp.SelfComposedDpEvent(step, times * event["steps"])


def exact_mu_squared(use):
    """μ² of Gaussian and Laplace noise: exact, in closed form."""
    if use["kind"] == "gaussian":  # its Rényi divergence of order 2 is μ²
        return float(rdp.RdpAccountant([2.0]).compose(dp_event(use)).rdp[0])
    assert use["kind"] == "laplace"  # its total variation is that of N(μ, 1)
    apart = LaplacePrivacyLoss(use["noise_multiplier"]).get_delta_for_epsilon(0.0)
    return use["count"] * use["event"]["coordinates"] * (2 * ndtri((1 + apart) / 2)) ** 2
