// CUB's side of cases.py, on data that the caller wrote into files. It
// reads commands from standard input, a line each, and answers each with one line of JSON:
//
//   load NAME PATH BYTES                 copies a file to the GPU, in place of what had the name before
//   free NAME
//   case ALGORITHM DATATYPE N KEY=VALUE… prepares a call, runs it once, and answers with a checksum of each output
//   time WARMUP_S SAMPLES LAUNCHES       times the prepared call: single calls between two events, and a CUDA graph of
//                                        LAUNCHES calls (0: none), or as many calls where it cannot be captured
//
// Everything is allocated before; only the calls are timed. A checksum is the sum of all 32-bit words, each times its
// place plus one, modulo 2^64; where CUB reverses an output, of the items in the input's order.
//
// Build: nvcc -O3 -std=c++17 --extended-lambda -arch=sm_90 -o cub_peer cub_peer.cu
// With another CUB: -I FOLDER of its headers. The program needs no toolkit where it runs, only a driver.
#include <cub/cub.cuh>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>
#if __has_include(<cub/device/device_topk.cuh>)
#include <cub/device/device_topk.cuh>
#define HAS_TOP_K 1
#else
#define HAS_TOP_K 0
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

void check(cudaError_t status, int line) {
  if (status != cudaSuccess) {
    throw std::runtime_error("line " + std::to_string(line) + ": " + cudaGetErrorString(status));
  }
}
#define CHECK(call) check((call), __LINE__)

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// ---- memory

struct Loaded {
  void* pointer;
  size_t bytes;
};

std::map<std::string, Loaded> loaded;

void load(const std::string& name, const std::string& path, size_t bytes) {
  FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  const size_t part = std::min<size_t>(bytes, size_t{64} << 20);
  void *device = nullptr, *host = nullptr;
  CHECK(cudaMalloc(&device, std::max<size_t>(bytes, 1)));
  CHECK(cudaMallocHost(&host, std::max<size_t>(part, 1)));
  for (size_t begin = 0; begin < bytes; begin += part) {
    const size_t size = std::min(part, bytes - begin);
    if (std::fread(host, 1, size, file) != size) throw std::runtime_error(path + " is too short");
    CHECK(cudaMemcpy(static_cast<char*>(device) + begin, host, size, cudaMemcpyHostToDevice));
  }
  CHECK(cudaFreeHost(host));
  std::fclose(file);
  loaded[name] = {device, bytes};
}

void unload(const std::string& name) {
  const auto found = loaded.find(name);
  if (found == loaded.end()) throw std::runtime_error(name + " is not loaded");
  CHECK(cudaFree(found->second.pointer));
  loaded.erase(found);
}

// ---- checksums

__global__ void add_words(const uint32_t* words, uint64_t items, uint32_t item_words, bool reversed, uint64_t* sum) {
  uint64_t own = 0;
  const uint64_t count = items * item_words;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint64_t place = reversed ? (items - 1 - i / item_words) * item_words + i % item_words : i;
    own += words[i] * (place + 1);
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(own));
}

struct Output {
  const void* pointer;
  size_t items;
  size_t item_words;
  bool reversed = false;
};

uint64_t checksum(const Output& output) {
  uint64_t *device = nullptr, sum = 0;
  CHECK(cudaMalloc(&device, sizeof(sum)));
  CHECK(cudaMemset(device, 0, sizeof(sum)));
  const auto* words = static_cast<const uint32_t*>(output.pointer);
  add_words<<<1024, 256>>>(words, output.items, static_cast<uint32_t>(output.item_words), output.reversed, device);
  CHECK(cudaMemcpy(&sum, device, sizeof(sum), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));
  return sum;
}

// ---- cases

template <typename T>
struct Below {
  T bound;
  __host__ __device__ bool operator()(const T& x) const { return x < bound; }
};

template <typename T>
struct AtLeast {
  T bound;
  __host__ __device__ bool operator()(const T& x) const { return !(x < bound); }
};

struct Square {
  template <typename T>
  __host__ __device__ T operator()(const T& x) const { return x * x; }
};

struct Product {
  template <typename Pair>
  __host__ __device__ auto operator()(const Pair& pair) const { return thrust::get<0>(pair) * thrust::get<1>(pair); }
};

template <typename T>
struct AddPair {
  const T *a, *b;
  T* out;
  __device__ void operator()(int64_t i) const { out[i] = a[i] + b[i]; }
};

class Case {
 public:
  Case(std::string algorithm, std::string datatype, size_t n, std::map<std::string, std::string> options)
      : n_(n), options_(std::move(options)) {
    if (n > INT32_MAX) throw std::runtime_error("more than 2^31 - 1 items");
    CHECK(cudaStreamCreate(&stream_));
    if (datatype == "u32") prepare<uint32_t>(algorithm);
    else if (datatype == "f32") prepare<float>(algorithm);
    else if (datatype == "u64") prepare<uint64_t>(algorithm);
    else if (datatype == "f64") prepare<double>(algorithm);
    else if (datatype == "i32") prepare<int32_t>(algorithm);
    else if (datatype == "i64") prepare<int64_t>(algorithm);
    else if (datatype == "u16") prepare_sort<uint16_t>(algorithm);
    else if (datatype == "u8") prepare_sort<uint8_t>(algorithm);
    else throw std::runtime_error("unknown datatype " + datatype);
    CHECK(call_(nullptr, temp_bytes_));
    CHECK(cudaMalloc(&temp_, std::max<size_t>(temp_bytes_, 1)));
    once();
    CHECK(cudaStreamSynchronize(stream_));
  }

  ~Case() {
    cudaStreamSynchronize(stream_);
    for (void* pointer : allocated_) cudaFree(pointer);
    cudaFree(temp_);
    cudaStreamDestroy(stream_);
  }

  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  void print_results() {
    std::printf("{\"temp_bytes\": %zu, \"cub_version\": %d, \"counts\": [", temp_bytes_, CUB_VERSION);
    const auto outputs = outputs_();
    for (size_t i = 0; i < outputs.size(); ++i) std::printf("%s%zu", i ? ", " : "", outputs[i].items);
    std::printf("], \"checksums\": [");
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::printf("%s\"%llu\"", i ? ", " : "", static_cast<unsigned long long>(checksum(outputs[i])));
    }
    std::printf("]}\n");
  }

  void time(double warmup_s, int samples, int launches) {
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    auto timed_ns = [&](const std::function<void()>& work) {
      CHECK(cudaEventRecord(start, stream_));
      work();
      CHECK(cudaEventRecord(stop, stream_));
      CHECK(cudaEventSynchronize(stop));
      float ms = 0;
      CHECK(cudaEventElapsedTime(&ms, start, stop));
      return ms * 1e6;
    };
    const auto begin = Clock::now();
    do {
      once();
      CHECK(cudaStreamSynchronize(stream_));
    } while (seconds_since(begin) < warmup_s);
    std::vector<double> single, back_to_back;
    for (int i = 0; i < samples; ++i) single.push_back(timed_ns([&] { once(); }));
    cudaGraphExec_t graph = launches > 0 ? captured(launches) : nullptr;
    auto several = [&] {
      if (graph != nullptr) CHECK(cudaGraphLaunch(graph, stream_));
      for (int i = 0; graph == nullptr && i < launches; ++i) once();
    };
    if (launches > 0) {
      timed_ns(several);  // the first launch uploads the graph
      for (int i = 0; i < samples; ++i) back_to_back.push_back(timed_ns(several) / launches);
    }
    if (graph != nullptr) CHECK(cudaGraphExecDestroy(graph));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    std::printf("{");
    print_list("single_ns", single);
    std::printf(", ");
    print_list("back_to_back_ns", back_to_back);
    std::printf(", \"graph\": %s}\n", graph == nullptr ? "false" : "true");
  }

 private:
  size_t n_;
  std::map<std::string, std::string> options_;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> allocated_;
  std::function<cudaError_t(void*, size_t&)> call_;
  std::function<std::vector<Output>()> outputs_;
  void* temp_ = nullptr;
  size_t temp_bytes_ = 0;

  static void print_list(const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [", name);
    for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.1f", i ? ", " : "", values[i]);
    std::printf("]");
  }

  void once() { CHECK(call_(temp_, temp_bytes_)); }

  // A graph of so many calls, or nullptr: a segmented sort reads the sizes of its groups, which no graph can hold.
  cudaGraphExec_t captured(int launches) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t graph_exec = nullptr;
    CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    cudaError_t status = cudaSuccess;
    try {
      for (int i = 0; i < launches && status == cudaSuccess; ++i) status = call_(temp_, temp_bytes_);
    } catch (const std::exception&) {  // Thrust's
      status = cudaErrorStreamCaptureInvalidated;
    }
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    if (status != cudaSuccess || ended != cudaSuccess) {
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaGetLastError();
      return nullptr;
    }
    CHECK(cudaGraphInstantiate(&graph_exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return graph_exec;
  }

  const std::string& option(const std::string& key) const {
    const auto found = options_.find(key);
    if (found == options_.end()) throw std::runtime_error("this case needs " + key + "=");
    return found->second;
  }

  size_t number(const std::string& key) const { return std::strtoull(option(key).c_str(), nullptr, 10); }

  template <typename T>
  T bound(const std::string& key) const {
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(std::atof(option(key).c_str()));
    return static_cast<T>(number(key));
  }

  template <typename T>
  const T* input(const std::string& key, size_t items) const {
    const auto found = loaded.find(option(key));
    if (found == loaded.end()) throw std::runtime_error(option(key) + " is not loaded");
    if (found->second.bytes < items * sizeof(T)) throw std::runtime_error(option(key) + " is too short");
    return static_cast<const T*>(found->second.pointer);
  }

  template <typename T>
  T* output(size_t items) {
    void* pointer = nullptr;
    CHECK(cudaMalloc(&pointer, std::max<size_t>(items, 1) * sizeof(T)));
    allocated_.push_back(pointer);
    return static_cast<T*>(pointer);
  }

  template <typename T>
  static T read(const T* device, size_t i = 0) {
    T value{};
    CHECK(cudaMemcpy(&value, device + i, sizeof(T), cudaMemcpyDeviceToHost));
    return value;
  }

  template <typename T>
  static Output all(const T* pointer, size_t items, bool reversed = false) {
    // A checksum is of whole words.
    return {pointer, sizeof(T) < 4 ? items * sizeof(T) / 4 : items, std::max<size_t>(sizeof(T) / 4, 1), reversed};
  }

  template <typename T>
  void prepare_sort(const std::string& algorithm) {
    const bool known = algorithm == "sort" || algorithm == "sort_pairs";
    if (!known || !prepare_whole<T>(algorithm)) throw std::runtime_error("no case " + algorithm + " of this datatype");
  }

  template <typename T>
  void prepare(const std::string& algorithm) {
    if (prepare_whole<T>(algorithm)) return;
    if constexpr (std::is_unsigned_v<T> || std::is_same_v<T, float>) {
      if (prepare_selection<T>(algorithm) || prepare_runs<T>(algorithm) || prepare_values<T>(algorithm)) return;
    }
    if constexpr (std::is_same_v<T, uint32_t>) {
      if (prepare_words(algorithm)) return;
    }
    if constexpr (std::is_same_v<T, uint32_t> || std::is_same_v<T, float>) {
      if (prepare_top_k<T>(algorithm)) return;
    }
    throw std::runtime_error("no case " + algorithm + " of this datatype");
  }

  // Whole arrays: copies, sums, scans, sorts.
  template <typename T>
  bool prepare_whole(const std::string& algorithm) {
    const int n = static_cast<int>(n_);  // its kernels are faster with 32 bits
    const cudaStream_t stream = stream_;
    if (algorithm == "sort_pairs") {
      const T* keys = input<T>("keys", n);
      const uint32_t* values = input<uint32_t>("values", n);
      T* keys_out = output<T>(n);
      uint32_t* values_out = output<uint32_t>(n);
      call_ = [=](void* temp, size_t& bytes) {
        const int bits = 8 * static_cast<int>(sizeof(T));
        return cub::DeviceRadixSort::SortPairs(temp, bytes, keys, keys_out, values, values_out, n, 0, bits, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(keys_out, n), all(values_out, n)}; };
      return true;
    }
    if (algorithm == "vector_add") {
      const T *a = input<T>("a", n), *b = input<T>("b", n);
      T* out = output<T>(n);
      call_ = [=](void* temp, size_t& bytes) {
        if (temp == nullptr) return bytes = 1, cudaSuccess;
        return cub::DeviceFor::Bulk(static_cast<int64_t>(n), AddPair<T>{a, b, out}, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(out, n)}; };
      return true;
    }
    const bool known = algorithm == "copy" || algorithm == "reduce" || algorithm == "scan" ||
                       algorithm == "scan_exclusive" || algorithm == "sort";
    if (!known) return false;
    const T* in = input<T>("input", n);
    const int results = algorithm == "reduce" ? 1 : n;
    T* out = output<T>(results);
    outputs_ = [=] { return std::vector<Output>{all(out, results)}; };
    if (algorithm == "copy") {
      call_ = [=](void* temp, size_t& bytes) {
        if (temp == nullptr) return bytes = 1, cudaSuccess;
        return cudaMemcpyAsync(out, in, n * sizeof(T), cudaMemcpyDeviceToDevice, stream);
      };
    } else if (algorithm == "reduce") {
      call_ = [=](void* temp, size_t& bytes) { return cub::DeviceReduce::Sum(temp, bytes, in, out, n, stream); };
    } else if (algorithm == "scan") {
      call_ = [=](void* temp, size_t& bytes) { return cub::DeviceScan::InclusiveSum(temp, bytes, in, out, n, stream); };
    } else if (algorithm == "scan_exclusive") {
      call_ = [=](void* temp, size_t& bytes) { return cub::DeviceScan::ExclusiveSum(temp, bytes, in, out, n, stream); };
    } else {
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(temp, bytes, in, out, n, 0, 8 * static_cast<int>(sizeof(T)), stream);
      };
    }
    return true;
  }

  template <typename T>
  bool prepare_selection(const std::string& algorithm) {
    const int n = static_cast<int>(n_);  // its kernels are faster with 32 bits
    const cudaStream_t stream = stream_;
    if (algorithm == "select" || algorithm == "flagged" || algorithm == "unique") {
      const T* in = input<T>("input", n_);
      T* out = output<T>(n_);
      uint32_t* count = output<uint32_t>(1);
      outputs_ = [=] { return std::vector<Output>{all(out, read(count))}; };
      if (algorithm == "select") {
        const Below<T> predicate{bound<T>("bound")};
        call_ = [=](void* temp, size_t& bytes) {
          return cub::DeviceSelect::If(temp, bytes, in, out, count, n, predicate, stream);
        };
      } else if (algorithm == "flagged") {
        const uint8_t* flags = input<uint8_t>("flags", n_);
        call_ = [=](void* temp, size_t& bytes) {
          return cub::DeviceSelect::Flagged(temp, bytes, in, flags, out, count, n, stream);
        };
      } else {
        call_ = [=](void* temp, size_t& bytes) {
          return cub::DeviceSelect::Unique(temp, bytes, in, out, count, n, stream);
        };
      }
      return true;
    }
    if (algorithm == "partition2") {
      const T* in = input<T>("input", n_);
      T* out = output<T>(n_);
      uint32_t* count = output<uint32_t>(1);
      const Below<T> predicate{bound<T>("bound")};
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DevicePartition::If(temp, bytes, in, out, count, n, predicate, stream);
      };
      outputs_ = [=] {
        const size_t first = read(count);
        return std::vector<Output>{all(out, first), all(out + first, n - first, true)};
      };
      return true;
    }
    return false;
  }

  template <typename T>
  bool prepare_runs(const std::string& algorithm) {
    const int n = static_cast<int>(n_);  // its kernels are faster with 32 bits
    const cudaStream_t stream = stream_;
    if (algorithm == "reduce_by_key") {
      const uint32_t* keys = input<uint32_t>("keys", n_);
      const T* values = input<T>("values", n_);
      uint32_t *keys_out = output<uint32_t>(n_), *count = output<uint32_t>(1);
      T* sums = output<T>(n_);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceReduce::ReduceByKey(temp, bytes, keys, keys_out, values, sums, count, ::cuda::std::plus<>{},
                                              n, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(keys_out, read(count)), all(sums, read(count))}; };
      return true;
    }
    if (algorithm == "scan_by_key") {
      const uint32_t* keys = input<uint32_t>("keys", n_);
      const T* values = input<T>("values", n_);
      T* out = output<T>(n_);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceScan::InclusiveSumByKey(temp, bytes, keys, values, out, n, ::cuda::std::equal_to<>{}, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(out, n)}; };
      return true;
    }
    if (algorithm == "segmented_reduce") {
      const T* in = input<T>("input", n_);
      const size_t segments = number("segments");
      const uint32_t* offsets = input<uint32_t>("offsets", segments + 1);
      T* out = output<T>(segments);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceSegmentedReduce::Sum(temp, bytes, in, out, static_cast<int64_t>(segments), offsets,
                                               offsets + 1, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(out, segments)}; };
      return true;
    }
    return false;
  }

  template <typename T>
  bool prepare_values(const std::string& algorithm) {
    const int n = static_cast<int>(n_);  // its kernels are faster with 32 bits
    const cudaStream_t stream = stream_;
    if (algorithm == "square") {
      const T* in = input<T>("input", n_);
      T* out = output<T>(n_);
      call_ = [=](void* temp, size_t& bytes) {
        if (temp == nullptr) return bytes = 1, cudaSuccess;
        return cub::DeviceTransform::Transform(in, out, n, Square{}, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(out, n)}; };
      return true;
    }
    if (algorithm == "dot") {
      const auto pairs = thrust::make_zip_iterator(input<T>("a", n_), input<T>("b", n_));
      const auto products = thrust::make_transform_iterator(pairs, Product{});
      T* out = output<T>(1);
      call_ = [=](void* temp, size_t& bytes) { return cub::DeviceReduce::Sum(temp, bytes, products, out, n, stream); };
      outputs_ = [=] { return std::vector<Output>{all(out, 1)}; };
      return true;
    }
    if (algorithm == "argmax") {
      const T* in = input<T>("input", n_);
      T* value = output<T>(1);
      int64_t* place = output<int64_t>(1);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceReduce::ArgMax(temp, bytes, in, value, place, n, stream);
      };
      // The low word of the place: n is below 2^32.
      outputs_ = [=] { return std::vector<Output>{all(value, 1), {place, 1, 1}}; };
      return true;
    }
    return false;
  }

  bool prepare_words(const std::string& algorithm) {
    const int n = static_cast<int>(n_);  // its kernels are faster with 32 bits
    const cudaStream_t stream = stream_;
    using T = uint32_t;
    if (algorithm == "partition3") {
      const T* in = input<T>("input", n_);
      T *first = output<T>(n_), *second = output<T>(n_), *rest = output<T>(n_);
      uint32_t* counts = output<uint32_t>(2);
      const Below<T> is_first{bound<T>("bound")};
      const AtLeast<T> is_second{bound<T>("second_bound")};
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DevicePartition::If(temp, bytes, in, first, second, rest, counts, n, is_first, is_second, stream);
      };
      outputs_ = [=] {
        const size_t a = read(counts), b = read(counts, 1);
        return std::vector<Output>{all(first, a), all(second, b), all(rest, n - a - b)};
      };
    } else if (algorithm == "unique_by_key") {
      const T *keys = input<T>("keys", n_), *values = input<T>("values", n_);
      T *keys_out = output<T>(n_), *values_out = output<T>(n_), *count = output<T>(1);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceSelect::UniqueByKey(temp, bytes, keys, values, keys_out, values_out, count, n, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(keys_out, read(count)), all(values_out, read(count))}; };
    } else if (algorithm == "run_length") {
      const T* keys = input<T>("input", n_);
      T *values = output<T>(n_), *lengths = output<T>(n_), *count = output<T>(1);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceRunLengthEncode::Encode(temp, bytes, keys, values, lengths, count, n, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(values, read(count)), all(lengths, read(count))}; };
    } else if (algorithm == "histogram") {
      const T* in = input<T>("input", n_);
      const size_t bins = number("bins");
      T* counts = output<T>(bins);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceHistogram::HistogramEven(temp, bytes, in, counts, static_cast<int>(bins) + 1, T{0},
                                                   static_cast<T>(bins), n, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(counts, bins)}; };
    } else if (algorithm == "merge") {
      const size_t half = n_ / 2;
      const T *a = input<T>("a", half), *b = input<T>("b", half);
      T* out = output<T>(2 * half);
      call_ = [=](void* temp, size_t& bytes) {
        return cub::DeviceMerge::MergeKeys(temp, bytes, a, static_cast<int64_t>(half), b, static_cast<int64_t>(half),
                                           out, ::cuda::std::less<>{}, stream);
      };
      outputs_ = [=] { return std::vector<Output>{all(out, 2 * half)}; };
    } else if (algorithm == "lower_bound") {
      const size_t sorted_items = number("sorted_items");
      const T *sorted = input<T>("sorted", sorted_items), *queries = input<T>("queries", n_);
      T* out = output<T>(n_);
      call_ = [=](void* temp, size_t& bytes) {
        if (temp == nullptr) return bytes = 1, cudaSuccess;
        const auto policy = thrust::cuda::par_nosync.on(stream);
        thrust::lower_bound(policy, sorted, sorted + sorted_items, queries, queries + n, out);
        return cudaGetLastError();
      };
      outputs_ = [=] { return std::vector<Output>{all(out, n)}; };
    } else if (algorithm == "segmented_sort" || algorithm == "segmented_radix_sort") {
      const T* in = input<T>("input", n_);
      const auto segments = static_cast<int64_t>(number("segments"));
      const uint32_t* offsets = input<uint32_t>("offsets", segments + 1);
      T* out = output<T>(n_);
      if (algorithm == "segmented_sort") {
        call_ = [=](void* temp, size_t& bytes) {
          return cub::DeviceSegmentedSort::SortKeys(temp, bytes, in, out, n, segments, offsets, offsets + 1, stream);
        };
      } else {
        call_ = [=](void* temp, size_t& bytes) {
          return cub::DeviceSegmentedRadixSort::SortKeys(temp, bytes, in, out, n, segments, offsets, offsets + 1, 0, 32,
                                                         stream);
        };
      }
      outputs_ = [=] { return std::vector<Output>{all(out, n)}; };
    } else {
      return false;
    }
    return true;
  }

  template <typename T>
  bool prepare_top_k(const std::string& algorithm) {
    if (algorithm != "top_k") return false;
#if HAS_TOP_K
    const int n = static_cast<int>(n_);  // its kernels are faster with 32 bits
    const T* in = input<T>("input", n_);
    const auto k = static_cast<int64_t>(number("k"));
    T* out = output<T>(k);
    const auto requirements = ::cuda::execution::require(::cuda::execution::determinism::not_guaranteed,
                                                         ::cuda::execution::output_ordering::unsorted);
    const auto environment = ::cuda::std::execution::env{::cuda::stream_ref{stream_}, requirements};
    call_ = [=](void* temp, size_t& bytes) {
      return cub::DeviceTopK::MaxKeys(temp, bytes, in, out, n, k, environment);
    };
    // The order of the results is open, so no checksum of places: they are sorted first.
    outputs_ = [=] {
      std::vector<T> values(k);
      CHECK(cudaMemcpy(values.data(), out, k * sizeof(T), cudaMemcpyDeviceToHost));
      std::sort(values.begin(), values.end(), std::greater<>());
      CHECK(cudaMemcpy(out, values.data(), k * sizeof(T), cudaMemcpyHostToDevice));
      return std::vector<Output>{all(static_cast<const T*>(out), k)};
    };
    return true;
#else
    throw std::runtime_error("this CUB has no DeviceTopK");
#endif
  }
};

std::string quoted(const char* text) {
  std::string found;
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') found += '\\';
    found += *text == '\n' ? ' ' : *text;
  }
  return found;
}

void answer(const std::string& line, std::unique_ptr<Case>& prepared) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (command == "load") {
    std::string name, path;
    size_t bytes = 0;
    words >> name >> path >> bytes;
    if (loaded.count(name) != 0) {
      prepared.reset();  // it may read that memory
      unload(name);
    }
    load(name, path, bytes);
    std::printf("{\"bytes\": %zu}\n", bytes);
  } else if (command == "free") {
    std::string name;
    words >> name;
    prepared.reset();  // it may read that memory
    unload(name);
    std::printf("{}\n");
  } else if (command == "case") {
    std::string algorithm, datatype, pair;
    size_t n = 0;
    words >> algorithm >> datatype >> n;
    std::map<std::string, std::string> options;
    while (words >> pair) options[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    prepared.reset();  // before the next one takes memory
    prepared = std::make_unique<Case>(algorithm, datatype, n, options);
    prepared->print_results();
  } else if (command == "time") {
    double warmup_s = 0;
    int samples = 0, launches = 0;
    words >> warmup_s >> samples >> launches;
    if (prepared == nullptr) throw std::runtime_error("no case is prepared");
    prepared->time(warmup_s, samples, launches);
  } else {
    throw std::runtime_error("unknown command " + command);
  }
}

int main() {
  std::unique_ptr<Case> prepared;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      answer(line, prepared);
    } catch (const std::exception& error) {
      std::printf("{\"error\": \"%s\"}\n", quoted(error.what()).c_str());
      cudaGetLastError();  // the next case starts without it
    }
    std::fflush(stdout);
  }
  return 0;
}
