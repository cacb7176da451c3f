// CUB's side of compare_peers.py: times device-wide primitives on data that the caller wrote into files.
// Usage: cub_peer PRIMITIVE DATATYPE N FILE_A FILE_B WARMUP_S ROUNDS LAUNCHES [FILE_CHECKED]
// For sort_pairs the files have keys and values (u32). Prints one line of JSON: times of single calls between two events,
// times of a CUDA graph of LAUNCHES calls, and a checksum of the whole result by which the caller checks the work. With
// FILE_CHECKED the checksum is that of a further call, on these items in place of A: sums of them are the same in every
// order. Everything is allocated before; only the calls are timed.
#include <cub/cub.cuh>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                                            \
  do {                                                                                         \
    cudaError_t status = (call);                                                               \
    if (status != cudaSuccess) {                                                               \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));     \
      std::exit(1);                                                                            \
    }                                                                                          \
  } while (0)

template <typename T>
T* upload(const char* path, size_t n) {
  std::vector<T> host(n);
  FILE* file = std::fopen(path, "rb");
  if (file == nullptr || std::fread(host.data(), sizeof(T), n, file) != n) {
    std::fprintf(stderr, "cannot read %zu items from %s\n", n, path);
    std::exit(1);
  }
  std::fclose(file);
  T* device = nullptr;
  CHECK(cudaMalloc(&device, n * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

// The sum of all 32-bit words, each times its place plus one, modulo 2^64.
template <typename T>
uint64_t checksum(const T* device, size_t n) {
  std::vector<uint32_t> words(n * sizeof(T) / 4);
  CHECK(cudaMemcpy(words.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
  uint64_t sum = 0;
  for (size_t i = 0; i < words.size(); ++i) sum += static_cast<uint64_t>(words[i]) * (i + 1);
  return sum;
}

template <typename T>
struct AddPair {
  const T* a;
  const T* b;
  T* out;
  __device__ void operator()(int64_t i) const { out[i] = a[i] + b[i]; }
};

void print_list(const char* name, const std::vector<double>& values) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.1f", i ? ", " : "", values[i]);
  std::printf("]");
}

template <typename T>
int run(const std::string& primitive, size_t n, int count, char** arguments) {
  const double warmup_s = std::atof(arguments[2]);
  const int rounds = std::atoi(arguments[3]);
  const int launches = std::atoi(arguments[4]);
  T* a = upload<T>(arguments[0], n);
  T* out = nullptr;
  CHECK(cudaMalloc(&out, n * sizeof(T)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));

  std::function<cudaError_t(void*, size_t&)> call;
  size_t results = n;
  uint32_t* values_out = nullptr;
  if (primitive == "copy") {
    call = [=](void* temp, size_t& bytes) {
      if (temp == nullptr) return bytes = 1, cudaSuccess;
      return cudaMemcpyAsync(out, a, n * sizeof(T), cudaMemcpyDeviceToDevice, stream);
    };
  } else if (primitive == "vector_add") {
    T* b = upload<T>(arguments[1], n);
    call = [=](void* temp, size_t& bytes) {
      if (temp == nullptr) return bytes = 1, cudaSuccess;
      return cub::DeviceFor::Bulk(static_cast<int64_t>(n), AddPair<T>{a, b, out}, stream);
    };
  } else if (primitive == "reduce") {
    results = 1;
    call = [=](void* temp, size_t& bytes) { return cub::DeviceReduce::Sum(temp, bytes, a, out, n, stream); };
  } else if (primitive == "scan") {
    call = [=](void* temp, size_t& bytes) { return cub::DeviceScan::InclusiveSum(temp, bytes, a, out, n, stream); };
  } else if (primitive == "scan_exclusive") {
    call = [=](void* temp, size_t& bytes) { return cub::DeviceScan::ExclusiveSum(temp, bytes, a, out, n, stream); };
  } else if (primitive == "sort") {
    call = [=](void* temp, size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temp, bytes, a, out, n, 0, 8 * static_cast<int>(sizeof(T)), stream);
    };
  } else if (primitive == "sort_pairs") {
    uint32_t* values = upload<uint32_t>(arguments[1], n);
    CHECK(cudaMalloc(&values_out, n * sizeof(uint32_t)));
    uint32_t* moved = values_out;
    call = [=](void* temp, size_t& bytes) {
      const int bits = 8 * static_cast<int>(sizeof(T));
      return cub::DeviceRadixSort::SortPairs(temp, bytes, a, out, values, moved, n, 0, bits, stream);
    };
  } else {
    std::fprintf(stderr, "unknown primitive %s\n", primitive.c_str());
    return 2;
  }

  size_t bytes = 0;
  CHECK(call(nullptr, bytes));
  void* temp = nullptr;
  CHECK(cudaMalloc(&temp, std::max<size_t>(bytes, 1)));
  auto once = [&] { CHECK(call(temp, bytes)); };
  once();
  CHECK(cudaStreamSynchronize(stream));

  cudaGraph_t graph;
  cudaGraphExec_t graph_exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < launches; ++i) once();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&graph_exec, graph, 0));

  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < warmup_s) {
    CHECK(cudaGraphLaunch(graph_exec, stream));
    CHECK(cudaStreamSynchronize(stream));
  }
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  auto timed = [&](const std::function<void()>& work) {
    CHECK(cudaEventRecord(start, stream));
    work();
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    return ms * 1e6;
  };
  std::vector<double> single, back_to_back;
  for (int i = 0; i < rounds; ++i) {
    single.push_back(timed(once));
    back_to_back.push_back(timed([&] { CHECK(cudaGraphLaunch(graph_exec, stream)); }) / launches);
  }
  if (count > 5) {
    T* checked = upload<T>(arguments[5], n);
    CHECK(cudaMemcpy(a, checked, n * sizeof(T), cudaMemcpyDeviceToDevice));
    CHECK(cudaFree(checked));
    CHECK(cudaMemset(out, 0xff, n * sizeof(T)));  // of the calls before nothing is left
    CHECK(cudaDeviceSynchronize());
    once();
    CHECK(cudaStreamSynchronize(stream));
  }
  const uint64_t sum = checksum(out, results) + (values_out == nullptr ? 0 : checksum(values_out, results));
  std::printf("{\"checksum\": \"%llu\", ", static_cast<unsigned long long>(sum));
  std::printf("\"cub_version\": %d, \"temp_bytes\": %zu, ", CUB_VERSION, bytes);
  print_list("single_ns", single);
  std::printf(", ");
  print_list("back_to_back_ns", back_to_back);
  std::printf("}\n");
  return 0;
}

int main(int count, char** values) {
  if (count != 9 && count != 10) {
    std::fprintf(stderr, "usage: cub_peer PRIMITIVE DATATYPE N FILE_A FILE_B WARMUP_S ROUNDS LAUNCHES [FILE_CHECKED]\n");
    return 2;
  }
  const std::string primitive = values[1], datatype = values[2];
  const size_t n = std::strtoull(values[3], nullptr, 10);
  if (datatype == "f32") return run<float>(primitive, n, count - 4, values + 4);
  if (datatype == "f64") return run<double>(primitive, n, count - 4, values + 4);
  if (datatype == "i32") return run<int32_t>(primitive, n, count - 4, values + 4);
  if (datatype == "i64") return run<int64_t>(primitive, n, count - 4, values + 4);
  if (datatype == "u64") return run<uint64_t>(primitive, n, count - 4, values + 4);
  if (datatype == "u32") return run<uint32_t>(primitive, n, count - 4, values + 4);
  std::fprintf(stderr, "unknown datatype %s\n", datatype.c_str());
  return 2;
}
