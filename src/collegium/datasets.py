"""Records to learn from: published data sets by name, and files of your own."""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.data.datasets.array_files": ["read_array"],
    "collegium.data.datasets.named": ["Dataset", "dataset_names", "load_dataset"],
    "collegium.data.datasets.table_files": ["read_table"],
}

if TYPE_CHECKING:
    from collegium.data.datasets.array_files import read_array
    from collegium.data.datasets.named import Dataset, dataset_names, load_dataset
    from collegium.data.datasets.table_files import read_table
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "Dataset",
    "dataset_names",
    "load_dataset",
    "read_array",
    "read_table",
]
