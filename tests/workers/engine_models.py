"""Models that die, count or talk, for tests of the engines; workers import or unpickle them."""

import os
import signal
from pathlib import Path

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


def fingerprint(X, y):
    """Name what a teacher was trained on."""
    return joblib.hash((np.asarray(X), np.asarray(y)))


class Mortal(BaseEstimator, ClassifierMixin):
    """Remembers its shard; SIGKILLs its worker in the middle of training a shard that holds ``victim``.

    Parameters
    ----------
    victim : float
        First feature of some record.
    deaths : int
        How often; a file in ``folder`` counts.
    folder : str, optional
        Where every training leaves a line.
    moment : str
        "fit" or "predict".
    """

    def __init__(self, victim=None, deaths=0, folder=None, moment="fit", random_state=None):
        self.victim = victim
        self.deaths = deaths
        self.folder = folder
        self.moment = moment
        self.random_state = random_state

    def fit(self, X, y):
        self.saw_ = fingerprint(X, y)
        self.marked_ = self.victim is not None and bool((X[:, 0] == self.victim).any())
        self.largest_ = int(y.max()) + self.random_state % 5
        if self.folder is not None:
            with Path(self.folder, "trained.txt").open("a") as log:
                log.write(f"{self.saw_} {os.getpid()}\n")
        self._live_or_die("fit")
        return self

    def predict(self, X):
        self._live_or_die("predict")
        return np.full(len(X), self.largest_) + (X[:, 0] > 0)

    def _live_or_die(self, moment):
        if not self.marked_ or moment != self.moment:
            return
        for death in range(self.deaths):
            try:
                Path(self.folder, f"death {death}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)


class Together:
    """A batched estimator: teachers of one call share nothing but the call."""

    teachers_at_once = 4

    def fit_shards(self, shards, seeds, n_classes):
        assert 1 <= len(shards) <= self.teachers_at_once
        return [
            Mortal(random_state=seed).fit(X, y) for (X, y), seed in zip(shards, seeds, strict=True)
        ]

    def predict_shards(self, models, X_public):
        return [model.predict(X_public) for model in models]

    def fit(self, X, y):
        raise AssertionError("teachers are trained together")

    predict = fit


class CountedRecords:
    """Public records that count how often they are packed, in ``packings`` of this process."""

    packings = 0

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return self.values[key]

    def __getstate__(self):
        CountedRecords.packings += 1
        return self.__dict__


class Talkative(BaseEstimator, ClassifierMixin):
    """Quotes its records when it fails, and in its warnings."""

    def fit(self, X, y):
        raise RuntimeError(f"cannot learn {X[0].tolist()} of Ann Secret")

    def predict(self, X):
        return np.zeros(len(X))
