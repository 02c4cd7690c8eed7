# SPDX-License-Identifier: Apache-2.0
"""Finds libdeuce.so, loads it once and checks that it speaks this package's ABI.

Looked for, in this order: the file named by DEUCE_LIBRARY; the one inside the package (a wheel);
the newest build of the checkout this file lies in. Nothing is built, downloaded or written.
"""
import ctypes
import os
import pathlib

from . import _abi, errors

PACKAGE = pathlib.Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent.parent
# Sanitizer builds are left out on purpose: they load into a sanitized process only.
_PRESETS = ("release", "cuda", "cpu", "bench")


def find_library():
    """Path of the library to load; ImportError with one sentence when there is none."""
    named = os.environ.get("DEUCE_LIBRARY")
    if named:
        if not os.path.isfile(named):
            raise ImportError(f"DEUCE_LIBRARY is {named!r}: there is no such file")
        return pathlib.Path(named)
    inside = PACKAGE / "lib" / "libdeuce.so"
    if inside.is_file():
        return inside
    builds = [CHECKOUT / "build" / preset / "lib" / "libdeuce.so" for preset in _PRESETS]
    found = [path for path in builds if path.is_file()]
    if found:
        return max(found, key=lambda path: path.stat().st_mtime)
    raise ImportError(
        f"libdeuce.so is neither in {inside.parent} nor in a build of {CHECKOUT}: run `cmake "
        "--preset release && cmake --build --preset release` there, or name the file in "
        "DEUCE_LIBRARY")


def _load():
    path = find_library()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from None
    try:
        found = ctypes.CFUNCTYPE(ctypes.c_uint32)(("deuce_abi_version", library))()
    except AttributeError:
        raise ImportError(f"{path} is not a Deuce library: it has no deuce_abi_version") from None
    if found != _abi.ABI_VERSION:
        raise errors.VersionMismatch(
            f"{path} has ABI version {found}: this Python package needs {_abi.ABI_VERSION}; "
            "install both from one release", "deuce_abi_version", found)
    for name, (result, arguments) in _abi.PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library, path


library, library_path = _load()
version = library.deuce_version().decode()


def raise_status(status, *structs):
    """Raise the exception of a status with the library's last sentence of this thread.

    structs: Config or Args of the call, searched for the value of the field at fault.
    """
    sentence = library.deuce_last_error().decode()
    field = library.deuce_last_error_field().decode()
    value = None
    for struct in structs:
        if field in (name for name, _ in struct._fields_):
            value = getattr(struct, field)
            value = list(value) if isinstance(value, ctypes.Array) else value
            break
    kind = errors.BY_STATUS.get(status, errors.Error)
    raise kind(sentence or library.deuce_status_string(status).decode(), field, value)


def get_include():
    """Folder to put on a compiler's include path: it holds deuce/deuce.h and deuce/deuce.hpp."""
    inside = PACKAGE / "include"
    return str(inside if inside.is_dir() else CHECKOUT / "include")


def get_cmake_dir():
    """Folder to pass as -Ddeuce_DIR=...: it holds deuce-config.cmake (in an installed package)."""
    for folder in (PACKAGE / "lib" / "cmake" / "deuce",
                   library_path.resolve().parent / "cmake" / "deuce"):
        if folder.is_dir():
            return str(folder)
    raise errors.Unsupported(
        "get_cmake_dir: this is a checkout, whose CMake package is made by `cmake --install`; an "
        "installed wheel holds it", "get_cmake_dir")
