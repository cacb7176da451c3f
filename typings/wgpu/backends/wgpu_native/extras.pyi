import wgpu

def write_timestamp(
    encoder: wgpu.GPUComputePassEncoder | wgpu.GPUCommandEncoder, query_set: wgpu.GPUQuerySet, query_index: int
) -> None: ...
