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
    """Base of all exceptions of this library."""


class ArgumentError(GridwiseError, ValueError):
    """An argument is wrong; nothing was submitted and nothing was changed."""


class DatatypeError(ArgumentError, TypeError):
    """A datatype that the call does not accept."""


class CallError(ArgumentError, TypeError):
    """Arguments that the function does not have, or too many by position."""


class BoundsError(ArgumentError, IndexError):
    """An index that no item has."""


class AxisError(BoundsError, np.exceptions.AxisError):
    """An axis that is not there, or named twice."""

    def __init__(self, message: str):
        super().__init__(message)


class LengthError(ArgumentError):
    """Lengths that do not match."""


class OverlapError(ArgumentError):
    """Views of one buffer overlap."""


class BufferUsageError(ArgumentError):
    """A buffer is destroyed, mapped, of another device, or lacks a usage."""


class LimitError(ArgumentError):
    """A request is over a limit of the device."""


class EmptyReductionError(ArgumentError):
    """The minimum or maximum of no items."""


class BadResultsFile(ArgumentError):
    """A results file is cut off, of another tool or a newer schema, or invalid."""


class AdapterError(GridwiseError, LookupError):
    """There is no such adapter."""


class ShaderError(GridwiseError):
    """A shader could not be composed or compiled.

    Attributes
    ----------
    text : str or None
        The whole compiled text.
    """

    def __init__(self, message: str = "", text: str | None = None):
        super().__init__(message)
        self.text = text


class TimingError(GridwiseError, RuntimeError):
    """The requested timing is not available."""


class TimingNotReady(TimingError):
    """The commands have not been submitted yet."""


class TimingUnavailable(TimingError):
    """Nothing was timed, or no timestamp query is free."""


class ClusterError(GridwiseError, RuntimeError):
    """A Dask cluster cannot do the work."""


class ImplicitConversionError(GridwiseError, TypeError):
    """An Array would have been copied from the GPU implicitly."""


class DeviceError(GridwiseError, RuntimeError):
    """The device refused work or was lost."""


class DeviceLostError(DeviceError):
    """The device is gone, with its contents; a new one works."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The device has too little memory; nothing was changed, and it still works."""


class DeviceTimeoutError(DeviceError, TimeoutError):
    """The GPU did not finish in ``GRIDWISE_TIMEOUT_S`` or ``timeout_s=``. The call can be repeated."""


class ForkError(DeviceError):
    """The process was forked after its parent had used the GPU. Spawn instead, and leave a fork by ``os._exit``."""


class GridwiseWarning(UserWarning):
    """A request is met in another way, which the message says."""
