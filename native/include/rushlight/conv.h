/* rushlight/conv.h: convolutions over 1, 2 or 3 spatial dimensions. Part of rushlight.h.
 *
 * input [N, C, spatial...], weight [O, C / groups, kernel...], out [N, O, spatial...], all of one dtype (any but bool;
 * float16 and bfloat16 are computed in float32 and rounded once, integers wrap around), with any strides:
 *
 *   out[n, o, y] = bias[o] + sum over c, k of weight[o, c, k] * input[n, g * C / groups + c, y * stride + k * dilation
 * - padding]
 *
 * where g is the group of o, and input counts as 0 outside its bounds. Each spatial size of out is at most
 * (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1.
 */
#ifndef RUSHLIGHT_CONV_H
#define RUSHLIGHT_CONV_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first ndim - 2 entries of each array are used. */
typedef struct rl_conv_params {
  int64_t stride[3], padding[3], dilation[3];
  int64_t groups;
} rl_conv_params;

/* bias [O] or NULL. out may not overlap the operands (nor may any output below). */
RL_API rl_status rl_conv(const rl_tensor* input, const rl_tensor* weight, const rl_tensor* bias,
                         const rl_conv_params* params, rl_tensor* out);

/* The transpose of rl_conv as a linear map of its input: grad_input [N, C, spatial...] from grad_out [N, O,
 * spatial...]. It is rl_conv's gradient (for complex numbers, of the conjugated weight), and with bias [C] a transposed
 * convolution: grad_out is then its input, and grad_input its output. bias may be NULL. */
RL_API rl_status rl_conv_grad_input(const rl_tensor* grad_out, const rl_tensor* weight, const rl_tensor* bias,
                                    const rl_conv_params* params, rl_tensor* grad_input);

/* The same for the weight: grad_weight[o, c, k] = sum over n, y of grad_out[n, o, y] * input[n, ..c, y * stride + ...].
 * For complex numbers pass the conjugated input. */
RL_API rl_status rl_conv_grad_weight(const rl_tensor* grad_out, const rl_tensor* input, const rl_conv_params* params,
                                     rl_tensor* grad_weight);

/* grad_bias[o] = sum over n, y of grad_out[n, o, y] */
RL_API rl_status rl_conv_grad_bias(const rl_tensor* grad_out, rl_tensor* grad_bias);

#ifdef __cplusplus
}
#endif
#endif
