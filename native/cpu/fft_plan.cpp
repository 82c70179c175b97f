// Plans of Fourier transforms: how a size is split, tables of roots of unity, and the cache of both.
#include "cpu/fft_plan.h"

#include <cmath>
#include <list>
#include <mutex>

#include "rushlight/fft.h"

namespace rl {
namespace {

constexpr double kPi = 3.14159265358979323846;

constexpr int64_t kLargestMatrix = 8192;

struct Root {
  double re, im;
};

// exp(-2 pi i k / n): the angle is brought into the first octant in integers, so that every root is as good as a double
// can be.
Root root_of_unity(int64_t k, int64_t n) {
  k %= n;
  int64_t eighths = 8 * k / n, rest = 8 * k - eighths * n;  // angle = (eighths + rest / n) * pi / 4
  const bool from_above = eighths & 1;
  const double angle = static_cast<double>(from_above ? n - rest : rest) / static_cast<double>(n) * (kPi / 4);
  double c = std::cos(angle), s = std::sin(angle);
  if (((eighths + 1) & 2) != 0) std::swap(c, s);
  if (eighths >= 2 && eighths < 6) c = -c;
  if (eighths >= 4) s = -s;
  return {c, -s};
}

struct Builder {
  FftPlan& plan;
  bool failed = false;

  void* take(int64_t numbers) {
    const int64_t size = numbers * (plan.wide ? 8 : 4);
    void* block = plan.memory_count == 64 ? nullptr : rl_allocate(static_cast<size_t>(size));
    if (block == nullptr) {
      failed = true;
      return nullptr;
    }
    plan.memory[plan.memory_count++] = block;
    plan.bytes += size;
    return block;
  }
  void put(void* block, int64_t i, double value) {
    if (plan.wide)
      static_cast<double*>(block)[i] = value;
    else
      static_cast<float*>(block)[i] = static_cast<float>(value);
  }
  void put(void* block, int64_t i, Root r) {
    put(block, 2 * i, r.re);
    put(block, 2 * i + 1, r.im);
  }

  void lanes(FftLanePlan& lane, int64_t n) {
    lane.n = n;
    int radices[kFftMaxPasses], count = 0, twos = 0;
    int64_t rest = n;
    for (; rest % 2 == 0; rest /= 2) ++twos;
    // Radices of up to 16, as few and as even as they can be; odd ones are after the first of several.
    for (int left = (twos + 3) / 4, all = left; left >= 0; --left) {
      if (left == (all > 1 ? all - 1 : all))
        for (int p = 3; p <= kFftLargestPrime; p += 2)
          for (; rest % p == 0; rest /= p) radices[count++] = p;
      if (left == 0) break;
      const int bits = twos / left;
      radices[count++] = 1 << bits;
      twos -= bits;
    }
    int64_t size = n, s = 1;
    lane.count = 0;
    for (int i = 0; i < count; ++i) {
      FftPass& pass = lane.passes[lane.count++];
      const int r = radices[i];
      pass = {r, size / r, s, nullptr, nullptr};
      void* twiddles = take(2 * pass.m * (r - 1));
      if (twiddles == nullptr) return;
      for (int64_t p = 0; p < pass.m; ++p)
        for (int k = 1; k < r; ++k) put(twiddles, p * (r - 1) + k - 1, root_of_unity(p * k, size));
      pass.twiddles = twiddles;
      if (r % 2 == 1) {
        void* roots = take(2 * r);
        if (roots == nullptr) return;
        for (int j = 0; j < r; ++j) {
          const Root w = root_of_unity(j, r);
          put(roots, j, w.re);
          put(roots, r + j, -w.im);
        }
        pass.roots = roots;
      }
      size /= r;
      s *= r;
    }
  }
};

// Work of transforming all lanes of a vector, in passes over an element
double lane_work(int64_t n, bool wide, int64_t width) {
  double passes = 1;
  int64_t rest = n;
  for (; rest % 8 == 0; rest /= 8) passes += 1.2;
  for (; rest % 4 == 0; rest /= 4) passes += 1;
  for (; rest % 2 == 0; rest /= 2) passes += 0.9;
  for (int p = 3; p <= kFftLargestPrime; p += 2)
    for (; rest % p == 0; rest /= p) passes += p <= 3 ? 1 : 0.25 * p;
  const double bytes = 4.0 * static_cast<double>(n * width * (wide ? 8 : 4));  // both buffers
  const double slow = bytes > 4e6 ? 4 : bytes > 4e5 ? 1.8 : 1;                 // they leave the caches
  return static_cast<double>(n) * (passes * slow + 1);
}

bool is_smooth(int64_t n) {
  for (int p = 2; p <= kFftLargestPrime; ++p)
    while (n % p == 0) n /= p;
  return n == 1;
}

// The number that belongs to lane j, as in fft_simd.h.
int64_t folded(int64_t j, int64_t width, bool wide) {
  const int64_t n = wide ? 2 : 4, half = n / 2, g = j / n, r = j % n;
  return r < half ? g * half + r : width / 2 + g * half + r - half;
}

int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// Whether a line goes through vectors as a matrix with as many rows as they have lanes.
bool matrix_fits(int64_t n, int64_t width) {
  const int64_t m = n / width;
  if (width < 4 || n % width != 0 || m < 2 || n > kLargestMatrix) return false;
  return 4 * m >= 3 * width || (m <= 8 && width % m == 0);
}

void matrix(FftPlan& plan, Builder& b, int64_t width) {
  const int64_t n = plan.n, m = n / width, blocks = up(m, width);
  plan.line = FftKind::kMatrix;
  plan.m = m;
  plan.together = width % m == 0 ? width / m : 1;
  b.lanes(plan.rest, m);
  b.lanes(plan.lanes, n);
  plan.has_lanes = true;
  plan.line_cost = (lane_work(n, plan.wide, width) + 4 * static_cast<double>(n)) / static_cast<double>(width);
  void *turns = b.take(blocks * 2 * width * (width - 1)), *halves = b.take(2 * n);
  if (b.failed) return;
  for (int64_t i = 0; i < blocks * width; ++i) {
    const int64_t lane = i % width, p = i - lane + folded(lane, width, plan.wide);
    for (int64_t k = 1; k < width; ++k) {
      const Root w = root_of_unity((plan.together > 1 ? p % m : p) * k, n);
      const int64_t at = 2 * width * (i / width * (width - 1) + k - 1) + lane;
      b.put(turns, at, w.re);
      b.put(turns, at + width, w.im);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t lane = i % width;
    const Root w = root_of_unity(i - lane + folded(lane, width, plan.wide), 2 * n);
    b.put(halves, 2 * (i - lane) + lane, w.re);
    b.put(halves, 2 * (i - lane) + lane + width, w.im);
  }
  plan.turns = turns;
  plan.halves_in_lanes = halves;
}

void build(FftPlan& plan, Builder& b) {
  const int64_t n = plan.n;
  const FftTable& table = fft_table();
  const int64_t width = plan.wide ? table.wide.width : table.single.width;
  void* halves = b.take(2 * (n / 2 + 1));
  if (halves == nullptr) return;
  for (int64_t k = 0; k <= n / 2; ++k) b.put(halves, k, root_of_unity(k, 2 * n));
  plan.halves = halves;
  if (!is_smooth(n)) {
    plan.line = FftKind::kConvolution;
    int64_t m = 0;
    for (int64_t odd : {1, 3, 5, 9, 15}) {
      int64_t size = odd;
      while (size < 2 * n - 1) size *= 2;
      if (m == 0 || size < m) m = size;
    }
    plan.inner = fft_plan(m, plan.wide);
    const std::shared_ptr<const FftPlan> exact = fft_plan(m, true);
    void *chirp = b.take(2 * n), *kernel = b.take(2 * m);
    double* values = static_cast<double*>(rl_allocate(static_cast<size_t>(32 * m)));
    if (b.failed || !plan.inner || !exact || values == nullptr) {
      b.failed = true;
      rl_deallocate(values);
      return;
    }
    double* transformed = values + 2 * m;
    for (int64_t i = 0; i < 2 * m; ++i) values[i] = 0;
    int64_t square = 0;  // k^2 mod 2n
    for (int64_t k = 0; k < n; ++k) {
      const Root w = root_of_unity(square, 2 * n);
      b.put(chirp, k, w);
      values[2 * k] = w.re;
      values[2 * k + 1] = -w.im;
      if (k > 0) {
        values[2 * (m - k)] = w.re;
        values[2 * (m - k) + 1] = -w.im;
      }
      square = (square + 2 * k + 1) % (2 * n);
    }
    const int64_t shape[1] = {m}, strides[1] = {1};
    const rl_tensor in = {values, shape, strides, 1, RL_COMPLEX128, 0, {}};
    const rl_tensor out = {transformed, shape, strides, 1, RL_COMPLEX128, 0, {}};
    const int dim = 0;
    if (rl_fft(&in, &dim, 1, 0, 1.0 / static_cast<double>(m), &out) != RL_OK) b.failed = true;
    for (int64_t i = 0; i < 2 * m; ++i) b.put(kernel, i, transformed[i]);
    rl_deallocate(values);
    plan.chirp = chirp;
    plan.kernel = kernel;
    return;
  }
  plan.lane_cost = plan.line_cost = lane_work(n, plan.wide, width);
  if (matrix_fits(n, width)) return matrix(plan, b, width);
  int64_t best = 0;
  for (int64_t n1 = 2; n1 * n1 <= n; ++n1) {
    if (n % n1 != 0) continue;
    for (int64_t a : {n1, n / n1}) {
      const double cost =
          static_cast<double>(up(n / a, width)) * (lane_work(a, plan.wide, width) + 2 * static_cast<double>(a)) +
          static_cast<double>(up(a, width)) * (lane_work(n / a, plan.wide, width) + 2 * static_cast<double>(n / a));
      if (cost < plan.line_cost) {
        plan.line_cost = cost;
        best = a;
      }
    }
  }
  if (n <= 16384 || best == 0) {
    b.lanes(plan.lanes, n);
    plan.has_lanes = true;
  }
  if (best == 0) return;
  plan.line = FftKind::kSteps;
  plan.n1 = best;
  plan.n2 = n / best;
  plan.blocks = up(plan.n2, width);
  b.lanes(plan.first, plan.n1);
  b.lanes(plan.second, plan.n2);
  void *block_factors = b.take(2 * plan.blocks * plan.n1), *lane_factors = b.take(2 * plan.n1 * width);
  if (b.failed) return;
  for (int64_t k = 0; k < plan.n1; ++k) {
    for (int64_t j = 0; j < plan.blocks; ++j) b.put(block_factors, j * plan.n1 + k, root_of_unity(k * j * width, n));
    for (int64_t l = 0; l < width; ++l) {
      const Root w = root_of_unity(k * folded(l, width, plan.wide), n);
      b.put(lane_factors, 2 * width * k + l, w.re);
      b.put(lane_factors, 2 * width * k + width + l, w.im);
    }
  }
  plan.block_factors = block_factors;
  plan.lane_factors = lane_factors;
}

struct Cache {
  std::mutex mutex;
  std::list<std::shared_ptr<const FftPlan>> plans;  // the latest first
  int64_t bytes = 0, limit = int64_t{32} << 20;

  void trim() {
    while (bytes > limit && !plans.empty()) {
      bytes -= plans.back()->bytes;
      plans.pop_back();
    }
  }
};
Cache& cache() {
  static Cache* const one = new Cache;  // outlives threads that transform while the program ends
  return *one;
}

}  // namespace

FftPlan::~FftPlan() {
  for (int i = 0; i < memory_count; ++i) rl_deallocate(memory[i]);
}

std::shared_ptr<const FftPlan> fft_plan(int64_t n, bool wide) {
  Cache& c = cache();
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    for (auto it = c.plans.begin(); it != c.plans.end(); ++it) {
      if ((*it)->n != n || (*it)->wide != wide) continue;
      if (it != c.plans.begin()) c.plans.splice(c.plans.begin(), c.plans, it);
      return *it;
    }
  }
  auto plan = std::make_shared<FftPlan>();
  plan->n = n;
  plan->wide = wide;
  Builder builder{*plan};
  build(*plan, builder);
  if (builder.failed) return nullptr;
  std::lock_guard<std::mutex> lock(c.mutex);
  c.plans.push_front(plan);
  c.bytes += plan->bytes;
  c.trim();
  return plan;
}

}  // namespace rl

void rl_fft_set_cache_limit(int64_t bytes) {
  rl::Cache& c = rl::cache();
  std::lock_guard<std::mutex> lock(c.mutex);
  c.limit = bytes;
  c.trim();
}

int64_t rl_fft_cache_bytes(void) {
  rl::Cache& c = rl::cache();
  std::lock_guard<std::mutex> lock(c.mutex);
  return c.bytes;
}
