extern "C" __global__ void kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                  unsigned count) {
  __shared__ float tile_a[16][16];
  __shared__ float tile_b[16][16];
  unsigned column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (unsigned k = 0; k < count; k += 16) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * count + k + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * count + column];
    __syncthreads();
    for (unsigned j = 0; j < 16; j++) sum += tile_a[threadIdx.y][j] * tile_b[j][threadIdx.x];
    __syncthreads();
  }
  c[row * count + column] = sum;
}
