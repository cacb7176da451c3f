__device__ unsigned byte_at(const unsigned* text, unsigned place) {
  return (text[place / 4] >> (8 * (place % 4))) & 255;
}

extern "C" __global__ void kernel(const unsigned* __restrict__ text, const unsigned* __restrict__ sought,
                                  unsigned* __restrict__ found, unsigned count, unsigned length) {
  for (unsigned i = blockIdx.x * 256 + threadIdx.x; i + length <= count; i += gridDim.x * 256) {
    unsigned k = 0;
    while (k < length && byte_at(text, i + k) == sought[k]) k++;
    if (k == length) {
      atomicAdd(&found[0], 1u);
      atomicMin(&found[1], i);
    }
  }
}
