// Bags of embeddings: sums, means and maxima of rows, and their gradients.
#include <limits>

#include "cpu/embedding_rows.h"
#include "cpu/index_values.h"
#include "rushlight/embedding.h"

namespace rl {
namespace {

// The bags, with their indices dense.
class Bags {
 public:
  Bags(const rl_tensor& indices, const rl_tensor& offsets, bool include_last)
      : count(offsets.shape[0] - (include_last ? 1 : 0)),
        total(indices.shape[0]),
        indices_(total),
        starts_(std::max<int64_t>(count, 0) + 1) {
    if (!ok()) return;
    copy_indices(indices, indices_.get());
    for (int64_t b = 0; b < offsets.shape[0]; ++b)
      starts_[b] = static_cast<const int64_t*>(offsets.data)[b * offsets.strides[0]];
    if (!include_last) starts_[count] = total;
  }
  bool ok() const { return indices_.ok() && starts_.ok(); }
  int64_t begin(int64_t bag) const { return starts_[bag]; }
  int64_t end(int64_t bag) const { return starts_[bag + 1]; }
  int64_t index(int64_t i) const { return indices_[i]; }
  int64_t* indices() const { return indices_.get(); }

  const int64_t count, total;

 private:
  Scratch<int64_t> indices_, starts_;
};

rl_status check_bags(const rl_tensor& indices, const rl_tensor& offsets, bool include_last, int64_t rows) {
  if (indices.ndim != 1 || offsets.ndim != 1 || offsets.dtype != RL_INT64) {
    return fail(RL_VALUE_ERROR, "embedding_bag: expected int64 indices and offsets of 1 dimension, got %s and %s %s",
                shape_text(&indices), dtype_text(offsets.dtype), shape_text(&offsets));
  }
  if (include_last && offsets.shape[0] < 1)
    return fail(RL_RUNTIME_ERROR, "embedding_bag: include_last_offset needs at least 1 offset");
  RL_TRY(check_rows(indices, rows));
  int64_t before = 0;
  for (int64_t b = 0; b < offsets.shape[0]; ++b) {
    const int64_t offset = static_cast<const int64_t*>(offsets.data)[b * offsets.strides[0]];
    if (b == 0 && offset != 0) {
      return fail(RL_RUNTIME_ERROR,
                  "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                  "However, got %lld",
                  static_cast<long long>(offset));
    }
    if (offset < before || offset > indices.shape[0]) {
      return fail(
          RL_RUNTIME_ERROR, "embedding_bag: offsets must not fall nor exceed the %lld indices; got %lld after %lld",
          static_cast<long long>(indices.shape[0]), static_cast<long long>(offset), static_cast<long long>(before));
    }
    before = offset;
  }
  return RL_OK;
}

struct BagWork {
  const rl_tensor& weight;
  const Bags& bags;
  rl_bag_mode mode;
  const rl_tensor* factors;
  int64_t padding;
  const rl_tensor& out;
  const rl_tensor* bag_size;
  const rl_tensor* max_indices;
};

template <class T>
compute_type<T> factor_of(const rl_tensor* factors, int64_t i) {
  using C = compute_type<T>;
  return factors == nullptr ? C(1) : static_cast<C>(static_cast<const T*>(factors->data)[i * factors->strides[0]]);
}

// One bag into sums, and places for maxima; returns how many rows took part. `rows` is room for as many offsets.
template <class T>
int64_t fill_bag(const BagWork& work, int64_t bag, compute_type<T>* sums, int64_t* places, int64_t* rows) {
  using C = compute_type<T>;
  const Bags& bags = work.bags;
  const int64_t size = work.out.shape[1], step = work.weight.strides[1];
  const int64_t row_bytes = work.weight.strides[0] * static_cast<int64_t>(sizeof(T));
  const char* const base = static_cast<const char*>(work.weight.data);
  int64_t taken = 0;
  if constexpr (std::is_same_v<T, C>) {
    if (work.mode != RL_BAG_MAX && work.factors == nullptr && step == 1) {
      for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
        rows[taken] = bags.index(i) * row_bytes;
        taken += bags.index(i) != work.padding;
      }
      if constexpr (std::is_same_v<T, float>) {
        row_table().sum_float(base, rows, taken, size, sums);
      } else {
        row_table().sum_double(base, rows, taken, size, sums);
      }
      return taken;
    }
  }
  std::fill_n(sums, size, C(0));
  if (work.mode == RL_BAG_MAX) std::fill_n(places, size, 0);
  for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
    const int64_t row = bags.index(i);
    if (row == work.padding) continue;
    const T* const from = reinterpret_cast<const T*>(base + row * row_bytes);
    if (work.mode == RL_BAG_MAX) {
      for (int64_t j = 0; j < size; ++j) {
        const C value = static_cast<C>(from[j * step]);
        if (taken == 0 || value > sums[j]) {
          sums[j] = value;
          places[j] = row;
        }
      }
    } else {
      const C factor = factor_of<T>(work.factors, i);
      for (int64_t j = 0; j < size; ++j) sums[j] += factor * static_cast<C>(from[j * step]);
    }
    ++taken;
  }
  return taken;
}

template <class T>
rl_status fill_bags(const BagWork& work) {
  using C = compute_type<T>;
  const Bags& bags = work.bags;
  const int64_t size = work.out.shape[1], average = bags.count > 0 ? bags.total / bags.count + 1 : 1;
  const int64_t block = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, size * average));
  return parallel_for(bags.count, block, [&](int64_t begin, int64_t end) -> rl_status {
    Scratch<C> sums(size);
    Scratch<int64_t> places(work.mode == RL_BAG_MAX ? size : 0), rows(bags.end(end - 1) - bags.begin(begin) + 1);
    if (!sums.ok() || !places.ok() || !rows.ok()) return RL_MEMORY_ERROR;
    for (int64_t b = begin; b < end; ++b) {
      const int64_t taken = fill_bag<T>(work, b, sums.get(), places.get(), rows.get());
      T* const to = static_cast<T*>(work.out.data) + b * work.out.strides[0];
      const C divisor = work.mode == RL_BAG_MEAN && taken > 0 ? static_cast<C>(taken) : C(1);
      for (int64_t j = 0; j < size; ++j) to[j * work.out.strides[1]] = T(sums[j] / divisor);
      if (work.bag_size != nullptr) static_cast<int64_t*>(work.bag_size->data)[b * work.bag_size->strides[0]] = taken;
      if (work.max_indices != nullptr) {
        int64_t* const places_out = static_cast<int64_t*>(work.max_indices->data) + b * work.max_indices->strides[0];
        for (int64_t j = 0; j < size; ++j)
          places_out[j * work.max_indices->strides[1]] = work.mode == RL_BAG_MAX ? places[j] : 0;
      }
    }
    return RL_OK;
  });
}

// One row of gradient for each index of each bag.
struct BagRows : RowSource {
  const rl_tensor* grad;
  const rl_tensor* factors;
  const int64_t* bag_of;
  const int64_t* bag_size;  // for means, else null
  const int64_t* counts;    // for scaling by frequency, else null
  int64_t size;
};

template <class T>
const void* load_bag(const RowSource& base, int64_t i, void* line) {
  using C = compute_type<T>;
  const BagRows& source = static_cast<const BagRows&>(base);
  const int64_t bag = source.bag_of[i];
  C scale = factor_of<T>(source.factors, i);
  if (source.bag_size != nullptr) scale /= static_cast<C>(source.bag_size[bag]);
  if (source.counts != nullptr) scale /= static_cast<C>(source.counts[source.row(i)]);
  const T* const from = static_cast<const T*>(source.grad->data) + bag * source.grad->strides[0];
  const int64_t step = source.grad->strides[1];
  T* const out = static_cast<T*>(line);
  for (int64_t j = 0; j < source.size; ++j) out[j] = T(static_cast<C>(from[j * step]) * scale);
  return out;
}

// Each element of grad goes where its maximum was.
template <class T>
void scatter_maxima(const rl_tensor& grad, const Bags& bags, int64_t padding, const rl_tensor& max_indices,
                    const rl_tensor& out) {
  T* const to = static_cast<T*>(out.data);
  const int64_t size = out.shape[1];
  parallel_for(size, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < out.shape[0]; ++row) {
      for (int64_t j = begin; j < end; ++j) to[row * out.strides[0] + j * out.strides[1]] = T(0);
    }
    for (int64_t b = 0; b < bags.count; ++b) {
      bool any = false;
      for (int64_t i = bags.begin(b); i < bags.end(b) && !any; ++i) any = bags.index(i) != padding;
      if (!any) continue;
      for (int64_t j = begin; j < end; ++j) {
        const int64_t row =
            static_cast<const int64_t*>(max_indices.data)[b * max_indices.strides[0] + j * max_indices.strides[1]];
        T& sum = to[row * out.strides[0] + j * out.strides[1]];
        sum = wrapping_add(sum, static_cast<const T*>(grad.data)[b * grad.strides[0] + j * grad.strides[1]]);
      }
    }
  });
}

rl_status check_matrix(const rl_tensor& t, int dtype, int64_t rows, int64_t columns, const char* what) {
  if (t.ndim == 2 && t.dtype == dtype && t.shape[0] == rows && t.shape[1] == columns) return RL_OK;
  return fail(RL_VALUE_ERROR, "embedding_bag: expected %s of dtype %s and shape [%lld, %lld], got %s %s", what,
              dtype_text(dtype), static_cast<long long>(rows), static_cast<long long>(columns), dtype_text(t.dtype),
              shape_text(&t));
}

rl_status check_factors(const rl_tensor* factors, int dtype, rl_bag_mode mode, int64_t n) {
  if (factors == nullptr) return RL_OK;
  if (mode != RL_BAG_SUM) return fail(RL_RUNTIME_ERROR, "embedding_bag: per_sample_weights are for mode='sum' alone");
  if (factors->ndim != 1 || factors->shape[0] != n || factors->dtype != dtype) {
    return fail(RL_RUNTIME_ERROR, "embedding_bag: expected per_sample_weights of dtype %s and shape [%lld], got %s %s",
                dtype_text(dtype), static_cast<long long>(n), dtype_text(factors->dtype), shape_text(factors));
  }
  return RL_OK;
}

rl_status check_float(const rl_tensor& t) {
  if (is_float_dtype(t.dtype) && t.ndim == 2) return RL_OK;
  return fail(RL_RUNTIME_ERROR, "embedding_bag: expected a float tensor of 2 dimensions, got %s %s",
              dtype_text(t.dtype), shape_text(&t));
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_embedding_bag(const rl_tensor* weight, const rl_tensor* indices, const rl_tensor* offsets,
                           rl_bag_mode mode, int include_last_offset, const rl_tensor* per_sample_weights,
                           int64_t padding_idx, const rl_tensor* out, const rl_tensor* bag_size,
                           const rl_tensor* max_indices) {
  RL_TRY(rl::check_float(*weight));
  RL_TRY(rl::check_bags(*indices, *offsets, include_last_offset != 0, weight->shape[0]));
  RL_TRY(rl::check_factors(per_sample_weights, weight->dtype, mode, indices->shape[0]));
  const rl::Bags bags(*indices, *offsets, include_last_offset != 0);
  if (!bags.ok()) return RL_MEMORY_ERROR;
  RL_TRY(rl::check_matrix(*out, weight->dtype, bags.count, weight->shape[1], "an output"));
  if (max_indices != nullptr)
    RL_TRY(rl::check_matrix(*max_indices, RL_INT64, bags.count, weight->shape[1], "max_indices"));
  if (bag_size != nullptr && (bag_size->ndim != 1 || bag_size->dtype != RL_INT64 || bag_size->shape[0] != bags.count)) {
    return rl::fail(RL_VALUE_ERROR, "embedding_bag: expected an int64 bag_size of shape [%lld], got %s %s",
                    static_cast<long long>(bags.count), rl::dtype_text(bag_size->dtype), rl::shape_text(bag_size));
  }
  const rl::BagWork work{*weight, bags, mode, per_sample_weights, padding_idx, *out, bag_size, max_indices};
  rl_status status = RL_OK;
  RL_DISPATCH_FLOAT(weight->dtype, T, { status = rl::fill_bags<T>(work); });
  return status;
}

rl_status rl_embedding_bag_backward(const rl_tensor* grad, const rl_tensor* indices, const rl_tensor* offsets,
                                    rl_bag_mode mode, int include_last_offset, const rl_tensor* per_sample_weights,
                                    int64_t padding_idx, int scale_grad_by_freq, const rl_tensor* max_indices,
                                    const rl_tensor* out) {
  RL_TRY(rl::check_float(*out));
  const int64_t rows = out->shape[0], size = out->shape[1];
  RL_TRY(rl::check_bags(*indices, *offsets, include_last_offset != 0, rows));
  RL_TRY(rl::check_factors(per_sample_weights, out->dtype, mode, indices->shape[0]));
  const rl::Bags bags(*indices, *offsets, include_last_offset != 0);
  if (!bags.ok()) return RL_MEMORY_ERROR;
  RL_TRY(rl::check_matrix(*grad, out->dtype, bags.count, size, "a gradient"));
  if (mode == RL_BAG_MAX) {
    if (max_indices == nullptr)
      return rl::fail(RL_VALUE_ERROR, "embedding_bag: the gradient of mode='max' needs max_indices");
    RL_TRY(rl::check_matrix(*max_indices, RL_INT64, bags.count, size, "max_indices"));
    if (rows == 0 || size == 0) return RL_OK;
    RL_TRY(rl::check_rows(*max_indices, rows));
    RL_DISPATCH_FLOAT(out->dtype, T, { rl::scatter_maxima<T>(*grad, bags, padding_idx, *max_indices, *out); });
    return RL_OK;
  }
  rl::Scratch<int64_t> bag_of(bags.total), sizes(mode == RL_BAG_MEAN ? bags.count : 0);
  rl::Scratch<int64_t> counts(scale_grad_by_freq ? rows : 0), rows_of(bags.total);
  if (!bag_of.ok() || !sizes.ok() || !counts.ok() || !rows_of.ok()) return RL_MEMORY_ERROR;
  // Indices behind the last offset are in no bag.
  std::fill_n(rows_of.get(), bags.total, -1);
  std::fill_n(bag_of.get(), bags.total, 0);
  for (int64_t b = 0; b < bags.count; ++b) {
    int64_t taken = 0;
    for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
      bag_of[i] = b;
      if (bags.index(i) == padding_idx) continue;
      rows_of[i] = bags.index(i);
      ++taken;
    }
    if (mode == RL_BAG_MEAN) sizes[b] = taken;
  }
  if (scale_grad_by_freq) RL_TRY(rl::count_rows(*indices, counts.get(), rows));
  rl::BagRows source;
  source.count = bags.total;
  source.rows_of = rows_of.get();
  source.grad = grad;
  source.factors = per_sample_weights;
  source.bag_of = bag_of.get();
  source.bag_size = mode == RL_BAG_MEAN ? sizes.get() : nullptr;
  source.counts = scale_grad_by_freq ? counts.get() : nullptr;
  source.size = size;
  RL_DISPATCH_FLOAT(out->dtype, T, { source.load = rl::load_bag<T>; });
  return rl::add_rows(source, *out);
}

rl_status rl_embedding_bag_weights_backward(const rl_tensor* grad, const rl_tensor* weight, const rl_tensor* indices,
                                            const rl_tensor* offsets, int include_last_offset, int64_t padding_idx,
                                            const rl_tensor* out) {
  RL_TRY(rl::check_float(*weight));
  RL_TRY(rl::check_bags(*indices, *offsets, include_last_offset != 0, weight->shape[0]));
  RL_TRY(rl::check_factors(out, weight->dtype, RL_BAG_SUM, indices->shape[0]));
  const rl::Bags bags(*indices, *offsets, include_last_offset != 0);
  if (!bags.ok()) return RL_MEMORY_ERROR;
  RL_TRY(rl::check_matrix(*grad, weight->dtype, bags.count, weight->shape[1], "a gradient"));
  const int64_t size = weight->shape[1];
  RL_DISPATCH_FLOAT(weight->dtype, T, {
    using C = rl::compute_type<T>;
    T* const to = static_cast<T*>(out->data);
    for (int64_t i = 0; i < bags.total; ++i) to[i * out->strides[0]] = T(C(0));
    rl::parallel_for(bags.count, std::max<int64_t>(1, rl::kBlockElements / std::max<int64_t>(1, size)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t b = begin; b < end; ++b) {
                         const T* const g = static_cast<const T*>(grad->data) + b * grad->strides[0];
                         for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
                           if (bags.index(i) == padding_idx) continue;
                           const T* const w = static_cast<const T*>(weight->data) + bags.index(i) * weight->strides[0];
                           C sum = C(0);
                           for (int64_t j = 0; j < size; ++j)
                             sum += static_cast<C>(g[j * grad->strides[1]]) * static_cast<C>(w[j * weight->strides[1]]);
                           to[i * out->strides[0]] = T(sum);
                         }
                       }
                     });
  });
  return RL_OK;
}

}  // extern "C"
