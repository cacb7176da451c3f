"""The exceptions of this library.

::

    GridwiseError
    ├── ArgumentError (ValueError)        something given to a call is wrong; nothing was submitted
    │   ├── DatatypeError (TypeError)     a dtype or Python type that the call cannot take
    │   ├── LengthError                   lengths that do not fit each other
    │   ├── OverlapError                  views of one buffer that overlap where the kernel cannot bear it
    │   ├── BufferUsageError              destroyed, mapped, of another device, or a usage flag is missing
    │   ├── LimitError                    over a limit of the device, which is named with its value
    │   ├── EmptyReductionError           an empty minimum or maximum
    │   └── BadResultsFile                a results file that cannot be used; the message says where it is wrong
    ├── AdapterError (LookupError)        no such adapter, or none at all
    ├── ShaderError                       a shader that cannot be composed or compiled
    ├── TimingError (RuntimeError)
    │   ├── TimingNotReady                the work has not been submitted yet
    │   └── TimingUnavailable             nothing was timed, or the pool of queries is exhausted
    ├── ImplicitConversionError (TypeError)   an Array where a numpy array was expected
    └── DeviceError (RuntimeError)        the device refused work or was lost
        ├── DeviceLostError               the device was lost or destroyed; a new one is needed
        ├── DeviceMemoryError (MemoryError)    the device has no memory for what was asked
        ├── DeviceTimeoutError (TimeoutError)  the GPU was waited for in vain
        └── ForkError                     the process was forked from one that had used the GPU

    GridwiseWarning (UserWarning)
"""

__all__ = [
    "AdapterError",
    "ArgumentError",
    "BadResultsFile",
    "BufferUsageError",
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
    """Something given to a call is wrong; nothing was submitted and nothing was changed."""


class DatatypeError(ArgumentError, TypeError):
    """A dtype or a Python type that the call cannot take."""


class LengthError(ArgumentError):
    """Lengths that do not fit each other."""


class OverlapError(ArgumentError):
    """Views of one buffer overlap where the kernel cannot bear it."""


class BufferUsageError(ArgumentError):
    """A buffer is destroyed, mapped, of another device, or lacks a usage flag."""


class LimitError(ArgumentError):
    """A request is over a limit of the device; the message has the limit's name and value."""


class EmptyReductionError(ArgumentError):
    """A reduction without an identity over no items, as ``numpy.min([])``."""


class BadResultsFile(ArgumentError):
    """A results file is cut off, of another tool, of a newer schema, or has a value that cannot be; nothing is read.

    The message has the file's name and the place in it: line and column, or the path of the value.
    """


class AdapterError(GridwiseError, LookupError):
    """There is no such adapter, or none at all."""


class ShaderError(GridwiseError):
    """A shader could not be composed or compiled.

    The message has the compiler's words and the lines that they are about, numbered as in the text that you gave.

    Attributes
    ----------
    text : str or None
        The whole text that was compiled, with what the library put around an operator's.
    """

    def __init__(self, message: str = "", text: str | None = None):
        super().__init__(message)
        self.text = text


class TimingError(GridwiseError, RuntimeError):
    """Times were asked for that cannot be had."""


class TimingNotReady(TimingError):
    """The commands that take the timestamps have not been submitted yet."""


class TimingUnavailable(TimingError):
    """Nothing was timed, or no timestamp query is free."""


class ImplicitConversionError(GridwiseError, TypeError):
    """An Array was used where numpy would have copied it from the GPU unseen."""


class DeviceError(GridwiseError, RuntimeError):
    """The device refused work or was lost."""


class DeviceLostError(DeviceError):
    """The device was lost or destroyed. What was on it is gone; a new device works."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The device has no memory for what was asked; nothing was changed, and the device goes on."""


class DeviceTimeoutError(DeviceError, TimeoutError):
    """The GPU was still at work after the time that ``GRIDWISE_TIMEOUT_S`` or ``request_device(timeout_s=)`` allows.

    The message has the last submissions. Nothing was changed: what was asked for can be asked for again.
    """


class ForkError(DeviceError):
    """The process was forked from one that had used the GPU; drivers do not work in a fork. Spawn instead."""


class GridwiseWarning(UserWarning):
    """Something asked for could not be done as asked; the message says what happens instead."""
