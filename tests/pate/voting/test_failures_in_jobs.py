"""A failure in the middle of a block (not a crash) keeps what was paid for, and loses one query at most."""

import numpy as np
import pytest

from collegium import Budget, GNMax, InteractiveGNMax, Uniform, VoteTable
from collegium.mechanisms import SeededNoise
from collegium.pate.voting.labelling import LOST, LabellingJob
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.study.journal import FileJournal


class Breaks(SeededNoise):
    """Fails at one query, after it was asked for noise."""

    def __init__(self, query: int) -> None:
        super().__init__(1)
        self.query = query

    def noised(self, total, noise, *, query, purpose):
        drawn = super().noised(total, noise, query=query, purpose=purpose)
        if query == self.query:
            raise ValueError("broken")
        return drawn


class ForgetfulStudent:
    """Cannot learn."""

    def refit(self, queries, labels):
        raise ValueError("cannot learn")

    def probabilities(self, query):
        return None


def job(aggregator, noise, path, student=None) -> LabellingJob:
    electorate = Uniform().plan({"all": Budget(50.0, 1e-5)}, {"all": 100}, 10).electorate(0)
    votes = VoteTable.from_predictions(np.arange(300).reshape(30, 10) % 3, 3)
    return LabellingJob(
        votes,
        electorate,
        aggregator,
        WorstCasePricing(aggregator, electorate),
        noise,
        np.arange(30),
        student=student,
        journal=FileJournal(path),
        block=8,
    )


def test_a_query_that_fails_is_lost_and_the_ones_before_it_are_kept(tmp_path):
    path = tmp_path / "journal"
    aggregator = GNMax(5.0)
    with pytest.raises(ValueError, match="broken"):
        job(aggregator, Breaks(11), path).run()
    kept = FileJournal(path).settled()
    assert [outcome.query for outcome in kept] == list(range(12))
    assert [outcome.query for outcome in kept if outcome.verdict == LOST] == [11]
    labels = job(aggregator, SeededNoise(1), path).run()
    assert labels.outcomes[:12] == kept
    whole = job(aggregator, SeededNoise(1), tmp_path / "another").run()
    assert [o for o in labels.outcomes if o.query != 11] == [
        o for o in whole.outcomes if o.query != 11
    ]


def test_a_student_that_fails_loses_nothing_however_often_it_is_tried(tmp_path):
    path = tmp_path / "journal"
    aggregator = InteractiveGNMax(-100.0, 5.0, 5.0, refit_every=3)
    for _ in range(3):
        with pytest.raises(ValueError, match="cannot learn"):
            job(aggregator, SeededNoise(1), path, ForgetfulStudent()).run()
        kept = FileJournal(path).settled()
        assert len(kept) == 3
        assert all(outcome.verdict != LOST for outcome in kept)
