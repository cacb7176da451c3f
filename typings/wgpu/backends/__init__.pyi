from . import wgpu_native as wgpu_native
