"""Records that are described some at a time: the same bits, and little room."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from collegium.models.features import PublicComponents, ScatteringTransform, in_parts
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.preprocessing import BinnedTable, PrincipalTable, columns


def test_images_in_parts_have_the_same_bits(monkeypatch):
    images = np.random.default_rng(0).random((75, 8, 8, 3))
    view = make_pipeline(
        ScatteringTransform(J=1, root=True), PublicComponents(20, 0.5), KernelComponents(10)
    ).fit(images)
    whole = view.transform(images)
    monkeypatch.setattr(in_parts, "_IMAGES", 32)
    shapes = []
    monkeypatch.setattr(
        type(view), "transform", _counting(type(view).transform, shapes), raising=True
    )
    assert np.array_equal(in_parts.transformed(view, images), whole)
    assert shapes == [35, 35, 5]  # blocks of five images in three colours


def _counting(transform, shapes):
    def counted(self, X):
        shapes.append(len(X))
        return transform(self, X)

    return counted


@pytest.mark.parametrize("view", [BinnedTable(30), PrincipalTable(20)])
def test_tables_in_parts_have_the_same_bits(view, monkeypatch):
    table = _table(300)
    whole = view.fit(table).transform(table)
    monkeypatch.setattr(columns, "_ROWS", 64)
    assert np.array_equal(view.transform(table), whole)


def test_a_column_for_each_category_takes_no_room_for_all_records_at_once(monkeypatch):
    monkeypatch.setattr(columns, "_ROWS", 256)
    view, table = BinnedTable(5).fit(_table(500)), _table(4_000)
    tracemalloc.start()
    view.transform(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15 * 2**20  # 55 MB at once


def _table(n):
    random = np.random.default_rng(n)
    names = {f"c{i}": random.integers(0, 50, n).astype(str) for i in range(6)}
    return pd.DataFrame({**names, "size": random.normal(size=n), "age": np.arange(n) % 60.0})
