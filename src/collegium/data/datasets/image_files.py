"""Images as people keep them: a folder of files, one subfolder per class; and NumPy's .npz files."""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.datasets.array_files import npy_header
from collegium.data.datasets.raw import existing_file, reason_of, refusal
from collegium.errors import InputError

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
"""Of files that make a folder one of images."""
_DEEP = ("I;16", "I;16L", "I;16B", "I;16N")  # grey, of 16 bits, as X-rays often are
_GREY = ("1", "L", *_DEEP)
_NOT_OF_BYTES = ("I", "F")
_BYTE_TO_16 = 257  # white is white
_RECORDS, _LABELS = "X", "y"


def is_image_folder(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder, or one of its subfolders, holds image files; by their names alone."""
    try:
        return any(
            one.name.lower().endswith(ENDINGS)
            for folder in [Path(path), *_subfolders(Path(path))]
            for one in folder.iterdir()
        )
    except OSError:
        return False


def image_paths(path: str | os.PathLike[str]) -> tuple[list[Path], list[str] | None]:
    """List the files of a folder of images in order of their names, and their classes.

    Returns: files, and the name of each one's subfolder; None where there are no subfolders. Hidden files are
        passed over.
    """
    folder = Path(path)
    try:
        below = _subfolders(folder)
        flat = _files(folder)
        if not below:
            return flat, None
        if flat:
            raise refusal(
                flat[0],
                "lies beside folders of classes",
                "put each image into its class's folder, or all of them into one",
            )
        files = [(one, each.name) for each in below for one in _files(each)]
        for each in below:
            deeper = _subfolders(each)
            if deeper:
                raise refusal(deeper[0], "is a folder in a class's folder", "put images there only")
            if not _files(each):
                raise refusal(
                    each, "is a class's folder without images", "put some there, or remove it"
                )
    except OSError as error:
        raise refusal(folder, f"cannot be read ({reason_of(error)})", "check the folder") from error
    return [one for one, _ in files], [name for _, name in files]


def read_images(path: str | os.PathLike[str]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read a folder of images, all of one size.

    ``path``: with one subfolder per class, named like it; or flat, where classes are not known.
    Returns: images (n, height, width), or (n, height, width, 3) if any file has colours; and classes. Of 8
        bits, or of 16 if any file has them: the others are scaled to these.
    Raises InputError, naming the file, if one is no image, or of another size than the first.
    """
    from PIL import Image

    files, classes = image_paths(path)
    if not files:
        raise refusal(path, "holds no image", "give a folder with some")
    size: tuple[int, int] | None = None
    read: list[NDArray[Any]] = []
    for file in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of images that unpack to very many pixels
                with Image.open(file) as image:
                    size = size or image.size
                    if image.size != size:
                        raise refusal(
                            file,
                            f"has {image.width} × {image.height} pixels, and the first image, "
                            f"{files[0].name!r}, {size[0]} × {size[1]}",
                            "bring all to one size",
                        )
                    read.append(_pixels(file, image))
        except InputError:
            raise
        except Exception as error:
            raise refusal(
                file,
                f"is no image that can be read ({type(error).__name__})",
                "remove or replace it",
            ) from error
    in_colour = any(one.ndim == 3 for one in read)
    assert size is not None
    deep = any(one.dtype == np.uint16 for one in read)
    made = np.empty(
        (len(read), size[1], size[0], 3) if in_colour else (len(read), size[1], size[0]),
        np.uint16 if deep else np.uint8,
    )
    for place, one in enumerate(read):
        made[place] = one[..., None] if in_colour and one.ndim == 2 else one
        if deep and one.dtype == np.uint8:
            made[place] *= _BYTE_TO_16
    return made, None if classes is None else np.asarray(classes, dtype=object)


def _pixels(file: Path, image: Any) -> NDArray[Any]:
    """Give grey values or colours, of 8 bits or 16."""
    if image.mode in _NOT_OF_BYTES:
        raise refusal(
            file,
            f"holds numbers of 32 bits (mode {image.mode}), whose black and white are not known",
            "store it with 8 or 16 bits, or give arrays (.npy)",
        )
    if image.mode in _DEEP:
        return np.asarray(image).astype(np.uint16)
    return np.asarray(image.convert("L" if image.mode in _GREY else "RGB"))


def image_header(path: str | os.PathLike[str]) -> tuple[tuple[int, ...], int, bool]:
    """Tell the shape of one image of a folder, how many there are, and whether subfolders are their classes.

    From names and the first file alone, which says whether there are colours.
    """
    from PIL import Image

    files, classes = image_paths(path)
    if not files:
        raise refusal(path, "holds no image", "give a folder with some")
    try:
        with Image.open(files[0]) as image:
            sides = image.height, image.width
            shape = sides if image.mode in _GREY else (*sides, 3)
            return shape, len(files), classes is not None
    except Exception as error:
        raise refusal(
            files[0],
            f"is no image that can be read ({type(error).__name__})",
            "remove or replace it",
        ) from error


def read_npz(path: str | os.PathLike[str]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read records ``X``, and their classes ``y`` if they are there, from a .npz file without Python objects.

    A file with one array only may call it anything.
    """
    path = existing_file(path)
    with _whole_npz(path), np.load(path, allow_pickle=False) as arrays:
        records, classes = _named(path, arrays.files)
        return arrays[records], None if classes is None else arrays[classes]


def npz_header(
    path: str | os.PathLike[str],
) -> tuple[tuple[int, ...], np.dtype[Any], np.dtype[Any] | None]:
    """Tell shape and type of the records of a .npz file, and the type of their classes if they are there."""
    path = existing_file(path)
    with _whole_npz(path), zipfile.ZipFile(path) as arrays:
        named = {name.removesuffix(".npy"): name for name in arrays.namelist()}
        records, classes = _named(path, list(named))
        with arrays.open(named[records]) as stream:
            shape, kind = npy_header(stream, path)
        if classes is None:
            return shape, kind, None
        with arrays.open(named[classes]) as stream:
            return shape, kind, npy_header(stream, path)[1]


@contextmanager
def _whole_npz(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, EOFError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise refusal(
            path,
            f"is not a whole .npz file without Python objects ({reason_of(error)})",
            "save it again with numpy.savez",
        ) from error


def _named(path: Path, names: list[str]) -> tuple[str, str | None]:
    """Tell what the arrays of records and of classes are called."""
    if len(names) == 1 and names[0] != _LABELS:
        return names[0], None
    if _RECORDS not in names:
        raise refusal(
            path,
            "holds several arrays, none of them 'X'",
            "save records as X, and classes as y",
        )
    return _RECORDS, _LABELS if _LABELS in names else None


def _subfolders(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
