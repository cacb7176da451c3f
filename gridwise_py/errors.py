"""The exceptions of this library.

::

    GridwiseError
    ├── ArgumentError (ValueError)        an argument is wrong; nothing was submitted
    │   ├── DatatypeError (TypeError)     a dtype or Python type that the call does not accept
    │   ├── CallError (TypeError)         arguments that the function does not have, or too many by position
    │   ├── BoundsError (IndexError)      an index that no item has
    │   │   └── AxisError (numpy.AxisError) an axis that the array does not have
    │   ├── LengthError                   lengths that do not match
    │   ├── OverlapError                  overlapping views that the kernel does not support
    │   ├── BufferUsageError              destroyed, mapped, of another device, or a usage flag is missing
    │   ├── LimitError                    over a limit of the device; the message has its name and value
    │   ├── EmptyReductionError           an empty minimum or maximum
    │   └── BadResultsFile                a results file that cannot be read; the message says where it is wrong
    ├── AdapterError (LookupError)        no such adapter, or none at all
    ├── ShaderError                       a shader that cannot be composed or compiled
    ├── TimingError (RuntimeError)
    │   ├── TimingNotReady                the work has not been submitted yet
    │   └── TimingUnavailable             nothing was timed, or no timestamp query is free
    ├── ClusterError (RuntimeError)        a Dask cluster without a worker that can do the work, or an unsafe one
    ├── ImplicitConversionError (TypeError)   an Array where a numpy array was expected
    └── DeviceError (RuntimeError)        the device refused work or was lost
        ├── DeviceLostError               the device was lost or destroyed; a new one is needed
        ├── DeviceMemoryError (MemoryError)    the device has too little memory
        ├── DeviceTimeoutError (TimeoutError)  the GPU did not finish within the timeout
        └── ForkError                     the process was forked after its parent had used the GPU

    GridwiseWarning (UserWarning)
"""

import numpy as np

__all__ = [
    "AdapterError",
    "ArgumentError",
    "AxisError",
    "BadResultsFile",
    "BoundsError",
    "BufferUsageError",
    "CallError",
    "ClusterError",
    "DatatypeError",
    "DeviceError",
    "DeviceLostError",
    "DeviceMemoryError",
    "DeviceTimeoutError",
    "EmptyReductionError",
    "ForkError",
    "GridwiseError",
    "GridwiseWarning",
    "ImplicitConversionError",
    "LengthError",
    "LimitError",
    "OverlapError",
    "ShaderError",
    "TimingError",
    "TimingNotReady",
    "TimingUnavailable",
]


class GridwiseError(Exception):
    """Base of every exception that this library raises on purpose."""


class ArgumentError(GridwiseError, ValueError):
    """An argument is wrong; nothing was submitted and nothing was changed."""


class DatatypeError(ArgumentError, TypeError):
    """A dtype or a Python type that the call does not accept."""


class CallError(ArgumentError, TypeError):
    """A call with arguments that the function does not have, or with more by position than it takes."""


class BoundsError(ArgumentError, IndexError):
    """An index that no item has."""


class AxisError(BoundsError, np.exceptions.AxisError):
    """An axis that the array does not have, or one that is named twice."""

    def __init__(self, message: str):
        super().__init__(message)


class LengthError(ArgumentError):
    """Lengths that do not match."""


class OverlapError(ArgumentError):
    """Views of one buffer overlap, and the kernel does not support that."""


class BufferUsageError(ArgumentError):
    """A buffer is destroyed, mapped, of another device, or lacks a usage flag."""


class LimitError(ArgumentError):
    """A request is over a limit of the device; the message has the limit's name and value."""


class EmptyReductionError(ArgumentError):
    """A reduction of no items by an operator without an identity, like ``numpy.min([])``."""


class BadResultsFile(ArgumentError):
    """A results file is cut off, of another tool or a newer schema, or has an invalid value; nothing is read.

    The message has the file's name and the place in it: line and column, or the path of the value.
    """


class AdapterError(GridwiseError, LookupError):
    """There is no such adapter, or none at all."""


class ShaderError(GridwiseError):
    """A shader could not be composed or compiled.

    The message has the compiler's message and the lines that it names, numbered as in your text.

    Attributes
    ----------
    text : str or None
        The whole compiled text, including the library's text around an operator.
    """

    def __init__(self, message: str = "", text: str | None = None):
        super().__init__(message)
        self.text = text


class TimingError(GridwiseError, RuntimeError):
    """The requested timing is not available."""


class TimingNotReady(TimingError):
    """The commands that take the timestamps have not been submitted yet."""


class TimingUnavailable(TimingError):
    """Nothing was timed, or no timestamp query is free."""


class ClusterError(GridwiseError, RuntimeError):
    """A Dask cluster cannot do the work: no worker with a GPU, versions that differ, an address without TLS."""


class ImplicitConversionError(GridwiseError, TypeError):
    """An Array was used where numpy would have copied it from the GPU implicitly."""


class DeviceError(GridwiseError, RuntimeError):
    """The device refused work or was lost."""


class DeviceLostError(DeviceError):
    """The device was lost or destroyed. Its contents are gone; a new device works."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The device has too little memory for the request; nothing was changed, and the device still works."""


class DeviceTimeoutError(DeviceError, TimeoutError):
    """The GPU did not finish within the time of ``GRIDWISE_TIMEOUT_S`` or ``request_device(timeout_s=)``.

    The message has the last submissions. Nothing was changed: the call can be repeated.
    """


class ForkError(DeviceError):
    """The process was forked after its parent had used the GPU. Drivers do not work in a fork; spawn instead.

    End such a process with `os._exit`, as multiprocessing does. At a regular exit, a driver may wait for threads that
    the fork does not have: Mesa's OpenGL driver, which wgpu loads when it looks for adapters, crashes there.
    """


class GridwiseWarning(UserWarning):
    """A request could not be met as it was made; the message says what happens instead."""
