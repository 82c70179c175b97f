// Convolutions: entry points, and the division of their work into units. Units depend on shapes alone, and each writes
// its own outputs, so results do not depend on the number of threads.
#include <algorithm>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/conv_kernels.h"
#include "cpu/conv_plan.h"
#include "cpu/matmul_strided.h"
#include "rushlight/conv.h"

namespace rl {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

enum class Compute { kFloat, kDouble, kInteger };

Compute compute_of(int dtype) {
  switch (dtype) {
    case RL_FLOAT16:
    case RL_BFLOAT16:
    case RL_FLOAT32:
    case RL_COMPLEX32:
    case RL_COMPLEX64:
      return Compute::kFloat;
    case RL_FLOAT64:
    case RL_COMPLEX128:
      return Compute::kDouble;
    default:
      return Compute::kInteger;
  }
}

const ConvFunctions& functions_for(int dtype) {
  const Compute compute = compute_of(dtype);
  if (compute == Compute::kInteger) return conv_integer_functions();
  return compute == Compute::kFloat ? conv_table().f32 : conv_table().f64;
}

const ConvGramFunctions& gram_functions_for(int dtype) {
  const Compute compute = compute_of(dtype);
  if (compute == Compute::kInteger) return conv_integer_gram_functions();
  return compute == Compute::kFloat ? conv_table().gram_f32 : conv_table().gram_f64;
}

int64_t compute_bytes(int dtype) { return compute_of(dtype) == Compute::kFloat ? 4 : 8; }

bool is_compute_dtype(int dtype) { return dtype == RL_FLOAT32 || dtype == RL_FLOAT64 || dtype == RL_INT64; }

// Whether the elements of a channel follow each other in memory, in order, counting from dimension 0.
bool packed(const ConvArray& array) {
  int64_t expected = 1;
  for (int d = 2; d >= 0; --d) {
    if (array.size[d] != 1 && array.stride[d] != expected) return false;
    expected *= array.size[d];
  }
  return true;
}

rl_status check_overlap(const char* name, const rl_tensor* out, std::initializer_list<const rl_tensor*> operands) {
  for (const rl_tensor* operand : operands) {
    if (operand && overlap(operand, out))
      return fail(RL_VALUE_ERROR, "%s: the output shares memory with an operand; expected memory of its own", name);
  }
  return RL_OK;
}

// The bias in compute type, complex numbers as two.
template <class T>
void convert_bias(const rl_tensor* bias, T* to) {
  const int64_t parts = is_complex_dtype(bias->dtype) ? 2 : 1, stride = bias->strides[0] * parts;
  RL_DISPATCH_REAL(real_dtype(bias->dtype), S, {
    const S* const from = static_cast<const S*>(bias->data);
    for (int64_t i = 0; i < bias->shape[0]; ++i) {
      for (int64_t part = 0; part < parts; ++part) to[i * parts + part] = convert<T>(from[i * stride + part]);
    }
  });
}

rl_status check_bias(const char* name, const rl_tensor* bias, int64_t channels, int dtype) {
  if (!bias) return RL_OK;
  if (bias->ndim != 1 || bias->shape[0] != channels)
    return fail(RL_VALUE_ERROR, "%s: expected a bias of shape [%lld], got %s", name, static_cast<long long>(channels),
                shape_text(bias));
  if (bias->dtype != dtype)
    return fail(RL_TYPE_ERROR, "%s: expected a bias of dtype %s, got %s", name, dtype_text(dtype),
                dtype_text(bias->dtype));
  return RL_OK;
}

// Bias memory for the passes of one call.
class Bias {
 public:
  Bias(const rl_tensor* bias, int dtype)
      : memory_(bias ? bias->shape[0] * 2 * compute_bytes(dtype) : 0), given_(bias != nullptr) {
    if (!bias || !memory_) return;
    switch (compute_of(dtype)) {
      case Compute::kFloat:
        convert_bias(bias, reinterpret_cast<float*>(memory_.get()));
        break;
      case Compute::kDouble:
        convert_bias(bias, reinterpret_cast<double*>(memory_.get()));
        break;
      default:
        convert_bias(bias, reinterpret_cast<uint64_t*>(memory_.get()));
    }
  }
  bool ok() const { return static_cast<bool>(memory_); }
  const void* data() const { return given_ ? memory_.get() : nullptr; }

 private:
  Scratch<char> memory_;
  bool given_;
};

constexpr int64_t kUnitWork = 200'000;  // multiplications that pay for a thread
constexpr int64_t kWantedUnits = 16;

// Runs one pass: packs its weights, then computes bands of outputs.
rl_status run_pass(ConvPass& pass, const ConvFunctions& functions, const ConvWeight& weight, int64_t images,
                   int64_t element_bytes) {
  const int64_t outputs = pass.dim[0].outputs * pass.dim[1].outputs * pass.dim[2].outputs;
  if (outputs == 0 || images == 0 || pass.target_channels == 0) return RL_OK;
  const int64_t terms = pass.source_channels * pass.taps;
  const int64_t panel = functions.panel;

  Scratch<char> packed_weights(pass.groups * pass.target_channels * terms * element_bytes);
  if (!packed_weights) return RL_MEMORY_ERROR;
  pass.weights = packed_weights.get();
  if (terms > 0) {
    // Packing goes by whole panels.
    const int64_t rows = divide_up(std::max<int64_t>(1, 50'000 / terms), panel) * panel;
    const int64_t blocks = divide_up(pass.target_channels, rows);
    parallel_for(pass.groups * blocks, std::max<int64_t>(1, 50'000 / (terms * std::min(rows, pass.target_channels))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % blocks * rows;
                     functions.pack_weights(pass, weight, packed_weights.get(), i / blocks, first,
                                            std::min(first + rows, pass.target_channels));
                   }
                 });
  }

  const int64_t bands = divide_up(pass.dim[0].outputs, pass.band);
  const int64_t image_units = divide_up(images, pass.together);
  const int64_t band_work =
      pass.target_channels * std::max<int64_t>(terms, 1) * (outputs / bands + 1) * std::min(pass.together, images);
  // Several small groups make a unit; few large ones are split by channels.
  const int64_t unit_groups = std::clamp<int64_t>(kUnitWork / (band_work + 1), 1, pass.groups);
  const int64_t group_units = divide_up(pass.groups, unit_groups);
  int64_t unit_channels = pass.target_channels;
  int64_t units = image_units * bands * group_units;
  if (units < kWantedUnits && unit_groups == 1) {
    const int64_t parts = std::min(divide_up(kWantedUnits, units), std::max<int64_t>(1, band_work / (5 * kUnitWork)));
    unit_channels = divide_up(std::max<int64_t>(divide_up(pass.target_channels, parts),
                                                std::min<int64_t>(32, pass.target_channels)),
                              panel) *
                    panel;
  }
  const int64_t channel_units = divide_up(pass.target_channels, unit_channels);
  units *= channel_units;
  const int64_t grain = std::max<int64_t>(1, kUnitWork / (band_work * unit_groups / channel_units + 1));
  return parallel_for(units, grain, [&](int64_t begin, int64_t end) -> rl_status {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t rest = unit;
      const int64_t first = rest % channel_units * unit_channels;
      rest /= channel_units;
      const int64_t group = rest % group_units * unit_groups;
      rest /= group_units;
      const int64_t row = rest % bands * pass.band;
      const int64_t image = rest / bands * pass.together;
      RL_TRY(functions.run(pass, image, std::min(image + pass.together, images), group,
                           std::min(group + unit_groups, pass.groups), row,
                           std::min(row + pass.band, pass.dim[0].outputs), first,
                           std::min(first + unit_channels, pass.target_channels)));
    }
    return RL_OK;
  });
}

}  // namespace
}  // namespace rl

rl_status rl_conv(const rl_tensor* input, const rl_tensor* weight, const rl_tensor* bias, const rl_conv_params* params,
                  rl_tensor* out) {
  using namespace rl;
  ConvShape shape;
  RL_TRY(conv_shape("conv", input, weight, out, params, shape));
  RL_TRY(check_bias("conv", bias, weight->shape[0], out->dtype));
  RL_TRY(check_overlap("conv", out, {input, weight, bias}));
  const int64_t bytes = compute_bytes(out->dtype);
  ConvPassMemory memory(shape);
  const Bias converted(bias, out->dtype);
  if (!memory.ok() || !converted.ok()) return RL_MEMORY_ERROR;

  ConvPass pass;
  pass.source = conv_array(input);
  pass.target = conv_array(out);
  pass.source_channels = shape.in_channels * pass.source.parts;
  pass.target_channels = shape.out_channels * pass.source.parts;
  plan_forward(shape, bytes, memory, pass);
  plan_weight(weight, memory, pass);
  pass.bias = converted.data();
  pass.direct = is_compute_dtype(out->dtype) && packed(pass.target) && pass.dim[1].plane == pass.dim[1].outputs &&
                pass.dim[2].plane == pass.dim[2].outputs;
  return run_pass(pass, functions_for(out->dtype), conv_weight(weight, shape, true), shape.images, bytes);
}

rl_status rl_conv_grad_input(const rl_tensor* grad_out, const rl_tensor* weight, const rl_tensor* bias,
                             const rl_conv_params* params, rl_tensor* grad_input) {
  using namespace rl;
  ConvShape shape;
  RL_TRY(conv_shape("conv_grad_input", grad_input, weight, grad_out, params, shape));
  RL_TRY(check_bias("conv_grad_input", bias, grad_input->shape[1], grad_input->dtype));
  RL_TRY(check_overlap("conv_grad_input", grad_input, {grad_out, weight, bias}));
  const int64_t bytes = compute_bytes(grad_input->dtype);
  ConvPassMemory memory(shape);
  const Bias converted(bias, grad_input->dtype);
  if (!memory.ok() || !converted.ok()) return RL_MEMORY_ERROR;

  ConvPass pass;
  pass.source = conv_array(grad_out);
  pass.target = conv_array(grad_input);
  pass.source_channels = shape.out_channels * pass.source.parts;
  pass.target_channels = shape.in_channels * pass.source.parts;
  const ConvFunctions& functions = functions_for(grad_input->dtype);
  const ConvWeight from = conv_weight(weight, shape, false);
  // Phases beyond the input's size have no elements.
  int64_t phases[3];
  for (int d = 0; d < 3; ++d) phases[d] = shape.stride[d];
  for (int64_t a = 0; a < phases[0]; ++a) {
    for (int64_t b = 0; b < phases[1]; ++b) {
      for (int64_t c = 0; c < phases[2]; ++c) {
        plan_transposed(shape, {a, b, c}, bytes, memory, pass);
        plan_weight(weight, memory, pass);
        pass.bias = converted.data();
        pass.direct = is_compute_dtype(grad_input->dtype) && packed(pass.target) &&
                      phases[0] * phases[1] * phases[2] == 1 && pass.dim[1].plane == pass.dim[1].outputs &&
                      pass.dim[2].plane == pass.dim[2].outputs;
        RL_TRY(run_pass(pass, functions, from, shape.images, bytes));
      }
    }
  }
  return RL_OK;
}

namespace rl {
namespace {

// Adds up the image groups' sums and writes the weight's gradient.
template <class T>
void write_gradient(const ConvGram& gram, int64_t image_groups, const rl_tensor* grad_weight) {
  const ConvPass& pass = gram.pass;
  const ConvArray to = conv_array(grad_weight);
  const int64_t parts = to.parts;
  const int64_t row = pass.source_channels * pass.taps;
  const int64_t total = pass.groups * pass.target_channels * row;
  const T* const sums = static_cast<const T*>(gram.sums);
  const auto sum_of = [&](int64_t index) {
    T sum = sums[index];
    for (int64_t i = 1; i < image_groups; ++i) sum += sums[i * total + index];
    return sum;
  };
  const int64_t rows = pass.groups * pass.target_channels / parts;
  const auto write = [&]<class S>(S) {
    parallel_for(rows, std::max<int64_t>(1, 20'000 / (row * image_groups + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t c = 0; c < pass.source_channels / parts; ++c) {
          S* const target = static_cast<S*>(to.data) + o * to.image_stride + c * to.channel_stride;
          int64_t index = o * parts * row + c * parts * pass.taps;
          for (int64_t t0 = 0; t0 < to.size[0]; ++t0) {
            for (int64_t t1 = 0; t1 < to.size[1]; ++t1) {
              for (int64_t t2 = 0; t2 < to.size[2]; ++t2, ++index) {
                S* const element = target + t0 * to.stride[0] + t1 * to.stride[1] + t2 * to.stride[2];
                if (parts == 1) {
                  *element = convert<S>(sum_of(index));
                } else {
                  element[0] = convert<S>(static_cast<T>(sum_of(index) - sum_of(index + row + pass.taps)));
                  element[1] = convert<S>(static_cast<T>(sum_of(index + pass.taps) + sum_of(index + row)));
                }
              }
            }
          }
        }
      }
    });
  };
  RL_DISPATCH_REAL(to.dtype, S, { write(S{}); });
}

}  // namespace
}  // namespace rl

rl_status rl_conv_grad_weight(const rl_tensor* grad_out, const rl_tensor* input, const rl_conv_params* params,
                              rl_tensor* grad_weight) {
  using namespace rl;
  ConvShape shape;
  RL_TRY(conv_shape("conv_grad_weight", input, grad_weight, grad_out, params, shape));
  RL_TRY(check_overlap("conv_grad_weight", grad_weight, {grad_out, input}));
  const int64_t bytes = compute_bytes(grad_weight->dtype);
  ConvPassMemory memory(shape);
  if (!memory.ok()) return RL_MEMORY_ERROR;

  ConvGram gram;
  ConvPass& pass = gram.pass;
  pass.source = conv_array(input);
  pass.target = conv_array(grad_out);
  pass.source_channels = shape.in_channels * pass.source.parts;
  pass.target_channels = shape.out_channels * pass.source.parts;
  const ConvGramFunctions& functions = gram_functions_for(grad_weight->dtype);
  bool outer;
  plan_gram(shape, bytes, functions.lanes, memory, gram, outer);
  pass.direct = is_compute_dtype(grad_out->dtype) && packed(pass.target);
  const int64_t row_units = divide_up(pass.target_channels, gram.row_block);
  const int64_t channel_units = divide_up(pass.source_channels, gram.channel_block);
  const int64_t outputs = shape.out[0] * shape.out[1] * shape.out[2];
  const int64_t total = pass.groups * pass.target_channels * pass.source_channels * pass.taps;
  if (total == 0) return RL_OK;
  // With few units, images are divided too, and the partial sums added in order.
  const int64_t plain_units = pass.groups * row_units * channel_units;
  const double image_work = static_cast<double>(total) * static_cast<double>(outputs);
  int64_t image_groups = 1;
  if (plain_units < kWantedUnits && shape.images > 1) {
    const double worth = image_work * static_cast<double>(shape.images) / (5.0 * kUnitWork);
    image_groups = std::clamp<int64_t>(
        std::min<int64_t>(divide_up(kWantedUnits, plain_units), static_cast<int64_t>(std::min(worth, 1e6))), 1,
        shape.images);
  }
  gram.image_group = std::max<int64_t>(1, divide_up(shape.images, image_groups));
  image_groups = std::max<int64_t>(1, divide_up(shape.images, gram.image_group));
  Scratch<char> sums(total * image_groups * bytes);
  if (!sums) return RL_MEMORY_ERROR;
  gram.sums = sums.get();
  const int64_t units = image_groups * plain_units;
  const double unit_work = image_work * static_cast<double>(shape.images) / static_cast<double>(units);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(kUnitWork) / (unit_work + 1)));
  RL_TRY(parallel_for(units, grain, [&](int64_t begin, int64_t end) -> rl_status {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t rest = unit;
      const int64_t channel = rest % channel_units * gram.channel_block;
      rest /= channel_units;
      const int64_t row = rest % row_units * gram.row_block;
      rest /= row_units;
      RL_TRY((outer ? functions.outer : functions.gram)(gram, rest / pass.groups, rest % pass.groups, row, channel));
    }
    return RL_OK;
  }));
  switch (compute_of(grad_weight->dtype)) {
    case Compute::kFloat:
      write_gradient<float>(gram, image_groups, grad_weight);
      break;
    case Compute::kDouble:
      write_gradient<double>(gram, image_groups, grad_weight);
      break;
    default:
      write_gradient<uint64_t>(gram, image_groups, grad_weight);
  }
  return RL_OK;
}

rl_status rl_conv_grad_bias(const rl_tensor* grad_out, rl_tensor* grad_bias) {
  using namespace rl;
  if (grad_out->ndim < 3 || grad_out->ndim > 5 || grad_bias->ndim != 1 || grad_bias->shape[0] != grad_out->shape[1])
    return fail(RL_VALUE_ERROR, "conv_grad_bias: expected grad_out [N, O, spatial...] and grad_bias [O], got %s and %s",
                shape_text(grad_out), shape_text(grad_bias));
  if (grad_out->dtype != grad_bias->dtype || !is_valid_dtype(grad_bias->dtype) || grad_bias->dtype == RL_BOOL)
    return fail(RL_TYPE_ERROR, "conv_grad_bias: expected one numeric dtype, got %s and %s", dtype_text(grad_out->dtype),
                dtype_text(grad_bias->dtype));
  RL_TRY(check_overlap("conv_grad_bias", grad_bias, {grad_out}));
  const ConvArray from = conv_array(grad_out);
  const ConvGramFunctions& functions = gram_functions_for(grad_bias->dtype);
  const int64_t work = grad_out->shape[0] * from.size[0] * from.size[1] * from.size[2];
  parallel_for(grad_bias->shape[0], std::max<int64_t>(1, 50'000 / (work + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      char* const to = static_cast<char*>(grad_bias->data) + o * grad_bias->strides[0] * dtype_size(grad_bias->dtype);
      for (int part = 0; part < from.parts; ++part)
        functions.sum_channel(from, grad_out->shape[0], o * from.parts + part, to + part * dtype_size(from.dtype));
    }
  });
  return RL_OK;
}
