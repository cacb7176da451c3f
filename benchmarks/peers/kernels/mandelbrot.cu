extern "C" __global__ void kernel(unsigned* __restrict__ counts, unsigned side, unsigned turns, float spacing) {
  unsigned column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (column >= side || row >= side) return;
  float cx = -2.0f + spacing * (float)column;
  float cy = -1.25f + spacing * (float)row;
  float x = 0, y = 0;
  unsigned k = 0;
  while (k < turns && x * x + y * y <= 4.0f) {
    float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
    k++;
  }
  counts[row * side + column] = k;
}
