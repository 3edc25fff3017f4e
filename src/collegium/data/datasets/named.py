"""Data sets by name, as their sources published them, with the unit of privacy where it is known.

==========================  =======  =======================  ==================================
name                        records  owner                    source, licence
==========================  =======  =======================  ==================================
``digits``                    1,797  each record its own      scikit-learn (UCI), CC BY 4.0
``mnist``                    70,000  each record its own      OpenML (LeCun, Cortes, Burges)
``adult``                    48,842  each record its own      UCI, CC BY 4.0
``diabetes130``             101,766  the patient (71,518)     UCI, CC BY 4.0
``diabetes130-readmitted``  101,766  the patient (71,518)     the same; come back, or not
==========================  =======  =======================  ==================================
"""

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.datasets import openml
from collegium.data.datasets.array_files import parse_idx
from collegium.data.datasets.download import RawFile, ZipArchive, obtain
from collegium.data.datasets.table_files import parse_csv
from collegium.errors import InputError

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country"),
)
ADULT_FILES = (
    RawFile("adult/adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    RawFile("adult/adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
)
ADULT_SOURCE = ZipArchive("https://archive.ics.uci.edu/static/public/2/adult.zip")
DIABETES_FILES = (
    RawFile(
        "diabetes130/diabetic_data.csv",
        "0689e7ec031237dc63031b938805c48377748761a3b26acab621567afa24df97",
    ),
)
DIABETES_SOURCE = ZipArchive(
    "https://archive.ics.uci.edu/static/public/296/"
    "diabetes+130-us+hospitals+for+years+1999-2008.zip"
)
MNIST_FILES = (
    RawFile(
        f"mnist/{openml.TRAIN_IMAGES}",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    RawFile(
        f"mnist/{openml.TRAIN_LABELS}",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    RawFile(
        f"mnist/{openml.TEST_IMAGES}",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    RawFile(
        f"mnist/{openml.TEST_LABELS}",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)
MNIST_SOURCE = openml.OpenMLMnist()


@dataclass(frozen=True, eq=False)
class Dataset:
    """Records, labels and owners of one data set.

    Parameters
    ----------
    name : str
        The name to load it by.
    X : pandas.DataFrame or ndarray, n_records long
        The records' features.
    y : ndarray of shape (n_records,)
        The label of each record.
    classes : tuple
        All classes in a fixed, public order, whether or not they occur in ``y``.
    owners : ndarray of shape (n_records,) or None
        Who each record belongs to; None where every record is its own owner.
    description : str
        What a record is and what is predicted.
    source : str
        Whom to cite.
    licence : str
        The terms of use.

    Examples
    --------
    >>> digits = load_dataset("digits")
    >>> digits.X.shape, digits.classes[:3], digits.owners is None
    ((1797, 64), (0, 1, 2), True)
    """

    name: str
    X: pd.DataFrame | NDArray[Any]
    y: NDArray[Any]
    classes: tuple[Any, ...]
    owners: NDArray[Any] | None
    description: str
    source: str
    licence: str


def dataset_names() -> tuple[str, ...]:
    """Return the names that :func:`load_dataset` knows.

    Returns
    -------
    tuple of str
        The names, smallest data set first.

    Examples
    --------
    >>> dataset_names()
    ('digits', 'adult', 'mnist', 'diabetes130', 'diabetes130-readmitted')
    """
    return tuple(_LOADERS)


def default_data_dir() -> Path:
    """Return the folder where data sets are looked for and stored if none is given.

    Returns: the environment variable ``COLLEGIUM_DATA`` if it is set, else ``collegium`` in the
        user's cache folder (``XDG_CACHE_HOME``, or ``~/.cache``).
    """
    if folder := os.environ.get("COLLEGIUM_DATA"):
        return Path(folder).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification asks to ignore a relative path.
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "collegium"


def load_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    *,
    drop_missing: bool = False,
) -> Dataset:
    """Load a data set by name, from the data folder or else from its original source.

    Parameters
    ----------
    name : {"digits", "adult", "mnist", "diabetes130", "diabetes130-readmitted"}
        Which one.
    data_dir : str or path-like, optional
        The folder with ``adult/adult.data`` and ``adult.test``, ``diabetes130/diabetic_data.csv``,
        ``mnist/train-images-idx3-ubyte`` and its three siblings, each plain or as ``.gz``. By
        default the environment variable ``COLLEGIUM_DATA``, else the user's cache folder.
    download : bool, default=True
        Whether missing files are fetched (and stored in the folder).
    drop_missing : bool, default=False
        For ``adult`` only: leave out the 3,620 records with a ``?``, so that 45,222 remain.

    Returns
    -------
    Dataset
        The records in the order of the source: training files before test files.

    Raises
    ------
    InputError
        If the name is unknown, or a file is missing and cannot be fetched, or a file (found or
        fetched) does not have the published SHA-256.

    References
    ----------
    - ``digits``: Alpaydin & Kaynak (1998), doi 10.24432/C50P49, CC BY 4.0, as in scikit-learn.
    - ``mnist``: LeCun, Cortes & Burges (1998), *The MNIST database of handwritten digits*.
    - ``adult``: Becker & Kohavi (1996), doi 10.24432/C5XW20, CC BY 4.0.
    - ``diabetes130`` (and ``-readmitted``): Clore, Cios, DeShazo & Strack (2014), doi
      10.24432/C5230J, CC BY 4.0.

    Examples
    --------
    >>> digits = load_dataset("digits")
    >>> digits.X.shape, digits.y.shape, digits.classes
    ((1797, 64), (1797,), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
    """
    if name not in _LOADERS:
        raise InputError(
            f"there is no data set {name!r}; allowed are {', '.join(_LOADERS)}; "
            "for a file of your own use collegium.data.datasets.read_any"
        )
    if drop_missing and name != "adult":
        raise InputError(
            f"drop_missing was given for {name!r}; it is allowed for 'adult' only; leave it out"
        )
    folder = default_data_dir() if data_dir is None else Path(data_dir).expanduser()
    dataset = _LOADERS[name](folder, download)
    return _without_missing(dataset) if drop_missing else dataset


def _load_digits(folder: Path, download: bool) -> Dataset:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return Dataset(
        name="digits",
        X=images,
        y=labels,
        classes=tuple(range(10)),
        owners=None,
        description="Handwritten digits, 8 x 8 pixels from 0 to 16; the digit is predicted.",
        source="Alpaydin & Kaynak 1998, UCI, doi 10.24432/C50P49 (test part, as in scikit-learn)",
        licence="CC BY 4.0",
    )


def _load_mnist(folder: Path, download: bool) -> Dataset:
    contents = obtain(MNIST_FILES, folder, MNIST_SOURCE, download=download)
    train_images, train_labels, test_images, test_labels = (
        parse_idx(io.BytesIO(contents[file.path]), file.path) for file in MNIST_FILES
    )
    return Dataset(
        name="mnist",
        X=np.concatenate([train_images, test_images]),
        y=np.concatenate([train_labels, test_labels]).astype(np.int64),
        classes=tuple(range(10)),
        owners=None,
        description="Handwritten digits, 28 x 28 pixels from 0 to 255: 60,000 training images, "
        "then 10,000 test images; the digit is predicted.",
        source="LeCun, Cortes & Burges 1998, The MNIST database of handwritten digits",
        licence="not stated by the authors (OpenML lists it as public)",
    )


def _load_adult(folder: Path, download: bool) -> Dataset:
    contents = obtain(ADULT_FILES, folder, ADULT_SOURCE, download=download)
    frame = pd.concat(
        [
            parse_csv(
                io.BytesIO(contents[file.path]),
                header=None,
                names=[*ADULT_COLUMNS, "income"],
                skipinitialspace=True,
                comment="|",  # the line "|1x3 Cross validator"
            )
            for file in ADULT_FILES
        ],
        ignore_index=True,
    )
    return Dataset(
        name="adult",
        X=frame[list(ADULT_COLUMNS)],
        y=frame["income"].str.removesuffix(".").to_numpy(dtype=str),
        classes=("<=50K", ">50K"),
        owners=None,
        description="Answers of adults to the US census of 1994, training file, then test file; "
        "whether they earn more than 50,000 dollars a year is predicted; '?' is unknown.",
        source="Becker & Kohavi 1996, UCI, doi 10.24432/C5XW20",
        licence="CC BY 4.0",
    )


def _load_diabetes(folder: Path, download: bool) -> Dataset:
    contents = obtain(DIABETES_FILES, folder, DIABETES_SOURCE, download=download)
    frame = parse_csv(io.BytesIO(contents[DIABETES_FILES[0].path]))
    return Dataset(
        name="diabetes130",
        X=frame.drop(columns=["encounter_id", "patient_nbr", "readmitted"]),
        y=frame["readmitted"].to_numpy(dtype=str),
        classes=("NO", ">30", "<30"),
        owners=frame["patient_nbr"].to_numpy(),
        description="Hospital stays of diabetes patients in the USA, 1999-2008; whether and within "
        "how many days they come back is predicted; '?' is unknown; the owner is the patient.",
        source="Clore, Cios, DeShazo & Strack 2014, UCI, doi 10.24432/C5230J",
        licence="CC BY 4.0",
    )


def _load_readmitted(folder: Path, download: bool) -> Dataset:
    stays = _load_diabetes(folder, download)
    return replace(
        stays,
        name="diabetes130-readmitted",
        y=np.where(stays.y == "NO", "no", "yes"),
        classes=("no", "yes"),
        description="Hospital stays of diabetes patients in the USA, 1999-2008; whether they come "
        "back at any later time is predicted; '?' is unknown; the owner is the patient.",
    )


def _without_missing(dataset: Dataset) -> Dataset:
    frame = dataset.X
    keep = ~(frame == "?").any(axis=1)
    return replace(dataset, X=frame[keep].reset_index(drop=True), y=dataset.y[keep.to_numpy()])


_LOADERS: dict[str, Callable[[Path, bool], Dataset]] = {
    "digits": _load_digits,
    "adult": _load_adult,
    "mnist": _load_mnist,
    "diabetes130": _load_diabetes,
    "diabetes130-readmitted": _load_readmitted,
}
