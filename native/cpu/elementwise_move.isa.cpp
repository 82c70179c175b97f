// Conversions between dtypes, strided gathers and scatters, fills and transpositions of runs of elements.
#include <cstring>

#include "core/dtype.h"
#include "cpu/elementwise.h"

namespace rl {
namespace {

template <class To, class From>
void convert_run(void* to, const void* from, int64_t n) {
  if constexpr (std::is_same_v<To, From> || (sizeof(To) == 1 && sizeof(From) == 1 && !std::is_same_v<To, bool>)) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(To));
  } else if constexpr (std::is_same_v<To, float> && is_reduced_float_v<From>) {
    to_float(static_cast<const From*>(from), static_cast<float*>(to), n);
  } else if constexpr (std::is_same_v<From, float> && is_reduced_float_v<To>) {
    from_float(static_cast<const float*>(from), static_cast<To*>(to), n);
  } else if constexpr (is_reduced_float_v<To> || is_reduced_float_v<From>) {
    // Through float, as every conversion of a 16-bit float is defined.
    float middle[256];
    for (int64_t start = 0; start < n; start += 256) {
      const int64_t count = n - start < 256 ? n - start : 256;
      convert_run<float, From>(middle, static_cast<const From*>(from) + start, count);
      convert_run<To, float>(static_cast<To*>(to) + start, middle, count);
    }
  } else if constexpr (std::is_same_v<To, complex64> && std::is_same_v<From, complex32>) {
    to_float(static_cast<const half*>(from), static_cast<float*>(to), 2 * n);
  } else if constexpr (std::is_same_v<To, complex32> && std::is_same_v<From, complex64>) {
    from_float(static_cast<const float*>(from), static_cast<half*>(to), 2 * n);
  } else {
    To* const target = static_cast<To*>(to);
    const From* const source = static_cast<const From*>(from);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) target[i] = convert<To>(source[i]);
  }
}

struct Bytes16 {
  uint64_t low, high;
};

template <class T>
void gather(void* to, const void* from, int64_t stride, int64_t n) {
  T* const target = static_cast<T*>(to);
  const char* source = static_cast<const char*>(from);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, source += 4 * stride) {
    const T a = *reinterpret_cast<const T*>(source), b = *reinterpret_cast<const T*>(source + stride);
    const T c = *reinterpret_cast<const T*>(source + 2 * stride), d = *reinterpret_cast<const T*>(source + 3 * stride);
    target[i] = a, target[i + 1] = b, target[i + 2] = c, target[i + 3] = d;
  }
  for (; i < n; ++i, source += stride) target[i] = *reinterpret_cast<const T*>(source);
}

template <class T>
void scatter(void* to, int64_t stride, const void* from, int64_t n) {
  char* target = static_cast<char*>(to);
  const T* const source = static_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i, target += stride) *reinterpret_cast<T*>(target) = source[i];
}

template <class T>
void fill(void* to, const void* element, int64_t n) {
  T* const target = static_cast<T*>(to);
  T value;
  std::memcpy(&value, element, sizeof value);
  for (int64_t i = 0; i < n; ++i) target[i] = value;
}

template <class T>
RL_INLINE void transpose_block(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t rows,
                               int64_t columns) {
  for (int64_t column = 0; column < columns; ++column) {
    const T* const source = reinterpret_cast<const T*>(from + column * from_stride);
    char* target = to + column * static_cast<int64_t>(sizeof(T));
    for (int64_t row = 0; row < rows; ++row, target += to_stride) *reinterpret_cast<T*>(target) = source[row];
  }
}

#if defined(__SSE2__)
typedef float Float4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int Int4 __attribute__((vector_size(16)));

RL_INLINE void transpose_4x4(char* to, int64_t to_stride, const char* from, int64_t from_stride) {
  const Float4 a = *reinterpret_cast<const Float4*>(from), b = *reinterpret_cast<const Float4*>(from + from_stride);
  const Float4 c = *reinterpret_cast<const Float4*>(from + 2 * from_stride);
  const Float4 d = *reinterpret_cast<const Float4*>(from + 3 * from_stride);
  const Float4 ab_low = __builtin_shuffle(a, b, Int4{0, 4, 1, 5}), ab_high = __builtin_shuffle(a, b, Int4{2, 6, 3, 7});
  const Float4 cd_low = __builtin_shuffle(c, d, Int4{0, 4, 1, 5}), cd_high = __builtin_shuffle(c, d, Int4{2, 6, 3, 7});
  *reinterpret_cast<Float4*>(to) = __builtin_shuffle(ab_low, cd_low, Int4{0, 1, 4, 5});
  *reinterpret_cast<Float4*>(to + to_stride) = __builtin_shuffle(ab_low, cd_low, Int4{2, 3, 6, 7});
  *reinterpret_cast<Float4*>(to + 2 * to_stride) = __builtin_shuffle(ab_high, cd_high, Int4{0, 1, 4, 5});
  *reinterpret_cast<Float4*>(to + 3 * to_stride) = __builtin_shuffle(ab_high, cd_high, Int4{2, 3, 6, 7});
}
#endif

template <class T>
void transpose(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t rows, int64_t columns) {
  char* const target = static_cast<char*>(to);
  const char* const source = static_cast<const char*>(from);
#if defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    const int64_t whole_rows = rows & ~int64_t{3}, whole_columns = columns & ~int64_t{3};
    for (int64_t column = 0; column < whole_columns; column += 4)
      for (int64_t row = 0; row < whole_rows; row += 4)
        transpose_4x4(target + row * to_stride + column * 4, to_stride, source + row * 4 + column * from_stride,
                      from_stride);
    if (whole_rows < rows)
      transpose_block<T>(target + whole_rows * to_stride, to_stride, source + whole_rows * 4, from_stride,
                         rows - whole_rows, whole_columns);
    if (whole_columns < columns)
      transpose_block<T>(target + whole_columns * 4, to_stride, source + whole_columns * from_stride, from_stride, rows,
                         columns - whole_columns);
    return;
  }
#endif
  transpose_block<T>(target, to_stride, source, from_stride, rows, columns);
}

#define RL_CONVERT_FROM(To, From) convert_run<To, From>
#define RL_CONVERT_ROW(To)                                                                         \
  {RL_CONVERT_FROM(To, bool),     RL_CONVERT_FROM(To, uint8_t),   RL_CONVERT_FROM(To, int8_t),     \
   RL_CONVERT_FROM(To, int16_t),  RL_CONVERT_FROM(To, int32_t),   RL_CONVERT_FROM(To, int64_t),    \
   RL_CONVERT_FROM(To, half),     RL_CONVERT_FROM(To, bfloat16),  RL_CONVERT_FROM(To, float),      \
   RL_CONVERT_FROM(To, double),   RL_CONVERT_FROM(To, complex64), RL_CONVERT_FROM(To, complex128), \
   RL_CONVERT_FROM(To, complex32)}
#define RL_BY_SIZE(name) {name<uint8_t>, name<uint16_t>, name<uint32_t>, name<uint64_t>, name<Bytes16>}

const MoveTable table = {
    {RL_CONVERT_ROW(bool), RL_CONVERT_ROW(uint8_t), RL_CONVERT_ROW(int8_t), RL_CONVERT_ROW(int16_t),
     RL_CONVERT_ROW(int32_t), RL_CONVERT_ROW(int64_t), RL_CONVERT_ROW(half), RL_CONVERT_ROW(bfloat16),
     RL_CONVERT_ROW(float), RL_CONVERT_ROW(double), RL_CONVERT_ROW(complex64), RL_CONVERT_ROW(complex128),
     RL_CONVERT_ROW(complex32)},
    RL_BY_SIZE(gather),
    RL_BY_SIZE(scatter),
    RL_BY_SIZE(fill),
    RL_BY_SIZE(transpose),
};

}  // namespace

const MoveTable& RL_ISA_SYMBOL(move_table)() { return table; }

}  // namespace rl
