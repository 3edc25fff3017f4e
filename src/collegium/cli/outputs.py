"""Places that a user names: a study's folder; files to write, which must not be there."""

from __future__ import annotations

from pathlib import Path

from collegium.durable import write_durably
from collegium.errors import InputError


def folder_of(path: Path) -> Path:
    """Take a study's folder, or find it beside its TOML file."""
    if not path.exists():
        raise InputError(
            f"there is no {path}: give the folder of a study or label job, or its TOML file"
        )
    return path.with_suffix("") if path.is_file() else path


def refuse_taken(path: Path) -> None:
    """Refuse a file that is there with content, and any place in the vault or release of a study.

    To be asked before the work is done. A device or pipe, such as ``/dev/stdout``, takes what it is given.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file")
    if path.is_file() and path.stat().st_size:
        raise taken(path)
    refuse_among_a_studys_files(path)


def taken(path: Path) -> InputError:
    """What there is to say of a name that something else has."""
    return InputError(f"{path} exists already and is left as it is: move it, or give another name")


def refuse_no_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there. To be asked before the work is done."""
    if not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent} for {path.name}: make it, or give another place"
        )


def refuse_among_a_studys_files(path: Path) -> None:
    """Refuse a file or folder in the vault or release of a study."""
    place = path.resolve()
    for folder in place.parents:
        if (folder / "vault/journal.jsonl").exists() and place.relative_to(folder).parts[0] in (
            "vault",
            "release",
        ):
            raise InputError(
                f"{path} would be among the files of the study in {folder}, which are left as they are: "
                "give a place elsewhere"
            )


def write_named(
    path: Path, content: bytes, *, is_ours: bool = False, is_private: bool = False
) -> None:
    """Write a file that a user named, unless it is taken.

    ``is_ours``: whether what is there was made by the same command, of nothing but the software's version.
    ``is_private``: whether only its owner may read it.
    """
    if not is_ours:
        refuse_taken(path)
    try:
        if is_private:
            write_durably(path, content, private=True)
        else:
            path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from None
