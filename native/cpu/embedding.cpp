// Embeddings: rows by index, their renormalisation and their gradient.
#include "rushlight/embedding.h"

#include <cmath>

#include "cpu/embedding_rows.h"
#include "cpu/index_engine.h"

namespace rl {

rl_status check_rows(const rl_tensor& indices, int64_t rows) {
  if (indices.dtype != RL_INT64)
    return fail(RL_TYPE_ERROR, "embedding: expected indices of dtype int64, got %s", dtype_text(indices.dtype));
  Box<1> box;
  box_of(indices, box);
  return check_range(box, 0, rows, 0, RL_INDEX_ERROR);
}

rl_status add_rows(const RowSource& source, const rl_tensor& out) {
  const int64_t rows = out.shape[0], size = out.shape[1], item = dtype_size(out.dtype);
  if (rows == 0 || size == 0) return RL_OK;
  // Each block of rows is one task's, which looks at all indices in order: many blocks only where rows are long.
  const int64_t work = source.count * size;
  const int64_t blocks = work < kBlockElements ? 1 : std::max<int64_t>(1, std::min({int64_t{16}, size / 4, rows}));
  return parallel_for(rows, ceil_div(rows, blocks), [&](int64_t begin, int64_t end) -> rl_status {
    const bool dense = out.strides[1] == 1;
    Scratch<char> line(size * item), sum(dense ? 0 : size * item);
    if (!line.ok() || !sum.ok()) return RL_MEMORY_ERROR;
    char* const data = static_cast<char*>(out.data);
    for (int64_t row = begin; row < end; ++row) {
      char* to = data + row * out.strides[0] * item;
      if (dense) {
        std::memset(to, 0, static_cast<size_t>(size * item));
      } else {
        for (int64_t j = 0; j < size; ++j) std::memset(to + j * out.strides[1] * item, 0, static_cast<size_t>(item));
      }
    }
    const auto add = row_table().add[out.dtype];
    for (int64_t i = 0; i < source.count; ++i) {
      const int64_t row = source.row(i);
      if (row < begin || row >= end) continue;
      const void* from = source.load(source, i, line.get());
      if (from == nullptr) continue;
      char* to = data + row * out.strides[0] * item;
      if (dense) {
        add(to, from, size);
        continue;
      }
      with_item_type(item, [&](auto type) {
        using T = decltype(type);
        T* const values = reinterpret_cast<T*>(sum.get());
        T* const strided = reinterpret_cast<T*>(to);
        for (int64_t j = 0; j < size; ++j) values[j] = strided[j * out.strides[1]];
        add(values, from, size);
        for (int64_t j = 0; j < size; ++j) strided[j * out.strides[1]] = values[j];
      });
    }
    return RL_OK;
  });
}

rl_status count_rows(const rl_tensor& indices, int64_t* counts, int64_t rows) {
  std::fill_n(counts, rows, 0);
  Box<1> box;
  box_of(indices, box);
  walk(box, [&](char* const* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) ++counts[*reinterpret_cast<const int64_t*>(p[0] + i * box.steps()[0])];
  });
  return RL_OK;
}

namespace {

// ---- renorm

template <class T>
void renorm_row(T* row, int64_t size, int64_t step, double max_norm, double order) {
  double sum = 0;
  for (int64_t j = 0; j < size; ++j) {
    const double magnitude = std::abs(static_cast<double>(static_cast<compute_type<T>>(row[j * step])));
    if (std::isinf(order)) {
      sum = magnitude > sum || std::isnan(magnitude) ? magnitude : sum;
    } else if (order == 2) {
      sum += magnitude * magnitude;
    } else if (order == 1) {
      sum += magnitude;
    } else if (order == 0) {
      sum += magnitude != 0;
    } else {
      sum += std::pow(magnitude, order);
    }
  }
  const double norm = std::isinf(order) || order == 1 || order == 0 ? sum
                      : order == 2                                  ? std::sqrt(sum)
                                                                    : std::pow(sum, 1 / order);
  if (!(norm > max_norm)) return;
  const auto scale = static_cast<compute_type<T>>(max_norm / (norm + 1e-7));
  for (int64_t j = 0; j < size; ++j) row[j * step] = T(static_cast<compute_type<T>>(row[j * step]) * scale);
}

template <class T>
void renorm(const rl_tensor& weight, const int64_t* rows, int64_t n, double max_norm, double order) {
  const int64_t size = weight.shape[1];
  parallel_for(n, std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, size)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      renorm_row(static_cast<T*>(weight.data) + rows[i] * weight.strides[0], size, weight.strides[1], max_norm, order);
  });
}

// ---- gradient

// grad's rows as they come, scaled by frequency.
struct GradRows : RowSource {
  const rl_tensor* grad;
  Box<1> rows;  // one element for each row of grad
  const int64_t* counts;
  int64_t size;
};

template <class T>
const void* load_grad(const RowSource& base, int64_t i, void* line) {
  const GradRows& source = static_cast<const GradRows&>(base);
  const rl_tensor& grad = *source.grad;
  const int64_t step = source.size > 1 ? grad.strides[grad.ndim - 1] : 1;
  // Rows of a dense gradient are evenly spaced; others are found by walking.
  const T* from = nullptr;
  if (source.rows.ndim == 1) {
    from = reinterpret_cast<const T*>(source.rows.data[0] + i * source.rows.steps()[0]);
  } else {
    walk(source.rows, i, i + 1, [&](char* const* p, int64_t) { from = reinterpret_cast<const T*>(p[0]); });
  }
  if (step == 1 && source.counts == nullptr) return from;
  T* const out = static_cast<T*>(line);
  if (source.counts == nullptr) {
    for (int64_t j = 0; j < source.size; ++j) out[j] = from[j * step];
    return out;
  }
  const real_type<compute_type<T>> scale =
      real_type<compute_type<T>>(1) / static_cast<real_type<compute_type<T>>>(source.counts[source.row(i)]);
  for (int64_t j = 0; j < source.size; ++j)
    out[j] = T(static_cast<compute_type<T>>(from[j * step]) * compute_type<T>(scale));
  return out;
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_embedding(const rl_tensor* weight, const rl_tensor* indices, const rl_tensor* out) {
  if (weight->ndim != 2)
    return rl::fail(RL_RUNTIME_ERROR, "embedding: expected a weight of 2 dimensions, got shape %s",
                    rl::shape_text(weight));
  rl::Indexed plan;
  const int32_t dim = 0;
  RL_TRY(rl::plan_indexed("embedding", *weight, 1, &indices, &dim, 0, *out, false, &plan));
  rl_status status = RL_OK;
  rl::with_item_type(rl::dtype_size(weight->dtype), [&](auto item) {
    using T = decltype(item);
    status = rl::run_indexed<T>(plan, rl::Fetch<T>{});
  });
  return status;
}

rl_status rl_embedding_renorm(const rl_tensor* weight, const rl_tensor* indices, double max_norm, double norm_type) {
  if (weight->ndim != 2 || !rl::is_float_dtype(weight->dtype)) {
    return rl::fail(RL_RUNTIME_ERROR,
                    "embedding_renorm: expected a weight of 2 dimensions and a float dtype, got %s %s",
                    rl::dtype_text(weight->dtype), rl::shape_text(weight));
  }
  RL_TRY(rl::check_rows(*indices, weight->shape[0]));
  const int64_t rows = weight->shape[0];
  // Every row once.
  rl::Scratch<uint8_t> seen(rows);
  rl::Scratch<int64_t> named(std::min(rows, rl::element_count(*indices)));
  if (!seen.ok() || !named.ok()) return RL_MEMORY_ERROR;
  std::fill_n(seen.get(), rows, 0);
  int64_t n = 0;
  rl::Box<1> box;
  rl::box_of(*indices, box);
  rl::walk(box, [&](char* const* p, int64_t run) {
    for (int64_t i = 0; i < run; ++i) {
      const int64_t row = *reinterpret_cast<const int64_t*>(p[0] + i * box.steps()[0]);
      if (seen[row] == 0) named[n++] = row;
      seen[row] = 1;
    }
  });
  RL_DISPATCH_FLOAT(weight->dtype, T, { rl::renorm<T>(*weight, named.get(), n, max_norm, norm_type); });
  return RL_OK;
}

rl_status rl_embedding_backward(const rl_tensor* grad, const rl_tensor* indices, int64_t padding_idx,
                                int scale_grad_by_freq, const rl_tensor* out) {
  bool fits = out->ndim == 2 && grad->ndim == indices->ndim + 1 && grad->shape[indices->ndim] == out->shape[1];
  for (int d = 0; fits && d < indices->ndim; ++d) fits = grad->shape[d] == indices->shape[d];
  if (!fits || grad->dtype != out->dtype || out->dtype < RL_FLOAT16) {
    return rl::fail(RL_VALUE_ERROR, "embedding_backward: %s %s at indices %s does not fit %s %s",
                    rl::dtype_text(grad->dtype), rl::shape_text(grad), rl::shape_text(indices),
                    rl::dtype_text(out->dtype), rl::shape_text(out));
  }
  const int64_t rows = out->shape[0], item = rl::dtype_size(out->dtype);
  RL_TRY(rl::check_rows(*indices, rows));
  rl::Scratch<int64_t> counts(scale_grad_by_freq ? rows : 0);
  const int64_t count = rl::element_count(*indices);
  rl::Scratch<int64_t> flat(count);
  if (!counts.ok() || !flat.ok()) return RL_MEMORY_ERROR;
  rl::copy_indices(*indices, flat.get());
  if (scale_grad_by_freq) RL_TRY(rl::count_rows(*indices, counts.get(), rows));
  if (padding_idx >= 0) std::replace(flat.get(), flat.get() + count, padding_idx, int64_t{-1});
  rl::GradRows source;
  source.count = count;
  source.rows_of = flat.get();
  source.grad = grad;
  source.counts = scale_grad_by_freq ? counts.get() : nullptr;
  source.size = out->shape[1];
  source.rows.data[0] = static_cast<char*>(grad->data);
  for (int d = 0; d < indices->ndim; ++d) source.rows.push(grad->shape[d], {grad->strides[d] * item});
  source.rows.finish();
  RL_TRY(rl::refuse_complex32("embedding_backward", out->dtype));
  RL_DISPATCH_FLOAT_COMPLEX(out->dtype, T, { source.load = rl::load_grad<T>; });
  return rl::add_rows(source, *out);
}

}  // extern "C"
