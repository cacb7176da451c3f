extern "C" __global__ void kernel(const unsigned* __restrict__ x, unsigned* __restrict__ sums, unsigned count) {
  __shared__ unsigned part[256];
  unsigned lane = threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = blockIdx.x * 256 + lane; i < count; i += gridDim.x * 256) sum += x[i];
  part[lane] = sum;
  __syncthreads();
  for (unsigned width = 128; width > 0; width /= 2) {
    if (lane < width) part[lane] += part[lane + width];
    __syncthreads();
  }
  if (lane == 0) sums[blockIdx.x] = part[0];
}
