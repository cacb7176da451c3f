extern "C" __global__ void kernel(const unsigned* __restrict__ x, unsigned* __restrict__ y) {
  __shared__ unsigned sums[256];
  unsigned lane = threadIdx.x;
  unsigned i = (blockIdx.y * gridDim.x + blockIdx.x) * 256 + lane;
  sums[lane] = x[i];
  __syncthreads();
  for (unsigned distance = 1; distance < 256; distance *= 2) {
    unsigned sum = sums[lane];
    if (lane >= distance) sum += sums[lane - distance];
    __syncthreads();
    sums[lane] = sum;
    __syncthreads();
  }
  y[i] = sums[lane];
}
