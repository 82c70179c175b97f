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

const RowTable table = {{add_row<bool>, add_row<uint8_t>, add_row<int8_t>, add_row<int16_t>, add_row<int32_t>,
                         add_row<int64_t>, add_row<half>, add_row<bfloat16>, add_row<float>, add_row<double>,
                         add_row<complex64>, add_row<complex128>}};

}  // namespace

const RowTable& RL_ISA_SYMBOL(row_table)() { return table; }

}  // namespace rl
