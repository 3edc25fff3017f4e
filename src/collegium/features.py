"""Public features and preprocessing: no data at all, or public records only, decide what they do."""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.models.features.cache": ["CachedTransform"],
    "collegium.models.features.embeddings": ["Embeddings"],
    "collegium.models.features.image_points": ["ImagePoints"],
    "collegium.models.features.kernel_components": ["KernelComponents"],
    "collegium.models.features.network_features": ["NetworkFeatures"],
    "collegium.models.features.patches": ["PatchFeatures"],
    "collegium.models.features.principal": ["PublicComponents"],
    "collegium.models.features.scattering": ["ScatteringTransform"],
    "collegium.models.preprocessing.binned_table": ["BinnedTable"],
    "collegium.models.preprocessing.crossed_table": ["CrossedTable"],
    "collegium.models.preprocessing.declared_table": ["DeclaredTable"],
    "collegium.models.preprocessing.pixels": ["PixelScaler"],
    "collegium.models.preprocessing.principal_table": ["PrincipalTable"],
    "collegium.models.preprocessing.tabular_encoder": ["TabularEncoder"],
}

if TYPE_CHECKING:
    from collegium.models.features.cache import CachedTransform
    from collegium.models.features.embeddings import Embeddings
    from collegium.models.features.image_points import ImagePoints
    from collegium.models.features.kernel_components import KernelComponents
    from collegium.models.features.network_features import NetworkFeatures
    from collegium.models.features.patches import PatchFeatures
    from collegium.models.features.principal import PublicComponents
    from collegium.models.features.scattering import ScatteringTransform
    from collegium.models.preprocessing.binned_table import BinnedTable
    from collegium.models.preprocessing.crossed_table import CrossedTable
    from collegium.models.preprocessing.declared_table import DeclaredTable
    from collegium.models.preprocessing.pixels import PixelScaler
    from collegium.models.preprocessing.principal_table import PrincipalTable
    from collegium.models.preprocessing.tabular_encoder import TabularEncoder
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "BinnedTable",
    "CachedTransform",
    "CrossedTable",
    "DeclaredTable",
    "Embeddings",
    "ImagePoints",
    "KernelComponents",
    "NetworkFeatures",
    "PatchFeatures",
    "PixelScaler",
    "PrincipalTable",
    "PublicComponents",
    "ScatteringTransform",
    "TabularEncoder",
]
