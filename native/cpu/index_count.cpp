// Runs of equal slices (for unique), histograms, and repeated indices.
#include <atomic>
#include <cmath>

#include "cpu/index_values.h"
#include "cpu/index_walk.h"
#include "rushlight/index.h"

namespace rl {
namespace {

constexpr int64_t kParts = 16;  // ranges with counters of their own

bool is_line(const rl_tensor& t, int dtype, int64_t n) {
  return t.dtype == dtype && t.ndim == 1 && (n < 0 || t.shape[0] == n);
}

int64_t& at(const rl_tensor& t, int64_t i) { return static_cast<int64_t*>(t.data)[i * t.strides[0]]; }

// flags[i] = line[order[i]] differs from line[order[i - 1]], for single elements.
template <class T>
void flag_elements(const char* line, int64_t step, const rl_tensor* order, int64_t begin, int64_t end, uint8_t* flags,
                   int64_t flags_step) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const auto load = [&](int64_t i) {
    return *reinterpret_cast<const Stored*>(line + (order == nullptr ? i : at(*order, i)) * step);
  };
  Stored before = load(begin > 0 ? begin - 1 : 0);
  for (int64_t i = begin; i < end; ++i) {
    const Stored here = load(i);
    flags[i * flags_step] =
        std::is_same_v<T, bool> ? convert<bool>(here) != convert<bool>(before) : differs(here, before);
    before = here;
  }
}

template <class T>
bool slices_differ(const Box<1>& box, int64_t a, int64_t b) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const int64_t step = box.steps()[0];
  bool result = false;
  walk(box, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n && !result; ++i) {
      const Stored x = *reinterpret_cast<const Stored*>(p[0] + a + i * step);
      const Stored y = *reinterpret_cast<const Stored*>(p[0] + b + i * step);
      result = std::is_same_v<T, bool> ? convert<bool>(x) != convert<bool>(y) : differs(x, y);
    }
  });
  return result;
}

// ---- histograms

// Counts of `bins` cells, by ranges of the elements: count(begin, end, cells).
template <class Cell, class Count>
rl_status count_parts(int64_t elements, int64_t bins, Cell* result, const Count& count) {
  // Few elements for many bins are not worth counters of their own.
  const int64_t block = std::max({ceil_div(elements, kParts), 4 * kBlockElements, bins});
  const int64_t parts = ceil_div(elements, block);
  std::fill_n(result, bins, Cell(0));
  if (parts <= 1) {
    count(0, elements, result);
    return RL_OK;
  }
  Scratch<Cell> cells(parts * bins);
  if (!cells.ok()) return RL_MEMORY_ERROR;
  parallel_for(elements, block, [&](int64_t begin, int64_t end) {
    Cell* const own = cells.get() + begin / block * bins;
    std::fill_n(own, bins, Cell(0));
    count(begin, end, own);
  });
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t bin = 0; bin < bins; ++bin) result[bin] += cells[part * bins + bin];
  }
  return RL_OK;
}

template <class T>
rl_status histc(const rl_tensor& input, double low64, double high64, const rl_tensor& out) {
  using C = compute_type<T>;
  const int64_t bins = out.shape[0];
  // The bounds as numbers of the dtype.
  const C low = static_cast<C>(convert<T>(low64)), high = static_cast<C>(convert<T>(high64));
  const auto round = [](C x) { return static_cast<C>(convert<T>(x)); };
  const C count = round(static_cast<C>(bins)), width = round(high - low);
  Scratch<int64_t> counts(bins);
  if (!counts.ok()) return RL_MEMORY_ERROR;
  Box<1> box;
  box_of(input, box);
  RL_TRY(count_parts(box.count, bins, counts.get(), [&](int64_t begin, int64_t end, int64_t* cells) {
    walk(box, begin, end, [&](char* const* p, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const C value = static_cast<C>(*reinterpret_cast<const T*>(p[0] + i * box.steps()[0]));
        if (!(value >= low && value <= high)) continue;
        // Every step is rounded to the dtype, as PyTorch does it.
        const C scaled = round(round(value - low) * count) / width;
        const int64_t bin = static_cast<int64_t>(round(scaled));
        ++cells[std::min(bin, bins - 1)];
      }
    });
  }));
  for (int64_t bin = 0; bin < bins; ++bin)
    static_cast<T*>(out.data)[bin * out.strides[0]] = convert<T>(static_cast<double>(counts[bin]));
  return RL_OK;
}

template <class T>
struct Edges {
  const T* data;  // dense, n + 1 of them
  int64_t n;
  // The bin of a value, or -1.
  int64_t bin(T value, bool uniform) const {
    if (n < 1 || !(value >= data[0] && value <= data[n])) return -1;
    int64_t first = 0, last = n + 1;
    if (uniform) {
      // A guess, and a look at its neighbours.
      const int64_t guess = static_cast<int64_t>((value - data[0]) * static_cast<T>(n) / (data[n] - data[0]));
      first = std::max<int64_t>(0, std::min(guess, n) - 1);
      last = std::min(guess + 2, n + 1);
    }
    const int64_t found = std::upper_bound(data + first, data + last, value) - data - 1;
    return std::min(std::max<int64_t>(found, 0), n - 1);  // the last edge belongs to the last bin
  }
};

template <class T>
rl_status histogramdd(const rl_tensor& input, int32_t n, const rl_tensor* const* edge_tensors, const rl_tensor* weights,
                      bool uniform, const rl_tensor& out) {
  int64_t edge_count = 0, cells = 1;
  for (int32_t d = 0; d < n; ++d) {
    edge_count += edge_tensors[d]->shape[0];
    cells *= out.shape[d];
  }
  Scratch<T> edge_values(edge_count);
  Scratch<double> sums(cells);
  if (!edge_values.ok() || !sums.ok()) return RL_MEMORY_ERROR;
  Edges<T> edges[RL_MAX_DIMS];
  T* next = edge_values.get();
  for (int32_t d = 0; d < n; ++d) {
    const rl_tensor& from = *edge_tensors[d];
    edges[d] = {next, from.shape[0] - 1};
    for (int64_t i = 0; i < from.shape[0]; ++i) *next++ = static_cast<const T*>(from.data)[i * from.strides[0]];
  }
  const T* const values = static_cast<const T*>(input.data);
  RL_TRY(count_parts(input.shape[0], cells, sums.get(), [&](int64_t begin, int64_t end, double* own) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t cell = 0;
      for (int32_t d = 0; d < n && cell >= 0; ++d) {
        const int64_t bin = edges[d].bin(values[i * input.strides[0] + d * input.strides[1]], uniform);
        cell = bin < 0 ? -1 : cell * edges[d].n + bin;
      }
      if (cell < 0) continue;
      own[cell] +=
          weights == nullptr ? 1.0 : static_cast<double>(static_cast<const T*>(weights->data)[i * weights->strides[0]]);
    }
  }));
  Box<1> box;
  box_of(out, box);
  int64_t cell = 0;
  walk(box, [&](char* const* p, int64_t run) {
    for (int64_t i = 0; i < run; ++i) *reinterpret_cast<T*>(p[0] + i * box.steps()[0]) = static_cast<T>(sums[cell++]);
  });
  return RL_OK;
}

// Numbers of a vector of integers.
template <class I>
struct Numbers {
  const I* data;
  int64_t step, n;
  explicit Numbers(const rl_tensor& t) : data(static_cast<const I*>(t.data)), step(t.strides[0]), n(t.shape[0]) {}
  // A negative number becomes a large one.
  uint64_t operator[](int64_t i) const { return static_cast<uint64_t>(data[i * step]); }

  rl_status check(int64_t bins) const {
    for (int64_t i = 0; i < n; ++i) {
      if ((*this)[i] >= static_cast<uint64_t>(bins)) {
        return fail(RL_INDEX_ERROR, "index %lld is out of bounds for dimension 0 with size %lld",
                    static_cast<long long>(data[i * step]), static_cast<long long>(bins));
      }
    }
    return RL_OK;
  }
};

template <class I, class T>
rl_status weigh(const Numbers<I>& input, const rl_tensor& weights, const rl_tensor& out) {
  T* const sums = static_cast<T*>(out.data);
  const int64_t step = out.strides[0];
  RL_TRY(input.check(out.shape[0]));
  for (int64_t i = 0; i < out.shape[0]; ++i) sums[i * step] = 0;
  for (int64_t i = 0; i < input.n; ++i)
    sums[static_cast<int64_t>(input[i]) * step] += static_cast<const T*>(weights.data)[i * weights.strides[0]];
  return RL_OK;
}

template <class I>
rl_status bincount(const Numbers<I>& input, const rl_tensor& out) {
  const int64_t bins = out.shape[0];
  std::atomic<bool> outside{false};
  const auto count = [&](int64_t begin, int64_t end, int64_t* cells) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t value = input[i];
      if (value >= static_cast<uint64_t>(bins)) [[unlikely]] {
        outside.store(true, std::memory_order_relaxed);
        return;
      }
      ++cells[value];
    }
  };
  const bool dense = out.strides[0] == 1 || bins <= 1;
  Scratch<int64_t> own(dense ? 0 : bins);
  if (!own.ok()) return RL_MEMORY_ERROR;
  int64_t* const counts = dense ? static_cast<int64_t*>(out.data) : own.get();
  RL_TRY(count_parts(input.n, bins, counts, count));
  if (outside.load(std::memory_order_relaxed)) return input.check(bins);
  for (int64_t bin = 0; bin < bins && !dense; ++bin) at(out, bin) = counts[bin];
  return RL_OK;
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_run_flags(const rl_tensor* src, int32_t dim, const rl_tensor* order, const rl_tensor* flags) {
  RL_TRY(rl::refuse_complex32("unique", src->dtype));
  if (dim == -1) dim = 0;
  if (dim < 0 || dim >= src->ndim)
    return rl::fail(RL_VALUE_ERROR, "unique: no dimension %d in %s", dim, rl::shape_text(src));
  const int64_t n = src->shape[dim], item = rl::dtype_size(src->dtype);
  if (!rl::is_line(*flags, RL_BOOL, n) || (order != nullptr && !rl::is_line(*order, RL_INT64, n))) {
    return rl::fail(RL_VALUE_ERROR, "unique: expected bool flags and an int64 order of %lld elements",
                    static_cast<long long>(n));
  }
  if (order != nullptr) {
    rl::Box<1> order_box;
    rl::box_of(*order, order_box);
    RL_TRY(rl::check_range(order_box, 0, n, dim, RL_INDEX_ERROR));
  }
  rl::Box<1> box;  // one slice
  box.data[0] = static_cast<char*>(src->data);
  for (int d = 0; d < src->ndim; ++d) {
    if (d != dim) box.push(src->shape[d], {src->strides[d] * item});
  }
  box.finish();
  const int64_t step = src->strides[dim] * item;
  const auto offset = [&](int64_t i) { return (order == nullptr ? i : rl::at(*order, i)) * step; };
  uint8_t* const out = static_cast<uint8_t*>(flags->data);
  RL_DISPATCH_ALL(src->dtype, T, {
    const int64_t block = std::max<int64_t>(1, rl::kBlockElements / std::max<int64_t>(1, box.count));
    rl::parallel_for(n, block, [&](int64_t begin, int64_t end) {
      if (box.count == 1) {
        rl::flag_elements<T>(box.data[0], step, order, begin, end, out, flags->strides[0]);
        return;
      }
      for (int64_t i = std::max<int64_t>(begin, 1); i < end; ++i)
        out[i * flags->strides[0]] = rl::slices_differ<T>(box, offset(i - 1), offset(i));
    });
  });
  if (n > 0) out[0] = 1;
  return RL_OK;
}

rl_status rl_run_fill(const rl_tensor* flags, const rl_tensor* order, const rl_tensor* first, const rl_tensor* inverse,
                      const rl_tensor* lengths) {
  const int64_t n = flags->ndim == 1 ? flags->shape[0] : -1;
  if (!rl::is_line(*flags, RL_BOOL, -1) || (order != nullptr && !rl::is_line(*order, RL_INT64, n)) ||
      (inverse != nullptr && !rl::is_line(*inverse, RL_INT64, n))) {
    return rl::fail(RL_VALUE_ERROR,
                    "unique: expected bool flags in one dimension, and an int64 order and inverse of as many");
  }
  const uint8_t* const begins = static_cast<const uint8_t*>(flags->data);
  int64_t runs = 0;
  for (int64_t i = 0; i < n; ++i) runs += begins[i * flags->strides[0]] != 0;
  const rl_tensor* outs[2] = {first, lengths};
  for (const rl_tensor* out : outs) {
    if (out != nullptr && !rl::is_line(*out, RL_INT64, runs)) {
      return rl::fail(RL_VALUE_ERROR, "unique: expected int64 outputs of shape [%lld], got %s %s",
                      static_cast<long long>(runs), rl::dtype_text(out->dtype), rl::shape_text(out));
    }
  }
  if (order != nullptr) {
    rl::Box<1> order_box;
    rl::box_of(*order, order_box);
    RL_TRY(rl::check_range(order_box, 0, n, 0, RL_INDEX_ERROR));
  }
  int64_t run = -1, start = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t element = order == nullptr ? i : rl::at(*order, i);
    if (begins[i * flags->strides[0]] != 0 || i == 0) {
      if (lengths != nullptr && run >= 0) rl::at(*lengths, run) = i - start;
      // Flags that do not begin with a run are the caller's mistake; the first element begins one.
      if (run + 1 < runs) ++run;
      start = i;
      if (first != nullptr && run >= 0) rl::at(*first, run) = element;
    }
    if (inverse != nullptr) rl::at(*inverse, element) = run;
  }
  if (lengths != nullptr && run >= 0) rl::at(*lengths, run) = n - start;
  return RL_OK;
}

rl_status rl_bincount(const rl_tensor* input, const rl_tensor* weights, const rl_tensor* out) {
  const int dtype = weights == nullptr ? static_cast<int>(RL_INT64) : weights->dtype;
  if (input->dtype < RL_UINT8 || input->dtype > RL_INT64 || input->ndim != 1 || !rl::is_line(*out, dtype, -1)) {
    return rl::fail(RL_VALUE_ERROR, "bincount: expected integers and a %s output in one dimension, got %s %s, %s %s",
                    rl::dtype_text(dtype), rl::dtype_text(input->dtype), rl::shape_text(input),
                    rl::dtype_text(out->dtype), rl::shape_text(out));
  }
  if (weights != nullptr && (weights->ndim != 1 || weights->shape[0] != input->shape[0])) {
    return rl::fail(RL_RUNTIME_ERROR, "bincount: expected weights of input's shape %s, got %s", rl::shape_text(input),
                    rl::shape_text(weights));
  }
  if (weights != nullptr && dtype != RL_FLOAT32 && dtype != RL_FLOAT64)
    return rl::fail(RL_TYPE_ERROR, "bincount: expected weights of dtype float32 or float64, got %s",
                    rl::dtype_text(dtype));
  rl_status status = RL_OK;
  RL_DISPATCH_INTEGER(input->dtype, I, {
    const rl::Numbers<I> numbers(*input);
    status = weights == nullptr    ? rl::bincount<I>(numbers, *out)
             : dtype == RL_FLOAT32 ? rl::weigh<I, float>(numbers, *weights, *out)
                                   : rl::weigh<I, double>(numbers, *weights, *out);
  });
  return status;
}

rl_status rl_histc(const rl_tensor* input, double low, double high, const rl_tensor* out) {
  if (!rl::is_float_dtype(input->dtype) || out->dtype != input->dtype) {
    return rl::fail(RL_TYPE_ERROR, "histc: expected a float input and an output of its dtype, got %s and %s",
                    rl::dtype_text(input->dtype), rl::dtype_text(out->dtype));
  }
  if (out->ndim != 1 || out->shape[0] < 1)
    return rl::fail(RL_VALUE_ERROR, "histc: expected an output with bins, got shape %s", rl::shape_text(out));
  if (!(std::isfinite(low) && std::isfinite(high) && low < high))
    return rl::fail(RL_RUNTIME_ERROR, "histc: range of [%g, %g] is not finite or not ascending", low, high);
  rl_status status = RL_OK;
  RL_DISPATCH_FLOAT(input->dtype, T, { status = rl::histc<T>(*input, low, high, *out); });
  return status;
}

rl_status rl_histogramdd(const rl_tensor* input, int32_t n, const rl_tensor* const* edges, const rl_tensor* weights,
                         int uniform, const rl_tensor* out) {
  bool same = input->dtype == out->dtype && (weights == nullptr || weights->dtype == input->dtype);
  bool fits = n >= 1 && input->ndim == 2 && input->shape[1] == n && out->ndim == n &&
              (weights == nullptr || (weights->ndim == 1 && weights->shape[0] == input->shape[0]));
  for (int32_t d = 0; d < n && fits; ++d) {
    same = same && edges[d]->dtype == input->dtype;
    fits = edges[d]->ndim == 1 && edges[d]->shape[0] == out->shape[d] + 1;
  }
  if (!same || (input->dtype != RL_FLOAT32 && input->dtype != RL_FLOAT64))
    return rl::fail(RL_TYPE_ERROR, "histogramdd: expected all tensors of one dtype, float32 or float64, got %s",
                    rl::dtype_text(input->dtype));
  if (!fits) {
    return rl::fail(RL_VALUE_ERROR, "histogramdd: shapes do not fit: input %s, %d edges, output %s",
                    rl::shape_text(input), n, rl::shape_text(out));
  }
  return input->dtype == RL_FLOAT32 ? rl::histogramdd<float>(*input, n, edges, weights, uniform != 0, *out)
                                    : rl::histogramdd<double>(*input, n, edges, weights, uniform != 0, *out);
}

rl_status rl_repeat_interleave(const rl_tensor* repeats, const rl_tensor* out) {
  if (!rl::is_line(*repeats, RL_INT64, -1) || !rl::is_line(*out, RL_INT64, -1))
    return rl::fail(RL_VALUE_ERROR, "repeat_interleave: expected int64 repeats and output in one dimension");
  int64_t total = 0;
  for (int64_t i = 0; i < repeats->shape[0]; ++i) {
    if (rl::at(*repeats, i) < 0) return rl::fail(RL_RUNTIME_ERROR, "repeats can not be negative");
    if (__builtin_add_overflow(total, rl::at(*repeats, i), &total))
      return rl::fail(RL_RUNTIME_ERROR, "repeat_interleave: the sum of repeats is too large");
  }
  if (total != out->shape[0]) {
    return rl::fail(RL_RUNTIME_ERROR, "repeat_interleave: expected an output of %lld elements, got %lld",
                    static_cast<long long>(total), static_cast<long long>(out->shape[0]));
  }
  int64_t next = 0;
  for (int64_t i = 0; i < repeats->shape[0]; ++i) {
    for (int64_t k = rl::at(*repeats, i); k > 0; --k) rl::at(*out, next++) = i;
  }
  return RL_OK;
}

}  // extern "C"
