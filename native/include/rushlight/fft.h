/* rushlight/fft.h: discrete Fourier transforms over some dimensions, of any size.
 *
 * Along a dimension X[k] = scale * sum over j of x[j] exp(-2 pi i j k / n), with +2 pi i when `inverse` is set; scale
 * counts once for all `dims`, which are `count` >= 1 different ones. complex64 and complex128 (float32 and float64 for
 * real signals); in and out have one precision. Any strides; an output must not overlap itself. Errors grow with log n:
 * sizes are split into small factors (J. W. Cooley and J. W. Tukey, 1965), those with a large prime become a
 * convolution (L. I. Bluestein, 1970). Results do not depend on the number of threads.
 */
#ifndef RUSHLIGHT_FFT_H
#define RUSHLIGHT_FFT_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Complex to complex; out has the shape of in, and may be in itself. */
RL_API rl_status rl_fft(const rl_tensor* in, const int* dims, int count, int inverse, double scale,
                        const rl_tensor* out);
/* Real to complex along the last of dims, of which out has the n / 2 + 1 values that are not mirror images; then along
 * the others. */
RL_API rl_status rl_fft_real(const rl_tensor* in, const int* dims, int count, double scale, const rl_tensor* out);
/* The inverse of that: complex along all of dims but the last, then to real along that one, of size n in out and of
 * size n / 2 + 1 in `in`. Imaginary parts that a real signal cannot have are not looked at. */
RL_API rl_status rl_fft_to_real(const rl_tensor* in, const int* dims, int count, double scale, const rl_tensor* out);
/* Tables of sizes used are kept, the latest ones, up to this many bytes (32 MiB at first). */
RL_API void rl_fft_set_cache_limit(int64_t bytes);
RL_API int64_t rl_fft_cache_bytes(void);

#ifdef __cplusplus
}
#endif
#endif
