"""A file of settings for `collegium label`, and the option that names it."""

from pathlib import Path


def settings(folder: Path, *lines: str) -> tuple[str, Path]:
    """Write lines such as ``aggregation.max_labels = 3`` into a folder."""
    path = folder / "settings.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "--settings", path
