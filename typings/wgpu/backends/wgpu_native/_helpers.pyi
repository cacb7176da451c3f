import wgpu

ERROR_TYPES: dict[str, type[wgpu.GPUError]]

class ErrorHandler:
    def capture(self, name: str) -> None: ...
    def release(self, name: str) -> tuple[str, str] | None: ...
