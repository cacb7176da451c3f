extern "C" __global__ void kernel(const float4* __restrict__ bodies, float4* __restrict__ accelerations,
                                  unsigned count) {
  __shared__ float4 tile[256];
  unsigned i = blockIdx.x * 256 + threadIdx.x;
  float4 place = bodies[i];
  float x = 0, y = 0, z = 0;
  for (unsigned first = 0; first < count; first += 256) {
    tile[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
    for (unsigned j = 0; j < 256; j++) {
      float4 other = tile[j];
      float dx = other.x - place.x, dy = other.y - place.y, dz = other.z - place.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.001f);
      float weight = other.w * r * r * r;
      x += dx * weight;
      y += dy * weight;
      z += dz * weight;
    }
    __syncthreads();
  }
  accelerations[i] = make_float4(x, y, z, 0);
}
