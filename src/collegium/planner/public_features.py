"""Public records as several ways to learn see them; what is slow and common to them is done once."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from collegium.dpsgd.settings import MOST_COMPONENTS
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.trial import one_line_about
from collegium.runs.views import View, fitted_view


class Looks:
    """Views of the same public records. Those that end in kernel components share all but how many there are.

    ``X``: public records, which every view is fitted on.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self._about = ""
        self._head: Any = None
        self._points: Any = None
        self._widest: Any = None

    def view(self, preprocessing: Any) -> View:
        """Fit a preprocessing, which is not changed."""
        if not ends_in_kernel(preprocessing):
            return fitted_view(preprocessing, self.X, "preprocessing")
        *head, (name, last) = preprocessing.steps
        self._fit(Pipeline(head), last)
        return View(Pipeline([*self._head.steps, (name, self._widest.narrowed(last.n_components))]))

    def seen(self, view: View) -> Any:
        """Show these records through a view that was made here."""
        if self._points is None or not ends_in_kernel(view.transformer):
            return view.of(self.X)
        return view.transformer[-1].transform(self._points)  # type: ignore[index]

    def _fit(self, head: Pipeline, last: KernelComponents) -> None:
        widest = clone(last).set_params(n_components=max(MOST_COMPONENTS, last.n_components))
        about = f"{head!r} {widest!r}"
        if about == self._about:
            return
        with one_line_about("preprocessing", "fitted to the public records"):
            self._head = clone(head)
            self._points = self._head.fit_transform(self.X)
            self._widest = widest.fit(self._points)
        self._about = about


def ends_in_kernel(transformer: Any) -> bool:
    """Tell whether the components of a kernel come last."""
    return isinstance(transformer, Pipeline) and isinstance(transformer[-1], KernelComponents)
