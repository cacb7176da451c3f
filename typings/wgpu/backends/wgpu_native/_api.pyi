from typing import Any

import wgpu

libf: Any

def new_struct_p(ctype: str, **kwargs: object) -> Any: ...
def to_c_string_view(string: str) -> Any: ...

class GPUShaderModule(wgpu.GPUShaderModule):
    def __init__(self, label: str, internal: object, device: wgpu.GPUDevice) -> None: ...
