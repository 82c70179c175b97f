// Tiles for the reductions: dense copies in a working type. See reduce_kernels.h.
#include "cpu/reduce_simd.h"

#include "cpu/reduce_kernels.h"

namespace rl {
namespace {

template <class To, class From>
struct ConvertTo {
  using Out = To;
  static RL_INLINE void store(To* out, From x) { *out = convert<To>(x); }
};
template <class From>
struct TruthOf {
  using Out = int64_t;
  static RL_INLINE void store(int64_t* out, From x) { *out = convert<bool>(x); }
};
template <class From>
struct TruthByte {
  using Out = uint8_t;
  static RL_INLINE void store(uint8_t* out, From x) { *out = convert<bool>(x); }
};
template <class T>
struct MagnitudeOf {
  using Out = T;
  template <class From>
  static RL_INLINE void store(T* out, complex<From> value) {
    const auto x = convert<complex<T>>(value);
    if constexpr (std::is_same_v<T, float>) {
      const double re = static_cast<double>(x.re), im = static_cast<double>(x.im);
      *out = static_cast<float>(__builtin_sqrt(re * re + im * im));
    } else {
      *out = __builtin_hypot(x.re, x.im);
    }
  }
};
template <class From>
struct ComplexOf {
  using Out = complex<double>;
  static RL_INLINE void store(complex<double>* out, From x) { *out = convert<complex<double>>(x); }
};

// With fewer rows than this it is faster to write in order than to read in order.
constexpr int64_t kFewRows = 32;

template <class From, class Conversion>
void load_tile(void* tile, const void* data, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  using Out = typename Conversion::Out;
  Out* __restrict out = static_cast<Out*>(tile);
  const From* in = static_cast<const From*>(data);
  if (column_stride == 1) {
    if (row_stride == columns) {  // one long row
      columns *= rows;
      rows = 1;
    }
    for (int64_t r = 0; r < rows; ++r) {
      const From* __restrict row = in + r * row_stride;
      if constexpr (is_reduced_float_v<From> && std::is_same_v<Conversion, ConvertTo<float, From>>) {
        to_float(row, out + r * columns, columns);
      } else {
        for (int64_t j = 0; j < columns; ++j) Conversion::store(out + r * columns + j, row[j]);
      }
    }
  } else if (row_stride == 1 && rows > kFewRows) {
    for (int64_t j = 0; j < columns; ++j) {
      const From* __restrict column = in + j * column_stride;
      for (int64_t r = 0; r < rows; ++r) Conversion::store(out + r * columns + j, column[r]);
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const From* __restrict row = in + r * row_stride;
      for (int64_t j = 0; j < columns; ++j) Conversion::store(out + r * columns + j, row[j * column_stride]);
    }
  }
}

// float32 and, whose bits it leaves as they are, int32, without conversion. Short runs, which lie one after another,
// are transposed in registers.
void load_floats(void* tile, const void* data, int64_t rows, int64_t columns, int64_t row_stride,
                 int64_t column_stride) {
  if (row_stride != 1 || rows < 4 || rows > kFewRows || columns < 4) {
    load_tile<float, ConvertTo<float, float>>(tile, data, rows, columns, row_stride, column_stride);
    return;
  }
  typedef float Quad __attribute__((vector_size(16)));
  typedef int32_t Mask __attribute__((vector_size(16)));
  const float* in = static_cast<const float*>(data);
  float* out = static_cast<float*>(tile);
  // The last block of either direction overlaps the one before it.
  for (int64_t j = 0; j < columns; j += 4) {
    const int64_t column = j + 4 <= columns ? j : columns - 4;
    for (int64_t r = 0; r < rows; r += 4) {
      const int64_t row = r + 4 <= rows ? r : rows - 4;
      Quad q[4];
      for (int64_t k = 0; k < 4; ++k) std::memcpy(&q[k], in + (column + k) * column_stride + row, sizeof(Quad));
      const Quad a = __builtin_shuffle(q[0], q[1], Mask{0, 4, 1, 5}),
                 b = __builtin_shuffle(q[2], q[3], Mask{0, 4, 1, 5});
      const Quad c = __builtin_shuffle(q[0], q[1], Mask{2, 6, 3, 7}),
                 d = __builtin_shuffle(q[2], q[3], Mask{2, 6, 3, 7});
      q[0] = __builtin_shuffle(a, b, Mask{0, 1, 4, 5});
      q[1] = __builtin_shuffle(a, b, Mask{2, 3, 6, 7});
      q[2] = __builtin_shuffle(c, d, Mask{0, 1, 4, 5});
      q[3] = __builtin_shuffle(c, d, Mask{2, 3, 6, 7});
      for (int64_t k = 0; k < 4; ++k) std::memcpy(out + (row + k) * columns + column, &q[k], sizeof(Quad));
    }
  }
}

template <class From>
constexpr void fill_loads(ReduceLoadTable& table, int dtype) {
  table.load[dtype][kTileByte] = load_tile<From, TruthByte<From>>;
  table.load_truth[dtype] = load_tile<From, TruthOf<From>>;
  table.load_complex[dtype] = load_tile<From, ComplexOf<From>>;
  if constexpr (!is_complex_v<From>) {
    if constexpr (std::is_integral_v<From> && sizeof(From) <= 4)
      table.load[dtype][kTileInt32] = load_tile<From, ConvertTo<int32_t, From>>;
    if constexpr (std::is_integral_v<From> && std::is_unsigned_v<From>)
      table.load[dtype][kTileUint8] = load_tile<From, ConvertTo<uint8_t, From>>;
    table.load[dtype][kTileInt64] = load_tile<From, ConvertTo<int64_t, From>>;
    if constexpr (std::is_same_v<From, float>)
      table.load[dtype][kTileFloat] = load_floats;
    else
      table.load[dtype][kTileFloat] = load_tile<From, ConvertTo<float, From>>;
    table.load[dtype][kTileDouble] = load_tile<From, ConvertTo<double, From>>;
  }
}

constexpr ReduceLoadTable make_table() {
  ReduceLoadTable t{};
  fill_loads<bool>(t, RL_BOOL);
  fill_loads<uint8_t>(t, RL_UINT8);
  fill_loads<int8_t>(t, RL_INT8);
  fill_loads<int16_t>(t, RL_INT16);
  fill_loads<int32_t>(t, RL_INT32);
  t.load[RL_INT32][kTileInt32] = load_floats;
  fill_loads<int64_t>(t, RL_INT64);
  fill_loads<half>(t, RL_FLOAT16);
  fill_loads<bfloat16>(t, RL_BFLOAT16);
  fill_loads<float>(t, RL_FLOAT32);
  fill_loads<double>(t, RL_FLOAT64);
  fill_loads<complex64>(t, RL_COMPLEX64);
  fill_loads<complex128>(t, RL_COMPLEX128);
  fill_loads<complex32>(t, RL_COMPLEX32);
  t.load_magnitude[0] = load_tile<complex64, MagnitudeOf<float>>;
  t.load_magnitude[1] = load_tile<complex128, MagnitudeOf<double>>;
  t.load_magnitude[2] = load_tile<complex32, MagnitudeOf<float>>;
  return t;
}

constexpr ReduceLoadTable table = make_table();

}  // namespace

const ReduceLoadTable& RL_ISA_SYMBOL(reduce_load_table)() { return table; }

}  // namespace rl
