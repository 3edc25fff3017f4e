"""Who is compared by :mod:`benchmarks.synthetic_peers`: what is installed, and what each one guarantees.

Guarantees and domains are as their sources say, read in the versions that are pinned here (google/dpsynth at
cf8075f, private-pgm at 4d2b3c5); where a source does otherwise than its paper, that is said. Settings are
defaults, but for two: AIM of dpmm has the 80 MB that AIM has elsewhere (its own default is no limit), and
``-1mb`` is what AIM's authors recommend for trying it out; SWIFT is put to about the same size.

opendp 0.16.0 and smartnoise-synth 1.0.8 draw rows with mbi 1.1.0, whose default way ("round") gives all
columns that hang on the same one the same order of rows: columns that should be independent given it go
together (a pair of Adult: total variation .55 with all measured pairs right). opendp has another way,
``-sampled``, which its AIM is given here; smartnoise-synth has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HERE = ""
"""The environment of a peer that runs in this one."""


@dataclass(frozen=True)
class Environment:
    """What is installed: ``packages`` by name, and a checkout (``source``) where needed.

    ``python``: the least version. ``main``: the package whose version is reported.
    """

    packages: tuple[str, ...]
    main: str
    python: tuple[int, int] = (3, 11)
    source: bool = False
    installed: bool = True
    """Whether the source is installed, or only put on the path."""


ENVIRONMENTS = {
    "dpsynth": Environment(
        (
            *(
                "jax[cpu]==0.11.0",
                "mbi==2.0.0",
                "dp-accounting==0.6.0",
                "absl-py",
                "attrs",
                "pandas",
            ),
            *(
                "pydantic>=2",
                "pyyaml",
                "more-itertools",
                "networkx",
                "scipy",
                "tqdm",
                "etils[epath]",
            ),
        ),
        main="dpsynth",
        python=(3, 12),
        source=True,
    ),
    "private-pgm": Environment(
        (
            "jax[cpu]",
            "attrs",
            "numpy",
            "scipy",
            "pandas",
            "networkx",
            "chex",
            "optax",
            "matplotlib",
        ),
        main="mbi",
        source=True,
        installed=False,
    ),
    "dpmm": Environment(("dpmm==0.1.9",), main="dpmm"),
    "smartnoise": Environment(
        ("torch==2.13.0", "smartnoise-synth==1.0.8"), main="smartnoise-synth"
    ),
    "opendp": Environment(("opendp[mbi,polars]==0.16.0", "pandas<3"), main="opendp"),
}


@dataclass(frozen=True)
class Peer:
    """One way to make a synthetic table.

    ``call``: in synthetic_peer_calls.py. ``guarantee``: what its source says, and what was read there.
    ``domain``: where it takes cells from by default; here all are told.
    """

    environment: str
    call: str
    guarantee: str
    domain: str
    settings: Mapping[str, Any] = field(default_factory=dict)


_TOLD = "told by the caller"
_DPSYNTH = (
    "told by the caller; bins of numbers and open sets of categories are found within the budget"
)
_DPMM = "read off the private rows, with a warning in the log, unless it is told"
_OPENDP = "told by the caller, or found with δ"
_ZCDP = "zCDP from (ε, δ), add or remove a row"
_GDP = "Gaussian DP from (ε, δ), exactly; add or remove a row"
_SMART = "read off the private rows (as labels) unless a fitted transformer is given"
_SMART_TOTAL = f"{_ZCDP}; the exact number of rows is used besides"
_GAN = (
    "moments of DP-SGD or PATE at (ε, δ); in 1.0.8 the exact shares of categories decide which rows are "
    "trained on, and nothing is paid for them"
)
PEERS = {
    "collegium": Peer(
        HERE,
        "collegium",
        "individual Gaussian DP from each person's (ε, δ), exactly; add or remove a person",
        "a public schema, mandatory",
        {"with_target": True},
    ),
    "dpsynth-mst": Peer(
        "dpsynth", "dpsynth", _ZCDP, _DPSYNTH, {"mechanism": "MSTConfig", "gaussian": False}
    ),
    "dpsynth-swift": Peer(
        "dpsynth", "dpsynth", _GDP, _DPSYNTH, {"mechanism": "SWIFTConfig", "gaussian": True}
    ),
    "dpsynth-swift-1mb": Peer(
        "dpsynth",
        "dpsynth",
        _GDP,
        _DPSYNTH,
        {"mechanism": "SWIFTConfig", "gaussian": True, "max_clique_size": 131_072},
    ),
    "dpsynth-aim-gdp": Peer(
        "dpsynth", "dpsynth", _GDP, _DPSYNTH, {"mechanism": "AIMGDPConfig", "gaussian": True}
    ),
    "dpsynth-aim-gdp-1mb": Peer(
        "dpsynth",
        "dpsynth",
        _GDP,
        _DPSYNTH,
        {"mechanism": "AIMGDPConfig", "gaussian": True, "max_model_size": 1},
    ),
    "private-pgm-mst": Peer("private-pgm", "private_pgm", _ZCDP, _TOLD, {"mechanism": "MST"}),
    "private-pgm-aim": Peer(
        "private-pgm", "private_pgm", _ZCDP, _TOLD, {"mechanism": "AIM", "max_model_size": 80}
    ),
    "private-pgm-aim-1mb": Peer(
        "private-pgm", "private_pgm", _ZCDP, _TOLD, {"mechanism": "AIM", "max_model_size": 1}
    ),
    "dpmm-mst": Peer(
        "dpmm",
        "dpmm",
        _ZCDP,
        _DPMM,
        {"mechanism": "MSTPipeline"},
    ),
    "dpmm-aim": Peer(
        "dpmm",
        "dpmm",
        _ZCDP,
        _DPMM,
        {"mechanism": "AIMPipeline", "pipeline": {"max_model_size": 80}},
    ),
    "dpmm-aim-1mb": Peer(
        "dpmm",
        "dpmm",
        _ZCDP,
        _DPMM,
        {"mechanism": "AIMPipeline", "pipeline": {"max_model_size": 1}},
    ),
    "dpmm-privbayes": Peer(
        "dpmm",
        "dpmm",
        "half pure, half zCDP from (ε, δ); parents are chosen by normalised mutual information in bits, with "
        "the sensitivity of plain mutual information in nats",
        _DPMM,
        {"mechanism": "PrivBayesPipeline"},
    ),
    "smartnoise-mst": Peer(
        "smartnoise", "smartnoise", _SMART_TOTAL, _SMART, {"mechanism": "mst", "style": "cube"}
    ),
    "smartnoise-aim": Peer(
        "smartnoise", "smartnoise", _ZCDP, _SMART, {"mechanism": "aim", "style": "cube"}
    ),
    "smartnoise-patectgan": Peer(
        "smartnoise",
        "smartnoise",
        f"{_GAN}; all teachers are one network",
        _SMART,
        {"mechanism": "patectgan", "style": "gan"},
    ),
    "smartnoise-dpctgan": Peer(
        "smartnoise", "smartnoise", _GAN, _SMART, {"mechanism": "dpctgan", "style": "gan"}
    ),
    "opendp-mst": Peer("opendp", "opendp", _ZCDP, _OPENDP, {"mechanism": "MST"}),
    "opendp-mst-sampled": Peer(
        "opendp", "opendp", _ZCDP, _OPENDP, {"mechanism": "MST", "method": "sample"}
    ),
    "opendp-aim": Peer(
        "opendp", "opendp", _ZCDP, _OPENDP, {"mechanism": "AIM", "method": "sample"}
    ),
    "opendp-aim-1mb": Peer(
        "opendp",
        "opendp",
        _ZCDP,
        _OPENDP,
        {"mechanism": "AIM", "method": "sample", "max_size": 1.0},
    ),
}
