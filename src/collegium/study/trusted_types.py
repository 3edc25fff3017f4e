"""Types that a published student may consist of, besides those that skops trusts by itself.

skops trusts NumPy's types and scikit-learn's public estimators. A type is listed here if making an object of
it from any content runs nothing and touches no file: what writes caches or checkpoints is not.
"""

from __future__ import annotations

_OF_COLLEGIUM = (
    "models.closed_form.kernels.KernelModel",
    "models.closed_form.logistic.LogisticTeachers",
    "models.closed_form.ridge.RidgeTeachers",
    "models.closed_form.tabular.TabularModel",
    "models.closed_form.tabular.TabularTeachers",
    "models.closed_form.tabular._Weighting",
    "models.features.embeddings.Embeddings",
    "models.features.image_points.ImagePoints",
    "models.features.kernel_components.KernelComponents",
    "models.features.network_features.NetworkFeatures",
    "models.features.patches.PatchFeatures",
    "models.features.principal.PublicComponents",
    "models.features.scattering.ScatteringTransform",
    "models.neural.networks.mlp",
    "models.neural.networks.seed_cnn",
    "models.neural.networks.small_cnn",
    "models.neural.neural_classifier.NeuralClassifier",
    "models.neural.trained_network.TrainedNetwork",
    "models.preprocessing.binned_table.BinnedTable",
    "models.preprocessing.crossed_table.CrossedTable",
    "models.preprocessing.pixels.PixelScaler",
    "models.preprocessing.principal_table.PrincipalTable",
    "models.preprocessing.tabular_encoder.TabularEncoder",
    "models.preprocessing.taught_table.TaughtTable",
    "models.preprocessing.wide_table.WideTable",
    "distillation.embedding.EvenScattering",
    "distillation.embedding.PublicEmbedding",
    "distillation.best_of_two.EitherStudent",
    "distillation.gaussian_process.GaussianProcessStudent",
    "distillation.goal.BalancedAnswers",
    "distillation.generative_student.GenerativeStudent",
    "distillation.graph.GraphStudent",
    "distillation.neural_student.NeuralStudent",
    "distillation.regression.RegressionStudent",
    "distillation.regression._Basis",
    "distillation.regression._Columns",
    "distillation.share_matching.ShareMatched",
    "distillation.supervised.NamedClasses",
    "distillation.where_in_doubt.WhereInDoubt",
)
_OF_OTHERS = (
    "functools.partial",  # of a function that is trusted itself
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)

TRUSTED = frozenset({*(f"collegium.{name}" for name in _OF_COLLEGIUM), *_OF_OTHERS})
