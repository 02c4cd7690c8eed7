# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Deuce: one class for each status of the C library.

Every message is the library's own sentence, unchanged; refusals made on the Python side (a wrong
shape, an argument no backend serves) use the same classes and name the Python argument. Whatever
is raised, the output, the LSE and the workspace of the call are untouched.
"""


class Error(Exception):
    """A call that Deuce refused or could not finish.

    status: int, the C status (DEUCE_INVALID_ARGUMENT = 1, ...).
    field: str, the argument the sentence is about, "" when there is none.
    value: the value that argument had, None when it is a pointer or not known.
    """

    status = 0

    def __init__(self, message, field="", value=None):
        super().__init__(message)
        self.field = field
        self.value = value


class InvalidArgument(Error, ValueError):
    """A value that can never be right, or two that contradict each other."""

    status = 1


class Unsupported(Error, NotImplementedError):
    """Legal, but not on this backend, GPU or version; the sentence says what would be accepted."""

    status = 2


class WorkspaceTooSmall(Error):
    """The workspace given is smaller than needed; the sentence holds both numbers of bytes."""

    status = 3


class NoDevice(Error):
    """No driver, no device, or a device this library has no kernel for."""

    status = 4


class DeviceFault(Error):
    """An earlier run met lengths, page ids or tables that contradict the call."""

    status = 5


class RuntimeFailure(Error, RuntimeError):
    """The CUDA runtime or the operating system refused something."""

    status = 6


class VersionMismatch(Error):
    """This package and the library it loaded do not belong together."""

    status = 7


class Hazard(Error):
    """The emulator found a race, a deadlock or a broken machine contract."""

    status = 8


BY_STATUS = {kind.status: kind for kind in (
    InvalidArgument, Unsupported, WorkspaceTooSmall, NoDevice, DeviceFault, RuntimeFailure,
    VersionMismatch, Hazard)}
