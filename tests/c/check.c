/* The kernel library from C99, seeing nothing but its header. Prints what fails; exit status 0 when nothing does.
 * Usage: check [BLAS library] */
#include <rushlight.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int condition, const char* text, int line) {
  if (condition) return;
  ++failures;
  printf("check.c:%d: %s; last error: %s\n", line, text, rl_last_error());
}
#define EXPECT(condition) expect((condition) ? 1 : 0, #condition, __LINE__)

static rl_tensor tensor(void* data, rl_dtype dtype, int ndim, const int64_t* shape, const int64_t* strides) {
  rl_tensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.shape = shape;
  t.strides = strides;
  t.ndim = ndim;
  t.dtype = (uint8_t)dtype;
  return t;
}

static void check_library(void) {
  static const size_t sizes[RL_DTYPE_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  int i;
  EXPECT(strlen(rl_version()) >= 5);
  EXPECT(strcmp(rl_cpu_level(), "default") == 0 || strcmp(rl_cpu_level(), "avx2") == 0 ||
         strcmp(rl_cpu_level(), "avx512") == 0 || strcmp(rl_cpu_level(), "amx") == 0 ||
         strcmp(rl_cpu_level(), "neon") == 0);
  for (i = 0; i < RL_DTYPE_COUNT; ++i) EXPECT(rl_dtype_size((rl_dtype)i) == sizes[i]);
  EXPECT(strcmp(rl_dtype_name(RL_BFLOAT16), "bfloat16") == 0);
  EXPECT(rl_dtype_size((rl_dtype)99) == 0);
}

static void check_memory(void) {
  rl_memory_stats before, during, after;
  void* block;
  void* empty;
  rl_memory_get_stats(&before);
  block = rl_allocate(1000);
  empty = rl_allocate(0);
  EXPECT(block != NULL && empty != NULL && block != empty);
  EXPECT((uintptr_t)block % 64 == 0 && (uintptr_t)empty % 64 == 0);
  memset(block, 1, 1000);
  rl_memory_get_stats(&during);
  EXPECT(during.allocated_bytes >= before.allocated_bytes + 1000);
  EXPECT(during.allocated_blocks == before.allocated_blocks + 2);
  rl_deallocate(block);
  rl_deallocate(empty);
  rl_deallocate(NULL);
  rl_memory_get_stats(&after);
  EXPECT(after.allocated_bytes == before.allocated_bytes);
  EXPECT(rl_allocate((size_t)-1) == NULL);
  EXPECT(strstr(rl_last_error(), "18446744073709551615") != NULL);
}

typedef struct {
  int64_t count, block;
  unsigned char* seen;
} cover;

static void cover_body(void* context, int64_t begin, int64_t end) {
  cover* c = (cover*)context;
  int64_t i;
  int good = begin % c->block == 0 && (end - begin == c->block || end == c->count);
  for (i = begin; i < end; ++i) c->seen[i] = (unsigned char)(c->seen[i] + (good ? 1 : 100));
}

static void check_threads(void) {
  static unsigned char seen[10007];
  int threads, before = rl_get_num_threads();
  EXPECT(before >= 1);
  for (threads = 1; threads <= 4; ++threads) {
    int64_t block;
    EXPECT(rl_set_num_threads(threads) == RL_OK && rl_get_num_threads() == threads);
    for (block = 1; block <= 20000; block = block * 3 + 1) {
      cover c;
      int64_t i, wrong = 0;
      c.count = 10007;
      c.block = block;
      c.seen = seen;
      memset(seen, 0, sizeof seen);
      rl_parallel_for(c.count, c.block, cover_body, &c);
      for (i = 0; i < c.count; ++i) wrong += seen[i] != 1;
      EXPECT(wrong == 0);
    }
  }
  EXPECT(rl_set_num_threads(0) == RL_VALUE_ERROR);
  EXPECT(strstr(rl_last_error(), "set_num_threads") != NULL);
  EXPECT(rl_set_num_threads(before) == RL_OK);
}

static void check_matmul(int with_blas) {
  static const int64_t s23[2] = {2, 3}, t23[2] = {3, 1}, s32[2] = {3, 2}, t32[2] = {2, 1}, s22[2] = {2, 2},
                       t22[2] = {2, 1};
  const rl_number one = {1, 0}, zero = {0, 0};
  int32_t a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {7, 8, 9, 10, 11, 12}, c[4] = {0, 0, 0, 0};
  float fa[6] = {1, 2, 3, 4, 5, 6}, fb[6] = {7, 8, 9, 10, 11, 12}, fc[4];
  rl_tensor ta = tensor(a, RL_INT32, 2, s23, t23), tb = tensor(b, RL_INT32, 2, s32, t32),
            tc = tensor(c, RL_INT32, 2, s22, t22);
  EXPECT(rl_matmul(&ta, &tb, NULL, one, zero, &tc) == RL_OK);
  EXPECT(c[0] == 58 && c[1] == 64 && c[2] == 139 && c[3] == 154);
  EXPECT(rl_matmul(&tb, &tb, NULL, one, zero, &tc) == RL_VALUE_ERROR);
  EXPECT(strstr(rl_last_error(), "[3, 2]") != NULL);
  ta.dtype = tb.dtype = tc.dtype = RL_FLOAT32;
  ta.data = fa;
  tb.data = fb;
  tc.data = fc;
  if (with_blas) {
    EXPECT(rl_matmul(&ta, &tb, NULL, one, zero, &tc) == RL_OK);
    EXPECT(fc[0] == 58 && fc[1] == 64 && fc[2] == 139 && fc[3] == 154);
    EXPECT(rl_blas_symbol("cblas_sgemm") != NULL); /* small products do without */
    EXPECT(rl_blas_loaded() == 1);
  }
}

static void check_conv(void) {
  /* A 3x3 input, a 2x2 kernel of ones: sums of neighbours. */
  static const int64_t xs[4] = {1, 1, 3, 3}, xt[4] = {9, 9, 3, 1}, ws[4] = {1, 1, 2, 2}, wt[4] = {4, 4, 2, 1},
                       bs[1] = {1}, bt[1] = {1};
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[4] = {1, 1, 1, 1}, bias[1] = {0.5f}, y[4] = {0, 0, 0, 0}, gx[9], gw[4],
        gb[1];
  rl_tensor tx = tensor(x, RL_FLOAT32, 4, xs, xt), tw = tensor(w, RL_FLOAT32, 4, ws, wt),
            tb = tensor(bias, RL_FLOAT32, 1, bs, bt);
  rl_tensor ty = tensor(y, RL_FLOAT32, 4, ws, wt), tgx = tensor(gx, RL_FLOAT32, 4, xs, xt),
            tgw = tensor(gw, RL_FLOAT32, 4, ws, wt);
  rl_tensor tgb = tensor(gb, RL_FLOAT32, 1, bs, bt);
  rl_conv_params p = {{1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1};
  EXPECT(rl_conv(&tx, &tw, &tb, &p, &ty) == RL_OK);
  EXPECT(y[0] == 12.5f && y[1] == 16.5f && y[2] == 24.5f && y[3] == 28.5f);
  y[0] = y[1] = y[2] = y[3] = 1;
  EXPECT(rl_conv_grad_input(&ty, &tw, NULL, &p, &tgx) == RL_OK);
  EXPECT(gx[0] == 1 && gx[1] == 2 && gx[4] == 4 && gx[8] == 1);
  EXPECT(rl_conv_grad_weight(&ty, &tx, &p, &tgw) == RL_OK);
  EXPECT(gw[0] == 12 && gw[1] == 16 && gw[2] == 24 && gw[3] == 28);
  EXPECT(rl_conv_grad_bias(&ty, &tgb) == RL_OK && gb[0] == 4);
  p.groups = 2;
  EXPECT(rl_conv(&tx, &tw, NULL, &p, &ty) == RL_VALUE_ERROR);
  EXPECT(strstr(rl_last_error(), "groups") != NULL);
}

static void check_pool(void) {
  static const int64_t xs[4] = {1, 1, 2, 4}, xt[4] = {8, 8, 4, 1}, ys[4] = {1, 1, 1, 2}, yt[4] = {2, 2, 2, 1};
  float x[8] = {1, 5, 2, 2, 3, 4, 2, 2}, y[2], gx[8];
  int64_t at[2];
  rl_tensor tx = tensor(x, RL_FLOAT32, 4, xs, xt), ty = tensor(y, RL_FLOAT32, 4, ys, yt),
            ti = tensor(at, RL_INT64, 4, ys, yt);
  rl_tensor tgx = tensor(gx, RL_FLOAT32, 4, xs, xt);
  rl_pool_params p = {{2, 2, 1}, {2, 2, 1}, {0, 0, 0}, {1, 1, 1}, 1, 0};
  x[7] = NAN;
  EXPECT(rl_max_pool(&tx, &p, &ty, &ti) == RL_OK);
  EXPECT(y[0] == 5 && at[0] == 1 && isnan(y[1]) && at[1] == 7);
  y[0] = 10;
  y[1] = 20;
  EXPECT(rl_max_pool_backward(&ty, &ti, &tgx) == RL_OK);
  EXPECT(gx[1] == 10 && gx[7] == 20 && gx[0] == 0);
  at[0] = 8;
  EXPECT(rl_max_pool_backward(&ty, &ti, &tgx) == RL_INDEX_ERROR);
  x[7] = 6;
  EXPECT(rl_avg_pool(&tx, &p, &ty) == RL_OK && y[0] == 3.25f && y[1] == 3);
  EXPECT(rl_adaptive_avg_pool(&tx, &ty) == RL_OK && y[0] == 3.25f && y[1] == 3);
}

int main(int argc, char** argv) {
  if (argc > 1) EXPECT(rl_set_blas_library(argv[1]) == RL_OK);
  check_library();
  check_memory();
  check_threads();
  check_matmul(argc > 1);
  check_conv();
  check_pool();
  if (failures) {
    printf("%d failures\n", failures);
    return 1;
  }
  return 0;
}
