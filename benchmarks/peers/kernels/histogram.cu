extern "C" __global__ void kernel(const unsigned* __restrict__ x, unsigned* __restrict__ bins, unsigned count) {
  __shared__ unsigned own[256];
  unsigned lane = threadIdx.x;
  own[lane] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * 256 + lane; i < count; i += gridDim.x * 256) atomicAdd(&own[x[i] >> 24], 1u);
  __syncthreads();
  atomicAdd(&bins[lane], own[lane]);
}
