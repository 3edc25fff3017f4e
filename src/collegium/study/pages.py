"""Writing a release's card and page: the same for every method."""

from __future__ import annotations

from collegium.report.card import render_card
from collegium.report.page import render_page
from collegium.report.sections import Page
from collegium.study.folder import MODEL_CARD, PAGE, StudyFolder


def write_pages(folder: StudyFolder, page: Page) -> None:
    """Write the card and the page about a release, and the digests of all that is in it."""
    folder.write_bytes(folder.release / MODEL_CARD, render_card(page).encode())
    folder.write_bytes(folder.release / PAGE, render_page(page).encode())
    folder.write_digests()
