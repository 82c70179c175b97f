// What the random kernels share: argument checks, the order of elements, and drivers that turn generator words into
// elements. Not for files compiled once per instruction set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/dtype.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"
#include "cpu/index_walk.h"
#include "rushlight.h"
#include "rushlight/random.h"

namespace rl::rng {

// Locks the generator for the duration of a call; NULL means the default one.
class LockedGenerator {
 public:
  explicit LockedGenerator(rl_generator* generator)
      : generator_(generator ? generator : rl_default_generator()), lock_(generator_->mutex) {}
  rl_generator& operator*() const { return *generator_; }
  rl_generator* operator->() const { return generator_; }

 private:
  rl_generator* generator_;
  std::lock_guard<std::mutex> lock_;
};

// Fills out with the generator's next n words (pairs of words with n = 2 * elements).
void draw_words(rl_generator& generator, uint32_t* out, int64_t n);
// The next n floats in [from, to), one word each; doubles, two words each.
void draw_floats(rl_generator& generator, float* out, int64_t n, float from, float to);
void draw_doubles(rl_generator& generator, double* out, int64_t n, double from, double to);
// The next n standard normal numbers of the scalar method, which keeps the second of a pair for the next call.
void draw_normals(rl_generator& generator, double* out, int64_t n);

// Checks that `out` is a tensor on the CPU that can be written element by element.
rl_status check_output(const char* op, const rl_tensor* out);
// Checks an operand that is read, and that it broadcasts to `out`.
rl_status check_operand(const char* op, const char* name, const rl_tensor* operand, const rl_tensor* out);
rl_status check_dtype_is(const char* op, const char* name, const rl_tensor* operand, int dtype);
rl_status dtype_failure(const char* op, const char* expected, int dtype);

// The elements of tensors[0] (with those of the operands broadcast to it) in the order in which they are drawn: dims
// from the largest stride to the smallest, as PyTorch's element loops walk them. Ties go to the next operand, then to
// the larger dim; the sort is by insertion because such a comparison is no strict order.
template <int K>
inline void drawing_order(const rl_tensor* const (&tensors)[K], Box<K>& box) {
  const rl_tensor& out = *tensors[0];
  const int ndim = out.ndim;
  int64_t steps[RL_MAX_DIMS][K];
  for (int k = 0; k < K; ++k) {
    const rl_tensor& t = *tensors[k];
    const int64_t item = dtype_size(t.dtype);
    box.data[k] = static_cast<char*>(t.data);
    for (int d = 0; d < ndim; ++d) {
      const int own = d - (ndim - t.ndim);
      const bool repeated = own < 0 || (t.shape[own] == 1 && out.shape[d] != 1);
      steps[d][k] = repeated ? 0 : t.strides[own] * item;
    }
  }
  const auto compare = [&](int a, int b) {
    for (int k = 0; k < K; ++k) {
      const int64_t stride_a = std::abs(steps[a][k]);
      const int64_t stride_b = std::abs(steps[b][k]);
      if (stride_a == 0 || stride_b == 0) continue;
      if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
      if (out.shape[a] > out.shape[b]) return 1;
    }
    return 0;
  };
  int order[RL_MAX_DIMS];  // from the innermost dim to the outermost
  for (int i = 0; i < ndim; ++i) order[i] = ndim - 1 - i;
  for (int i = 1; i < ndim; ++i) {
    int at = i;
    for (int before = i - 1; before >= 0; --before) {
      const int comparison = compare(order[before], order[at]);
      if (comparison > 0) {
        std::swap(order[before], order[at]);
        at = before;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  for (int i = ndim - 1; i >= 0; --i) box.push(out.shape[order[i]], steps[order[i]]);
  box.finish();
}

template <class T>
inline bool is_dense(const Box<1>& box) {
  return box.ndim == 1 && (box.count <= 1 || box.steps()[0] == static_cast<int64_t>(sizeof(T)));
}

constexpr int64_t kDrawTile = 512;       // elements made at a time, in the first-level cache
constexpr int64_t kDrawChunk = 65536;    // elements whose words are drawn before threads work on them
constexpr int64_t kDrawBlock = 2048;     // elements of a thread's block
constexpr int64_t kDrawThreaded = 4096;  // elements from which threads are worth it, for expensive distributions

// Writes the elements of `out` in drawing order; make(T* to, int64_t n) gives the next n of them.
template <class T, class Make>
inline void fill_tiles(const rl_tensor& out, Make&& make) {
  Box<1> box;
  drawing_order<1>({&out}, box);
  if (is_dense<T>(box)) {
    T* const data = reinterpret_cast<T*>(box.data[0]);
    for (int64_t i = 0; i < box.count; i += kDrawTile) make(data + i, std::min(kDrawTile, box.count - i));
    return;
  }
  T tile[kDrawTile];
  int64_t used = 0, made = 0, left = box.count;
  const int64_t step = box.steps()[0];
  walk(box, [&](char* const* at, int64_t n) {
    char* to = at[0];
    while (n > 0) {
      if (used == made) {
        made = std::min(kDrawTile, left);
        left -= made;
        used = 0;
        make(tile, made);
      }
      const int64_t part = std::min(n, made - used);
      for (int64_t i = 0; i < part; ++i, to += step) *reinterpret_cast<T*>(to) = tile[used + i];
      used += part;
      n -= part;
    }
  });
}

// Draws `count` items in chunks and works on them with threads: draw(start, n, slot) fetches items [start, start + n)
// into buffer `slot` (0 or 1), work(begin, end, start, slot) handles items [begin, end) of the chunk that began at
// `start`. The next chunk is drawn, by one thread, while the others work on this one. Up to `serial_up_to` items there
// is no parallel loop.
template <class Draw, class Work>
inline void draw_ahead(int64_t count, int64_t serial_up_to, Draw&& draw, Work&& work) {
  int slot = 0;
  if (count > 0) draw(int64_t{0}, std::min(kDrawChunk, count), slot);
  if (count > 0 && count <= std::min(serial_up_to, kDrawChunk)) {
    work(int64_t{0}, count, int64_t{0}, slot);
    return;
  }
  for (int64_t start = 0; start < count; start += kDrawChunk, slot ^= 1) {
    const int64_t n = std::min(kDrawChunk, count - start);
    const int64_t next = start + n;
    parallel_for(ceil_div(n, kDrawBlock) + 1, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        if (task > 0) {
          const int64_t begin = start + (task - 1) * kDrawBlock;
          work(begin, std::min(begin + kDrawBlock, next), start, slot);
        } else if (next < count) {
          draw(next, std::min(kDrawChunk, count - next), slot ^ 1);
        }
      }
    });
  }
}

// Words for two chunks of items that take kWords words each.
template <int kWords>
class DrawnWords {
 public:
  explicit DrawnWords(int64_t count)
      : chunk_(kWords * std::min(kDrawChunk, count)), words_(count > kDrawChunk ? 2 * chunk_ : chunk_) {}
  bool ok() const { return words_.ok(); }
  void draw(rl_generator& generator, int64_t n, int slot) {
    draw_words(generator, words_.get() + slot * chunk_, kWords * n);
  }
  const uint32_t* at(int64_t item, int64_t start, int slot) const {
    return words_.get() + slot * chunk_ + kWords * (item - start);
  }

 private:
  int64_t chunk_;
  Scratch<uint32_t> words_;
};

// As fill_tiles, for elements that take kWords words each: make(const uint32_t* words, T* to, int64_t n), which threads
// run at once for many elements of dense memory.
template <class T, int kWords, class Make>
inline rl_status fill_from_words(rl_generator& generator, const rl_tensor& out, Make&& make) {
  Box<1> box;
  drawing_order<1>({&out}, box);
  if (box.count >= kDrawThreaded && is_dense<T>(box)) {
    DrawnWords<kWords> words(box.count);
    if (!words.ok()) return RL_MEMORY_ERROR;
    T* const data = reinterpret_cast<T*>(box.data[0]);
    draw_ahead(
        box.count, 0, [&](int64_t, int64_t n, int slot) { words.draw(generator, n, slot); },
        [&](int64_t begin, int64_t end, int64_t start, int slot) {
          make(words.at(begin, start, slot), data + begin, end - begin);
        });
    return RL_OK;
  }
  fill_tiles<T>(out, [&](T* to, int64_t n) {
    uint32_t words[kWords * kDrawTile];
    draw_words(generator, words, kWords * n);
    make(words, to, n);
  });
  return RL_OK;
}

// Uniform in [0, 1) from a pair of words.
inline double pair_uniform(const uint32_t* pair) { return unit_double(static_cast<uint64_t>(pair[0]) << 32 | pair[1]); }

// Two standard normal numbers by Box and Muller's method. The logarithm takes 1 - u2, which is never zero.
struct NormalPair {
  double first, second;
};
inline NormalPair normal_pair(double u1, double u2) {
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double angle = 2.0 * 3.14159265358979323846 * u1;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}
inline NormalPair normal_pair(const uint32_t* words) {
  return normal_pair(pair_uniform(words), pair_uniform(words + 2));
}

}  // namespace rl::rng
