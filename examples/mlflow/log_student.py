"""Log a finished study in MLflow, and ask the model that is registered: `python log_student.py STUDY TABLE`.

Where MLflow keeps its runs, MLFLOW_TRACKING_URI says; without it, in mlflow.db of this folder.
"""

from __future__ import annotations

import sys

import mlflow

import collegium
import collegium.mlflow


def main(study: str, table: str) -> None:
    """Log what was released, register its student, and predict with it."""
    with mlflow.start_run():
        collegium.mlflow.log_release(study)
        logged = collegium.mlflow.log_model(study, registered_model_name="readmissions")
    model = mlflow.pyfunc.load_model(f"models:/readmissions/{logged.registered_model_version}")
    records = collegium.read_records(table, study)
    print(model.predict(records)[:5])
    print(model.predict(records, params={"proba": True}).head())


if __name__ == "__main__":
    main(*sys.argv[1:])
