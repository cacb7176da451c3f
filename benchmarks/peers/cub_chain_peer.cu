// CUDA's side of chains.py: chains of CUB calls, on data that the caller wrote into files. It reads commands from standard
// input, a line each, and answers each with one line of JSON:
//
//   load NAME PATH BYTES                        copies a file to the GPU
//   free NAME
//   group N BITS                                prepares: `keys` and `values` of u32, sorted by BITS bits of the key
//                                               (SortPairs), then added up by key (ReduceByKey)
//   splats N WIDTH HEIGHT ROOM DEPTH_FIRST      prepares: `x`, `y`, `depth`, `radius` of f32 to splats of each tile
//   time WARMUP_S SAMPLES                       times the prepared chain
//
// The answer to a preparation has the number of results, and a checksum of each output: the sum of all 32-bit words, each times
// its place plus one, modulo 2^64. Everything is allocated before; only the calls are timed, between two CUDA events and on the
// CPU's clock from an idle GPU to an idle GPU.
//
// The splats are binned as the program of "3D Gaussian Splatting" does it (Kerbl et al. 2023): count the tiles of each splat,
// scan the counts, copy the total to the host and wait for it, write a pair of (tile, depth) and splat for each tile, sort the
// pairs by keys of 64 bits, and find where each tile begins. With DEPTH_FIRST 1 splats are sorted by depth before, and pairs by
// tile alone, which is less to sort; the total is copied to the host, too.
//
// Build: nvcc -O3 -std=c++17 --extended-lambda -arch=sm_90 -o cub_chain_peer cub_chain_peer.cu
#include <cub/cub.cuh>
#include <cuda/std/functional>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

void check(cudaError_t status, int line) {
  if (status != cudaSuccess) {
    throw std::runtime_error("line " + std::to_string(line) + ": " + cudaGetErrorString(status));
  }
}
#define CHECK(call) check((call), __LINE__)

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr float kTile = 16.0f;
constexpr int kThreads = 256;
unsigned blocks_of(size_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

// ---- memory

template <typename T>
struct Buffer {
  explicit Buffer(size_t items) : items(items) { CHECK(cudaMalloc(&pointer, std::max<size_t>(items, 1) * sizeof(T))); }
  ~Buffer() { cudaFree(pointer); }
  Buffer(const Buffer&) = delete;
  size_t items;
  T* pointer = nullptr;
};

std::map<std::string, std::unique_ptr<Buffer<char>>> loaded;

void load(const std::string& name, const std::string& path, size_t bytes) {
  std::vector<char> host(bytes);
  FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  const size_t read = std::fread(host.data(), 1, bytes, file);
  std::fclose(file);
  if (read != bytes) throw std::runtime_error(path + " is too short");
  auto buffer = std::make_unique<Buffer<char>>(bytes);
  CHECK(cudaMemcpy(buffer->pointer, host.data(), bytes, cudaMemcpyHostToDevice));
  loaded[name] = std::move(buffer);
}
// Data of another length is that of another case.
template <typename T>
const T* input(const std::string& name, int n) {
  const auto found = loaded.find(name);
  if (found == loaded.end()) throw std::runtime_error(name + " is not loaded");
  const size_t items = found->second->items / sizeof(T);
  if (items != static_cast<size_t>(n)) {
    throw std::runtime_error(name + " has " + std::to_string(items) + " items, and the case " + std::to_string(n));
  }
  return reinterpret_cast<const T*>(found->second->pointer);
}

uint64_t checksum(const uint32_t* words, size_t count) {
  std::vector<uint32_t> host(count);
  CHECK(cudaMemcpy(host.data(), words, 4 * count, cudaMemcpyDeviceToHost));
  uint64_t total = 0;
  for (size_t k = 0; k < count; k++) total += static_cast<uint64_t>(host[k]) * (k + 1);
  return total;
}

// ---- chains

struct Chain {
  virtual ~Chain() = default;
  virtual void run() = 0;
  // The number of results, then a checksum of each output.
  virtual std::vector<uint64_t> results() = 0;
};

struct Temporary {
  void* pointer = nullptr;
  size_t bytes = 0;
  ~Temporary() { cudaFree(pointer); }
  // Calls twice: for the size, and to allocate it. `call` gets pointer and size.
  template <typename Call>
  void room_for(Call call) {
    size_t needed = 0;
    CHECK(call(nullptr, needed));
    if (needed <= bytes) return;
    CHECK(cudaFree(pointer));
    CHECK(cudaMalloc(&pointer, needed));
    bytes = needed;
  }
};

struct Group : Chain {
  Group(int n, int bits)
      : n(n), bits(bits), keys(n), values(n), found(n), sums(n), count(1) {
    temporary.room_for([&](void* p, size_t& size) { return sort(p, size); });
    temporary.room_for([&](void* p, size_t& size) { return reduce(p, size); });
  }
  cudaError_t sort(void* p, size_t& size) {
    return cub::DeviceRadixSort::SortPairs(p, size, input<uint32_t>("keys", n), keys.pointer, input<uint32_t>("values", n),
                                           values.pointer, n, 0, bits);
  }
  cudaError_t reduce(void* p, size_t& size) {
    return cub::DeviceReduce::ReduceByKey(p, size, keys.pointer, found.pointer, values.pointer, sums.pointer,
                                          count.pointer, cuda::std::plus<uint32_t>{}, n);
  }
  void run() override {
    size_t size = temporary.bytes;
    CHECK(sort(temporary.pointer, size));
    size = temporary.bytes;
    CHECK(reduce(temporary.pointer, size));
  }
  std::vector<uint64_t> results() override {
    int groups = 0;
    CHECK(cudaMemcpy(&groups, count.pointer, 4, cudaMemcpyDeviceToHost));
    return {static_cast<uint64_t>(groups), checksum(found.pointer, groups), checksum(sums.pointer, groups)};
  }
  int n, bits;
  Buffer<uint32_t> keys, values, found, sums;
  Buffer<int> count;
  Temporary temporary;
};

struct Rectangle {
  int left, top, across, down;
};
__device__ int cut(float at, int tiles) {
  return static_cast<int>(fminf(fmaxf(floorf(at / kTile), 0.0f), static_cast<float>(tiles)));
}
__device__ Rectangle rectangle(float x, float y, float r, int tiles_x, int tiles_y) {
  const int left = cut(x - r, tiles_x), top = cut(y - r, tiles_y);
  return {left, top, cut(x + r + kTile, tiles_x) - left, cut(y + r + kTile, tiles_y) - top};
}
__global__ void numbers(uint32_t* out, int n) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) out[k] = k;
}
// `order` may be null.
__global__ void count_tiles(const uint32_t* order, const float* x, const float* y, const float* radius, uint32_t* counts,
                            int n, int tiles_x, int tiles_y) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  const int i = order == nullptr ? k : order[k];
  const Rectangle r = rectangle(x[i], y[i], radius[i], tiles_x, tiles_y);
  counts[k] = r.across * r.down;
}
template <typename Key>
__global__ void write_pairs(const uint32_t* order, const float* x, const float* y, const float* depth, const float* radius,
                            const uint32_t* ends, Key* keys, uint32_t* splats, int n, int tiles_x, int tiles_y) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  const int i = order == nullptr ? k : order[k];
  const Rectangle r = rectangle(x[i], y[i], radius[i], tiles_x, tiles_y);
  uint32_t at = k == 0 ? 0 : ends[k - 1];
  for (int row = r.top; row < r.top + r.down; row++) {
    for (int column = r.left; column < r.left + r.across; column++, at++) {
      const uint32_t tile = row * tiles_x + column;
      if constexpr (sizeof(Key) == 8) {
        keys[at] = static_cast<uint64_t>(tile) << 32 | __float_as_uint(depth[i]);
      } else {
        keys[at] = tile;
      }
      splats[at] = i;
    }
  }
}
template <typename Key>
__global__ void find_ranges(const Key* keys, uint2* ranges, int pairs) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= pairs) return;
  const int shift = sizeof(Key) == 8 ? 32 : 0;
  const uint32_t tile = keys[k] >> shift;
  if (k == 0 || tile != static_cast<uint32_t>(keys[k - 1] >> shift)) ranges[tile].x = k;
  if (k == pairs - 1 || tile != static_cast<uint32_t>(keys[k + 1] >> shift)) ranges[tile].y = k + 1;
}

template <typename Key>
struct Splats : Chain {
  static constexpr bool kDepthFirst = sizeof(Key) == 4;
  Splats(int n, int width, int height, int room)
      : n(n), tiles_x((width + 15) / 16), tiles_y((height + 15) / 16), room(room), places(n), order(n), depths(n),
        counts(n), ends(n), keys(room), sorted_keys(room), splats(room), sorted(room), ranges(tiles_x * tiles_y) {
    while ((1 << bits) < tiles_x * tiles_y) bits++;
    numbers<<<blocks_of(n), kThreads>>>(places.pointer, n);
    CHECK(cudaMallocHost(&total, 4));
    temporary.room_for([&](void* p, size_t& size) { return by_depth(p, size); });
    temporary.room_for([&](void* p, size_t& size) { return scan(p, size); });
    temporary.room_for([&](void* p, size_t& size) { return sort(p, size, room); });
  }
  ~Splats() override { cudaFreeHost(total); }
  cudaError_t by_depth(void* p, size_t& size) {
    return cub::DeviceRadixSort::SortPairs(p, size, input<float>("depth", n), depths.pointer, places.pointer, order.pointer, n);
  }
  cudaError_t scan(void* p, size_t& size) {
    return cub::DeviceScan::InclusiveSum(p, size, counts.pointer, ends.pointer, n);
  }
  cudaError_t sort(void* p, size_t& size, int pairs) {
    return cub::DeviceRadixSort::SortPairs(p, size, keys.pointer, sorted_keys.pointer, splats.pointer, sorted.pointer, pairs,
                                           0, kDepthFirst ? bits : 32 + bits);
  }
  void run() override {
    const auto *x = input<float>("x", n), *y = input<float>("y", n), *r = input<float>("radius", n);
    const float* depth = input<float>("depth", n);
    const uint32_t* ordered = nullptr;
    size_t size = temporary.bytes;
    if (kDepthFirst) {
      CHECK(by_depth(temporary.pointer, size));
      ordered = order.pointer;
    }
    count_tiles<<<blocks_of(n), kThreads>>>(ordered, x, y, r, counts.pointer, n, tiles_x, tiles_y);
    size = temporary.bytes;
    CHECK(scan(temporary.pointer, size));
    CHECK(cudaMemcpyAsync(total, ends.pointer + n - 1, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaStreamSynchronize(nullptr));
    const int pairs = *total;
    if (pairs > room) throw std::runtime_error("there are " + std::to_string(pairs) + " pairs, but room for fewer");
    write_pairs<Key><<<blocks_of(n), kThreads>>>(ordered, x, y, depth, r, ends.pointer, keys.pointer, splats.pointer, n,
                                                 tiles_x, tiles_y);
    size = temporary.bytes;
    CHECK(sort(temporary.pointer, size, pairs));
    CHECK(cudaMemsetAsync(ranges.pointer, 0, sizeof(uint2) * tiles_x * tiles_y));
    find_ranges<Key><<<blocks_of(pairs), kThreads>>>(sorted_keys.pointer, ranges.pointer, pairs);
    CHECK(cudaGetLastError());
  }
  std::vector<uint64_t> results() override {
    CHECK(cudaDeviceSynchronize());
    const uint64_t pairs = *total;
    return {pairs, checksum(reinterpret_cast<uint32_t*>(ranges.pointer), size_t{2} * tiles_x * tiles_y),
            checksum(sorted.pointer, pairs)};
  }
  int n, tiles_x, tiles_y, room, bits = 0;
  Buffer<uint32_t> places, order;
  Buffer<float> depths;
  Buffer<uint32_t> counts, ends;
  Buffer<Key> keys, sorted_keys;
  Buffer<uint32_t> splats, sorted;
  Buffer<uint2> ranges;
  uint32_t* total = nullptr;
  Temporary temporary;
};

// ---- commands

std::unique_ptr<Chain> chain;

std::string prepared() {
  chain->run();
  CHECK(cudaDeviceSynchronize());
  const std::vector<uint64_t> found = chain->results();
  std::ostringstream answer;
  answer << "{\"count\": " << found[0] << ", \"checksums\": [";
  for (size_t k = 1; k < found.size(); k++) answer << (k > 1 ? ", " : "") << found[k];
  answer << "]}";
  return answer.str();
}

std::string times(double warmup_s, int samples) {
  const auto begin = Clock::now();
  while (seconds_since(begin) < warmup_s) chain->run();
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t first, last;
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&last));
  std::ostringstream gpu, wall;
  for (int k = 0; k < samples; k++) {
    const auto start = Clock::now();
    CHECK(cudaEventRecord(first));
    chain->run();
    CHECK(cudaEventRecord(last));
    CHECK(cudaDeviceSynchronize());
    wall << (k ? ", " : "") << 1e9 * seconds_since(start);
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, first, last));
    gpu << (k ? ", " : "") << 1e6 * ms;
  }
  CHECK(cudaEventDestroy(first));
  CHECK(cudaEventDestroy(last));
  return "{\"gpu_ns\": [" + gpu.str() + "], \"wall_ns\": [" + wall.str() + "]}";
}

std::string answer(std::istringstream& words) {
  std::string command, name, path;
  words >> command;
  if (command == "load") {
    size_t bytes = 0;
    words >> name >> path >> bytes;
    load(name, path, bytes);
    return "{}";
  }
  if (command == "free") {
    words >> name;
    chain.reset();
    loaded.erase(name);
    return "{}";
  }
  if (command == "group") {
    int n = 0, bits = 0;
    words >> n >> bits;
    chain.reset();
    chain = std::make_unique<Group>(n, bits);
    return prepared();
  }
  if (command == "splats") {
    int n = 0, width = 0, height = 0, room = 0, depth_first = 0;
    words >> n >> width >> height >> room >> depth_first;
    chain.reset();
    if (depth_first != 0) {
      chain = std::make_unique<Splats<uint32_t>>(n, width, height, room);
    } else {
      chain = std::make_unique<Splats<uint64_t>>(n, width, height, room);
    }
    return prepared();
  }
  if (command == "time") {
    double warmup_s = 0;
    int samples = 0;
    words >> warmup_s >> samples;
    if (chain == nullptr) throw std::runtime_error("nothing is prepared");
    return times(warmup_s, samples);
  }
  throw std::runtime_error("unknown command " + command);
}

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    try {
      std::cout << answer(words) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "{\"error\": \"" << error.what() << "\"}" << std::endl;
    }
  }
}
