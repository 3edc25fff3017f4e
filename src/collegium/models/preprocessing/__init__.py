"""Public preprocessing: fitted on public records only, then applied to everybody's.

An encoder that is fitted on private records leaks them, outside every account: its categories say
who is there, its ranges are somebody's exact values. So the transformers here are fitted on public
records (:class:`TabularEncoder`, :class:`PrincipalTable`, :class:`BinnedTable`,
:class:`CrossedTable`), also on their labels (:class:`TaughtTable`), or need no data at all
(:class:`PixelScaler`), and what they do to one record never depends on another private record. They
cannot know whether the records given to ``fit`` are public: that is the caller's promise.
"""

from collegium.models.preprocessing.binned_table import BinnedTable
from collegium.models.preprocessing.crossed_table import CrossedTable
from collegium.models.preprocessing.pixels import PixelScaler
from collegium.models.preprocessing.principal_table import PrincipalTable
from collegium.models.preprocessing.tabular_encoder import TabularEncoder
from collegium.models.preprocessing.taught_table import TaughtTable

__all__ = [
    "BinnedTable",
    "CrossedTable",
    "PixelScaler",
    "PrincipalTable",
    "TabularEncoder",
    "TaughtTable",
]
