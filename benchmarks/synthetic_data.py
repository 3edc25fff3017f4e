"""The three tables of the comparisons of synthetic tables, with public schemas written by hand.

    python -m benchmarks.synthetic_data [--data-dir DATA] [NAME ...]

prints sizes, and how well models do that learn from the real training rows and are judged by the real test
rows, on cells: logistic regression on indicators, boosting on codes.

The schemas say what data sheets say, not what the rows hold. Categories are the sheets' (UCI: Adult, doi
10.24432/C5XW20; Diabetes 130-US Hospitals, doi 10.24432/C5230J, and Strack et al. 2014, doi
10.1155/2014/781670, tables 1 and 2; Default of Credit Card Clients, doi 10.24432/C55S3H), edges of numbers
are round, and what no sheet lists counts as missing. Where a sheet is silent about a code that its file has
(the credit file's education 0, 5 and 6), so is the schema.

- **adult**: 13 columns without fnlwgt (a weight of the survey) and education-num (education again); whether
  somebody earned more than 50,000 dollars; the published training and test files. Of two sets of round edges
  for capital gains and losses, the finer one was better on training rows that were held out.
- **readmission**: a row is a stay in hospital, a person a patient, who may have several. Whether the patient
  came back at all is asked, not whether within 30 days: both classes are large then, and differences between
  tables show. 23 columns, diagnoses by chapter of ICD-9. 70 % of the patients, with all their stays, are for
  training.
- **credit**: 24 columns; whether the next month's payment is missed. 70 % of the people are for training.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collegium import Schema
from collegium.data.cells import Cells
from collegium.data.datasets import load_dataset
from collegium.errors import InputError

TRAINING = 0.7
SPLIT_SEED = 2026


@dataclass(frozen=True, eq=False)
class Tables:
    """One data set.

    ``name``; ``schema``: public; ``target``: its column; ``train`` and ``test``: frames with the schema's
    columns and, where there is one, ``owner``, the column that says whose row it is.
    """

    name: str
    schema: Schema
    target: str
    train: pd.DataFrame
    test: pd.DataFrame
    owner: str | None = None

    @property
    def weights(self) -> np.ndarray:
        """How much each training row counts where every person counts the same.  Shape (n_train,)."""
        if self.owner is None:
            return np.ones(len(self.train))
        owners = self.train[self.owner]
        return (1 / owners.map(owners.value_counts())).to_numpy(dtype=np.float64)

    def one_row_each(self, seed: int = 0) -> pd.DataFrame:
        """Take one training row of each person, at random: so that a guarantee of rows is one of people."""
        if self.owner is None:
            return self.train
        mixed = self.train.iloc[np.random.default_rng(seed).permutation(len(self.train))]
        return mixed.drop_duplicates(self.owner).sort_index()


def category(*names: str, missing: bool = False) -> dict[str, Any]:
    """Describe a column of categories."""
    return {"kind": "category", "categories": list(names), "missing": missing}


def whole(*edges: int) -> dict[str, Any]:
    """Describe a column of whole numbers that all rows have, in bins; two edges are its bounds."""
    bounds = {"kind": "whole", "bounds": [edges[0], edges[-1]], "missing": False}
    return bounds if len(edges) == 2 else bounds | {"bins": list(edges)}


ADULT = Schema(
    {
        "age": whole(17, *range(20, 90, 5), 90),
        "workclass": category(
            *("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov"),
            *("State-gov", "Without-pay", "Never-worked"),
            missing=True,
        ),
        "education": category(
            *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"),
            *("HS-grad", "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters"),
            *("Prof-school", "Doctorate"),
        ),
        "marital-status": category(
            *("Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed"),
            *("Married-spouse-absent", "Married-AF-spouse"),
        ),
        "occupation": category(
            *("Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial"),
            *("Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical"),
            *("Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv"),
            "Armed-Forces",
            missing=True,
        ),
        "relationship": category(
            "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"
        ),
        "race": category("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
        "sex": category("Female", "Male"),
        "capital-gain": whole(
            *(0, 1, 3000, 4000, 5000, 6000, 7000, 8000, 10_000, 15_000, 20_000, 99_999)
        ),
        "capital-loss": whole(0, 1, 1500, 1600, 1700, 1800, 1900, 2000, 2200, 2500, 5000),
        "hours-per-week": whole(1, 10, 20, 25, 30, 35, 40, 41, 45, 50, 55, 60, 99),
        "native-country": category(
            *("United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany"),
            *("Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba"),
            *("Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico"),
            *("Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan"),
            *("Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand"),
            *("Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands"),
            missing=True,
        ),
        "income": category("<=50K", ">50K"),
    }
)

# Chapters of ICD-9-CM by their first three digits, with those of Strack et al. apart that their table 2 has:
# diabetes from its chapter, and codes that start with E or V together.
CHAPTERS = (
    (1, 139, "infections"),
    (140, 239, "neoplasms"),
    (250, 250, "diabetes"),
    (240, 279, "endocrine"),
    (280, 289, "blood"),
    (290, 319, "mental"),
    (320, 389, "nervous"),
    (390, 459, "circulatory"),
    (460, 519, "respiratory"),
    (520, 579, "digestive"),
    (580, 629, "genitourinary"),
    (630, 679, "pregnancy"),
    (680, 709, "skin"),
    (710, 739, "musculoskeletal"),
    (740, 759, "congenital"),
    (780, 799, "symptoms"),
    (800, 999, "injury"),
)
DIAGNOSIS = category(*dict.fromkeys(name for *_, name in CHAPTERS), "external", missing=True)
DOSE = category("No", "Down", "Steady", "Up")

READMISSION = Schema(
    {
        "race": category(
            "Caucasian", "AfricanAmerican", "Hispanic", "Asian", "Other", missing=True
        ),
        "gender": category("Female", "Male", missing=True),
        "age": category(*(f"[{low}-{low + 10})" for low in range(0, 100, 10))),
        # Kinds of IDs_mapping.csv, whose words for not knowing (5, 6 and 8; 18, 25 and 26) are missing.
        "admission": category("1", "2", "3", "4", "7", missing=True),
        "discharge": category(
            *map(str, (*range(1, 18), *range(19, 25), 27, 28, 29, 30)), missing=True
        ),
        "source": category(
            *map(str, (*range(1, 9), 10, 11, 12, 13, 14, 18, 19, *range(22, 27))), missing=True
        ),
        "time_in_hospital": whole(1, 14),
        "num_lab_procedures": whole(1, 10, 20, 30, 40, 50, 60, 70, 80, 150),
        "num_procedures": whole(0, 6),
        "num_medications": whole(1, 5, 10, 15, 20, 25, 30, 40, 100),
        "number_outpatient": whole(0, 1, 2, 3, 5, 10, 50),
        "number_emergency": whole(0, 1, 2, 3, 5, 10, 100),
        "number_inpatient": whole(0, 1, 2, 3, 4, 5, 7, 10, 30),
        "diag_1": DIAGNOSIS,
        "diag_2": DIAGNOSIS,
        "diag_3": DIAGNOSIS,
        "number_diagnoses": whole(1, 16),
        "max_glu_serum": category("None", "Norm", ">200", ">300"),
        "A1Cresult": category("None", "Norm", ">7", ">8"),
        "metformin": DOSE,
        "insulin": DOSE,
        "diabetesMed": category("No", "Yes"),
        "readmitted": category("no", "yes"),
    }
)

# Months of delay, with -1 for paid in time; -2 and 0 are in use besides, for no use and for revolving credit.
_DELAY = whole(-2, 9)
_BILL = whole(
    *(-400_000, 0, 1, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 50_000, 75_000, 100_000),
    *(150_000, 200_000, 300_000, 2_000_000),
)
_PAID = whole(
    0, 1, 500, 1000, 1500, 2000, 3000, 4000, 5000, 7500, 10_000, 20_000, 50_000, 2_000_000
)
_MONTHS = range(1, 7)

CREDIT = Schema(
    {
        "LIMIT_BAL": whole(
            *(10_000, 20_000, 30_000, 50_000, 75_000, 100_000, 150_000, 200_000, 250_000, 300_000),
            *(400_000, 500_000, 1_000_000),
        ),
        "SEX": category("1", "2"),
        "EDUCATION": category("1", "2", "3", "4", missing=True),
        "MARRIAGE": category("1", "2", "3", missing=True),
        "AGE": whole(18, *range(25, 70, 5), 100),
        **{f"PAY_{month}": _DELAY for month in (0, *_MONTHS[1:])},
        **{f"BILL_AMT{month}": _BILL for month in _MONTHS},
        **{f"PAY_AMT{month}": _PAID for month in _MONTHS},
        "default": category("no", "yes"),
    }
)


def tables(name: str, data_dir: str | Path | None = None) -> Tables:
    """Load one of the three tables.

    Parameters
    ----------
    name : {"adult", "readmission", "credit"}
    data_dir : str or path-like, optional
        Folder with ``adult/``, ``diabetes130/`` and ``credit_default/``. By default the environment variable
        ``COLLEGIUM_DATA``, else ``shared/data`` beside the repository.

    Returns
    -------
    Tables

    Raises
    ------
    InputError
        If the name is unknown or a file is missing.
    """
    if name not in LOADERS:
        raise InputError(f"name must be one of {', '.join(LOADERS)}, got {name!r}")
    return LOADERS[name](found_data_dir(data_dir))


def found_data_dir(given: str | Path | None = None) -> Path:
    """Find the folder of the data files."""
    if given is None:
        beside = Path(__file__).resolve().parents[2] / "shared" / "data"
        given = os.environ.get("COLLEGIUM_DATA") or beside
    if not Path(given).is_dir():
        raise InputError(
            f"there is no folder {str(given)!r} with data: pass --data-dir or set COLLEGIUM_DATA"
        )
    return Path(given)


def _adult(data_dir: Path) -> Tables:
    data = load_dataset("adult", data_dir, download=False)
    frame = data.X[[name for name in ADULT if name != "income"]].assign(income=data.y)
    # The published order: 32,561 training rows, then the test rows.
    return Tables("adult", ADULT, "income", frame.iloc[:32_561], frame.iloc[32_561:])


def _readmission(data_dir: Path) -> Tables:
    data = load_dataset("diabetes130-readmitted", data_dir, download=False)
    renamed = {
        "admission_type_id": "admission",
        "discharge_disposition_id": "discharge",
        "admission_source_id": "source",
    }
    whole_frame = pd.read_csv(
        data_dir / "diabetes130" / "diabetic_data.csv.gz",
        usecols=["patient_nbr", "readmitted"],
        dtype=str,
    )
    frame = data.X.rename(columns=renamed)
    for column in ("diag_1", "diag_2", "diag_3"):
        frame[column] = frame[column].map(chapter)
    frame["readmitted"] = np.where(whole_frame["readmitted"] == "NO", "no", "yes")
    frame = frame[list(READMISSION)].assign(patient_nbr=whole_frame["patient_nbr"].to_numpy())
    patients = frame["patient_nbr"].unique()
    chosen = np.random.default_rng(SPLIT_SEED).permutation(patients)[
        : round(TRAINING * len(patients))
    ]
    inside = frame["patient_nbr"].isin(chosen)
    return Tables(
        "readmission", READMISSION, "readmitted", frame[inside], frame[~inside], "patient_nbr"
    )


def chapter(code: str) -> str:
    """Name the chapter of ICD-9-CM that a code is of, or ``"?"``."""
    if code[:1] in ("E", "V"):
        return "external"
    try:
        number = int(float(code))
    except ValueError:
        return "?"
    return next((name for first, last, name in CHAPTERS if first <= number <= last), "?")


def _credit(data_dir: Path) -> Tables:
    path = data_dir / "credit_default" / "credit_default.csv.gz"
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: put the published table there as CSV")
    frame = pd.read_csv(path).rename(columns={"default.payment.next.month": "default"})
    frame["default"] = np.where(frame["default"] == 1, "yes", "no")
    order = np.random.default_rng(SPLIT_SEED).permutation(len(frame))
    n_train = round(TRAINING * len(frame))
    frame = frame[list(CREDIT)]
    return Tables(
        "credit", CREDIT, "default", frame.iloc[order[:n_train]], frame.iloc[order[n_train:]]
    )


LOADERS: dict[str, Callable[[Path], Tables]] = {
    "adult": _adult,
    "readmission": _readmission,
    "credit": _credit,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print sizes, and what models of real rows reach on the real test rows."""
    from benchmarks.synthetic_scores import aucs

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(LOADERS), metavar="NAME")
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args(arguments)
    for name in given.names:
        table = tables(name, given.data_dir)
        cells = Cells(table.schema)
        train, test = cells.codes(table.train), cells.codes(table.test)
        owners = None if table.owner is None else table.train[table.owner].nunique()
        people = "" if owners is None else f" of {owners:,} people"
        place = cells.names.index(table.target)
        logistic, boosting = aucs(train, test, cells.sizes, place)
        print(
            f"{name}: {len(train):,} training rows{people}, {len(test):,} test rows, "
            f"{len(cells.sizes)} columns, {sum(cells.sizes)} cells; "
            f"{table.target} {np.mean(train[:, place] == 1):.1%}; "
            f"real training rows: logistic {logistic:.4f}, boosting {boosting:.4f}"
        )


if __name__ == "__main__":
    main()
