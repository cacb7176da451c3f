from typing import Any

import wgpu

from ._helpers import ErrorHandler

libf: Any
error_handler: ErrorHandler

def new_struct_p(ctype: str, **kwargs: object) -> Any: ...
def to_c_string_view(string: str) -> Any: ...

class GPUCommandEncoder(wgpu.GPUCommandEncoder): ...

class GPUShaderModule(wgpu.GPUShaderModule):
    def __init__(self, label: str, internal: object, device: wgpu.GPUDevice) -> None: ...
