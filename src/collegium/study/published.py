"""Writing what voting released: labels, histograms, and the privacy statement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.pate.pipeline import Released
from collegium.pate.voting.labelling import Labels
from collegium.plain_text import csv_for_people
from collegium.study.folder import HISTOGRAMS_FILE, StudyFolder


def write_release(
    folder: StudyFolder,
    released: Released,
    classes: NDArray[Any],
    public_rows: NDArray[np.intp],
    about: dict[str, Any],
) -> None:
    """Write labels, histograms and the statement, and their digests. All is durable in the journal already.

    Histograms go into a Parquet file, where doubles stay exact: see
    :meth:`~collegium.pate.voting.histograms.NoisyHistograms.to_frame`.
    """
    labels = released.labels
    table = pd.DataFrame({"row": public_rows[labels.queries], "label": classes[labels.labels]})
    folder.write_bytes(folder.release / "labels.csv", csv_for_people(table))
    if released.histograms is not None:
        content = released.histograms.to_frame(classes, public_rows).to_parquet(index=False)
        folder.write_bytes(folder.release / HISTOGRAMS_FILE, content)
    summary = {**released.privacy.to_dict(), **counts_of(labels), **about}
    folder.write_json(folder.release / "privacy.json", summary)
    folder.write_digests()


def counts_of(labels: Labels) -> dict[str, Any]:
    """Count queries and labels for JSON, and say why there are no more."""
    return {
        "queries_asked": labels.n_asked,
        "labels_released": len(labels.labels),
        "stopped_by": labels.stop_reason,
    }
