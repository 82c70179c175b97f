/* rushlight/random.h: random numbers. Part of rushlight.h.
 *
 * A generator is a Mersenne Twister (MT19937) with the state, the draws and the state's byte layout of PyTorch's CPU
 * generator: the same seed gives the same numbers. Every function locks its generator while it draws; a NULL generator
 * means rl_default_generator(). Results do not depend on the number of threads.
 *
 * `out` may have any strides, but no two of its elements may share memory by a stride of 0. Elements are drawn in the
 * order of memory, as PyTorch draws them: dims are sorted by stride, so for a dense tensor (contiguous, transposed or
 * permuted) the order is that of addresses. Nothing is drawn for an empty `out`, but arguments are checked.
 *
 * Statuses: RL_TYPE_ERROR for a dtype that the function does not take (PyTorch: NotImplementedError, or RuntimeError
 * for rl_random_exponential, rl_random_cauchy and the random integers of a complex dtype), RL_RUNTIME_ERROR for a
 * parameter out of its range, an operand that does not broadcast and an out whose elements share memory (PyTorch:
 * RuntimeError), RL_VALUE_ERROR for descriptors that no tensor operation would pass.
 */
#ifndef RUSHLIGHT_RANDOM_H
#define RUSHLIGHT_RANDOM_H

#include "../rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- generators */

typedef struct rl_generator rl_generator;

/* Bytes of a generator's state, which PyTorch reads and writes too (torch.get_rng_state). */
#define RL_GENERATOR_STATE_BYTES 5056
/* The seed of a generator that was given none. */
#define RL_GENERATOR_DEFAULT_SEED 67280421310721ull

RL_API rl_generator* rl_generator_create(uint64_t seed);   /* NULL when memory cannot be had (see rl_last_error) */
RL_API void rl_generator_destroy(rl_generator* generator); /* NULL is ignored; never the default generator */
RL_API rl_generator* rl_generator_clone(const rl_generator* generator);
/* The process's generator, seeded from the operating system at its first use. */
RL_API rl_generator* rl_default_generator(void);

/* Starts the sequence of `seed`; forgets cached normal numbers. */
RL_API void rl_generator_set_seed(rl_generator* generator, uint64_t seed);
RL_API uint64_t rl_generator_initial_seed(const rl_generator* generator);
/* Seeds from the operating system and says with what. */
RL_API rl_status rl_generator_seed(rl_generator* generator, uint64_t* seed);
/* bytes must be RL_GENERATOR_STATE_BYTES. A state that no generator can have is refused and changes nothing. */
RL_API rl_status rl_generator_get_state(const rl_generator* generator, void* state, size_t bytes);
RL_API rl_status rl_generator_set_state(rl_generator* generator, const void* state, size_t bytes);
/* The next 32 bits; the next two times 32 bits, the first of them the high half. */
RL_API uint32_t rl_generator_random32(rl_generator* generator);
RL_API uint64_t rl_generator_random64(rl_generator* generator);

/* ---- continuous distributions: float16, bfloat16, float32, float64 */

/* uniform_(from, to): [from, to). Complex too (real and imaginary part each). */
RL_API rl_status rl_random_uniform(rl_generator* generator, double from, double to, const rl_tensor* out);
/* normal_(mean, std). Complex too: std is that of the complex number, so each part has std / sqrt(2). */
RL_API rl_status rl_random_normal(rl_generator* generator, double mean, double std, const rl_tensor* out);
RL_API rl_status rl_random_log_normal(rl_generator* generator, double mean, double std, const rl_tensor* out);
RL_API rl_status rl_random_exponential(rl_generator* generator, double lambda, const rl_tensor* out);
RL_API rl_status rl_random_cauchy(rl_generator* generator, double median, double sigma, const rl_tensor* out);
/* _standard_gamma(alpha): float32, float64; alpha has out's dtype and shape. */
RL_API rl_status rl_random_standard_gamma(rl_generator* generator, const rl_tensor* alpha, const rl_tensor* out);

/* ---- discrete distributions */

/* random_(): [0, max] of an integer dtype, [0, 2^digits] of a float dtype (digits: 11, 8, 24, 53), {0, 1} for bool. */
RL_API rl_status rl_random_integers(rl_generator* generator, const rl_tensor* out);
/* random_(from, to), randint(from, to): [from, to). Any dtype but complex. */
RL_API rl_status rl_random_integers_between(rl_generator* generator, int64_t from, int64_t to, const rl_tensor* out);
/* random_(from, None): from `from` to the dtype's largest (2^digits for floats); every int64 when from is INT64_MIN. */
RL_API rl_status rl_random_integers_from(rl_generator* generator, int64_t from, const rl_tensor* out);
/* bernoulli_(p): 1 with probability p, else 0. Any dtype but complex. */
RL_API rl_status rl_random_bernoulli(rl_generator* generator, double p, const rl_tensor* out);
/* bernoulli_(p) with a probability for each element: p has a float dtype and broadcasts to out. When a probability is
 * outside [0, 1] the call fails, part of out is written and the numbers up to there are drawn. */
RL_API rl_status rl_random_bernoulli_tensor(rl_generator* generator, const rl_tensor* p, const rl_tensor* out);
/* The factors of dropout with probability p in [0, 1): bernoulli_(1 - p) divided by 1 - p, in out's float dtype. */
RL_API rl_status rl_random_dropout_mask(rl_generator* generator, double p, const rl_tensor* out);
/* geometric_(p): any dtype but bool and complex. */
RL_API rl_status rl_random_geometric(rl_generator* generator, double p, const rl_tensor* out);
/* poisson(rate): a float dtype, rate has out's dtype and broadcasts to out. */
RL_API rl_status rl_random_poisson(rl_generator* generator, const rl_tensor* rate, const rl_tensor* out);
/* binomial(count, prob): float32, float64, one dtype for all; count and prob broadcast to out. */
RL_API rl_status rl_random_binomial(rl_generator* generator, const rl_tensor* count, const rl_tensor* prob,
                                    const rl_tensor* out);
/* multinomial(weights, samples, replacement=True): weights [classes] or [rows, classes] of a float dtype, out
 * [samples] or [rows, samples] of int64. Without replacement, and for one sample, PyTorch divides the weights by
 * exponential numbers and takes the largest: see docs/design/0004-random.md. */
RL_API rl_status rl_random_multinomial(rl_generator* generator, const rl_tensor* weights, const rl_tensor* out);
/* randperm(n): out has shape [n]; any dtype but bool and complex. */
RL_API rl_status rl_random_permutation(rl_generator* generator, const rl_tensor* out);
/* rrelu(input, lower, upper, training=True): where input <= 0 noise is uniform in [lower, upper), elsewhere 1; out is
 * input * noise. A float dtype, one for all three, equal shapes; drawn in row-major order. out may be input itself. */
RL_API rl_status rl_random_rrelu(rl_generator* generator, double lower, double upper, const rl_tensor* input,
                                 const rl_tensor* noise, const rl_tensor* out);

#ifdef __cplusplus
}
#endif
#endif
