"""What was predicted when a study was chosen, kept to be shown beside what came out."""

from __future__ import annotations

import json

from collegium.durable import write_durably
from collegium.evaluation.quality import TEST, Quality
from collegium.json_files import read_json
from collegium.planner.expected import MEASURES, NOT_KNOWN, Expected
from collegium.study.folder import StudyFolder

FORETOLD = "expected.json"


def keep_foretold(folder: StudyFolder, expected: Expected) -> None:
    """Write a prediction into a study's folder, before anything is spent; where nothing is known, none."""
    if expected.basis == NOT_KNOWN:
        (folder.path / FORETOLD).unlink(missing_ok=True)
        return
    told = {"measure": expected.measure, "low": expected.low, "high": expected.high}
    write_durably(folder.path / FORETOLD, (json.dumps(told, indent=2) + "\n").encode())


def foretold_beside(folder: StudyFolder, quality: Quality | None) -> str:
    """Say what was predicted, and what came out on test records; empty where either is missing."""
    path = folder.path / FORETOLD
    if quality is None or quality.measured_on != TEST or not path.exists():
        return ""
    kept = read_json(path, {"measure": str, "low": (float, int), "high": (float, int)})
    measure, low, high = kept["measure"], kept["low"], kept["high"]
    of_auc = measure == MEASURES["auc"]
    came = {MEASURES["balanced"]: quality.balanced_accuracy, MEASURES["auc"]: quality.auc}.get(
        measure, quality.accuracy
    )
    if came is None:
        return ""
    times, digits, unit = (1, 3, "") if of_auc else (100, 1, " %")
    shown = [f"{times * value:.{digits}f}" for value in (low, high, came)]
    where = "below" if came < low else "above" if came > high else "within"
    return (
        f"Predicted {shown[0]} to {shown[1]}{unit} {measure}, measured {shown[2]}{unit} on "
        f"{quality.n:,} test records: {where} what was predicted."
    )
