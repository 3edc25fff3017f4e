"""Public features: maps of records to numbers that are fixed by public knowledge alone.

A good public representation is worth more to a small teacher than any amount of training. What stands
here either needs no data at all (:class:`ScatteringTransform`), or is fitted on public records only
(:class:`PublicComponents`), or was made elsewhere (:class:`Embeddings`); what it does to one record
never depends on another private record.
"""

from collegium.models.features.cache import CachedTransform, FeatureCache, transform_cached
from collegium.models.features.embeddings import Embeddings
from collegium.models.features.principal import PublicComponents
from collegium.models.features.scattering import ScatteringTransform

__all__ = [
    "CachedTransform",
    "Embeddings",
    "FeatureCache",
    "PublicComponents",
    "ScatteringTransform",
    "transform_cached",
]
