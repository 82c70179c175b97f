#include "cpu/index_rows.h"

#include "core/dtype.h"

namespace rl {
namespace {

template <class T>
void add_row(void* to, const void* from, int64_t n) {
  T* __restrict x = static_cast<T*>(to);
  const T* __restrict y = static_cast<const T*>(from);
  if constexpr (std::is_same_v<T, bool>) {
    uint8_t* __restrict x8 = static_cast<uint8_t*>(to);
    const uint8_t* __restrict y8 = static_cast<const uint8_t*>(from);
    for (int64_t i = 0; i < n; ++i) x8[i] = (x8[i] | y8[i]) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(static_cast<U>(x[i]) + static_cast<U>(y[i]));
  } else if constexpr (is_reduced_float_v<T>) {
    constexpr int64_t kTile = 256;
    float a[kTile], b[kTile];
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t size = n - i < kTile ? n - i : kTile;
      to_float(x + i, a, size);
      to_float(y + i, b, size);
      for (int64_t j = 0; j < size; ++j) a[j] += b[j];
      from_float(a, x + i, size);
    }
  } else if constexpr (is_complex_v<T>) {
    add_row<real_type<T>>(to, from, 2 * n);
  } else {
    for (int64_t i = 0; i < n; ++i) x[i] += y[i];
  }
}

// Four vectors of sums stay in registers while the rows go by.
template <class T>
void sum_rows(const char* base, const int64_t* offsets, int64_t n, int64_t size, T* out) {
  typedef T Vector __attribute__((vector_size(64), aligned(alignof(T)), may_alias));
  constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));
  int64_t j = 0;
  for (; j + 4 * kLanes <= size; j += 4 * kLanes) {
    Vector a = {}, b = {}, c = {}, d = {};
    for (int64_t i = 0; i < n; ++i) {
      const Vector* row = reinterpret_cast<const Vector*>(reinterpret_cast<const T*>(base + offsets[i]) + j);
      a += row[0];
      b += row[1];
      c += row[2];
      d += row[3];
    }
    Vector* const to = reinterpret_cast<Vector*>(out + j);
    to[0] = a;
    to[1] = b;
    to[2] = c;
    to[3] = d;
  }
  for (; j < size; ++j) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += reinterpret_cast<const T*>(base + offsets[i])[j];
    out[j] = sum;
  }
}

const RowTable table = {{add_row<bool>, add_row<uint8_t>, add_row<int8_t>, add_row<int16_t>, add_row<int32_t>,
                         add_row<int64_t>, add_row<half>, add_row<bfloat16>, add_row<float>, add_row<double>,
                         add_row<complex64>, add_row<complex128>, add_row<complex32>},
                        sum_rows<float>,
                        sum_rows<double>};

}  // namespace

const RowTable& RL_ISA_SYMBOL(row_table)() { return table; }

}  // namespace rl
