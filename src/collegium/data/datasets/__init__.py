"""Records to learn from: files that users bring, and published data sets by name."""

from collegium.data.datasets.formats import (
    read_any,
    read_array,
    read_labelled,
    read_table,
    sha256_of,
)
from collegium.data.datasets.named import Dataset, dataset_names, default_data_dir, load_dataset

__all__ = [
    "Dataset",
    "dataset_names",
    "default_data_dir",
    "load_dataset",
    "read_any",
    "read_array",
    "read_labelled",
    "read_table",
    "sha256_of",
]
