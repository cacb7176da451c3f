from typing import Any

from cffi import FFI

ffi: FFI
# wgpu-native's C functions and constants, which cffi looks up when they are asked for.
lib: Any
