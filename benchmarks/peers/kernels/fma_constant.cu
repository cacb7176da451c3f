extern "C" __global__ void kernel(const float* __restrict__ x, float* __restrict__ y, unsigned count, float factor) {
  const unsigned turns = 60000;
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float s = x[i];
  for (unsigned k = 0; k < turns; k++) s = fmaf(s, factor, 0.5f);
  y[i] = s;
}
