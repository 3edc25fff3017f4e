"""Writing what a release says of itself: its statement, its card and its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collegium.accounting.statement import PrivacyStatement
from collegium.report.card import render_card
from collegium.report.page import render_page
from collegium.report.sections import Page
from collegium.study.folder import MODEL_CARD, PAGE, StudyFolder, versions


def write_pages(folder: StudyFolder, page: Page) -> None:
    """Write the card and the page about a release, and the digests of all that is in it."""
    folder.write_bytes(folder.release / MODEL_CARD, render_card(page).encode())
    folder.write_bytes(folder.release / PAGE, render_page(page).encode())
    folder.write_digests()


def write_privacy(
    folder: StudyFolder,
    privacy: PrivacyStatement,
    settings: Mapping[str, Any],
    **about: Any,
) -> None:
    """Write what was promised and spent, for programs.

    ``settings``: of the study, which may be published. ``about``: what was released, counted.
    """
    told = {**privacy.to_dict(), **about, "config": settings, "versions": versions()}
    folder.write_json(folder.release / "privacy.json", told)
