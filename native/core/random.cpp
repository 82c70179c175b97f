#include "core/random.h"

#include <cstring>
#include <new>
#include <random>

#include "core/error.h"

namespace {

constexpr int kWords = rl::kTwisterWords;

// The saved state, as PyTorch lays it out. Words take 64 bits each; the fields before next_normal are of its ancestors.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[kWords];
  double unused_x;
  double double_normal;
  double unused_rho;
  int32_t has_double_normal;
  int32_t padding;
  float float_normal;
  uint8_t has_float_normal;
  uint8_t end_padding[3];
};
static_assert(sizeof(SavedState) == RL_GENERATOR_STATE_BYTES);

rl_generator& resolve(rl_generator* generator) { return generator ? *generator : *rl_default_generator(); }
const rl_generator& resolve(const rl_generator* generator) { return generator ? *generator : *rl_default_generator(); }

uint64_t system_seed() {
  std::random_device device;
  const uint64_t high = device();
  return high << 32 | device();
}

}  // namespace

void rl_generator::set_seed(uint64_t value) {
  seed = value;
  words[0] = static_cast<uint32_t>(value);
  for (uint32_t i = 1; i < kWords; ++i) words[i] = 1812433253u * (words[i - 1] ^ (words[i - 1] >> 30)) + i;
  left = 1;
  next = 0;
  has_double_normal = false;
  has_float_normal = false;
}

void rl_generator::renew() {
  const auto mix = [](uint32_t u, uint32_t v) {
    return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ ((0u - (v & 1u)) & 0x9908b0dfu);
  };
  constexpr int kShift = rl::kTwisterShift;
  for (int i = 0; i < kWords - kShift; ++i) words[i] = words[i + kShift] ^ mix(words[i], words[i + 1]);
  for (int i = kWords - kShift; i < kWords - 1; ++i)
    words[i] = words[i + kShift - kWords] ^ mix(words[i], words[i + 1]);
  words[kWords - 1] = words[kShift - 1] ^ mix(words[kWords - 1], words[0]);
  left = kWords;
  next = 0;
}

extern "C" {

rl_generator* rl_generator_create(uint64_t seed) {
  rl_generator* generator = new (std::nothrow) rl_generator;
  if (!generator) {
    rl::fail(RL_MEMORY_ERROR, "rl_generator_create: out of memory");
    return nullptr;
  }
  generator->set_seed(seed);
  return generator;
}

void rl_generator_destroy(rl_generator* generator) { delete generator; }

rl_generator* rl_generator_clone(const rl_generator* generator) {
  const rl_generator& from = resolve(generator);
  rl_generator* copy = new (std::nothrow) rl_generator;
  if (!copy) {
    rl::fail(RL_MEMORY_ERROR, "rl_generator_clone: out of memory");
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(from.mutex);
  copy->seed = from.seed;
  std::memcpy(copy->words, from.words, sizeof from.words);
  copy->left = from.left;
  copy->next = from.next;
  copy->has_double_normal = from.has_double_normal;
  copy->has_float_normal = from.has_float_normal;
  copy->double_normal = from.double_normal;
  copy->float_normal = from.float_normal;
  return copy;
}

rl_generator* rl_default_generator(void) {
  // Never destroyed: threads may draw while the process ends.
  static rl_generator* const generator = [] {
    rl_generator* made = new rl_generator;
    uint64_t seed = RL_GENERATOR_DEFAULT_SEED;
    try {
      seed = system_seed();
    } catch (...) {  // no source of randomness: the documented seed is still a generator
    }
    made->set_seed(seed);
    return made;
  }();
  return generator;
}

void rl_generator_set_seed(rl_generator* generator, uint64_t seed) {
  rl_generator& g = resolve(generator);
  const std::lock_guard<std::mutex> lock(g.mutex);
  g.set_seed(seed);
}

uint64_t rl_generator_initial_seed(const rl_generator* generator) {
  const rl_generator& g = resolve(generator);
  const std::lock_guard<std::mutex> lock(g.mutex);
  return g.seed;
}

rl_status rl_generator_seed(rl_generator* generator, uint64_t* seed) {
  RL_GUARD_BEGIN
  const uint64_t value = system_seed();
  rl_generator_set_seed(generator, value);
  if (seed) *seed = value;
  return RL_OK;
  RL_GUARD_END
}

rl_status rl_generator_get_state(const rl_generator* generator, void* state, size_t bytes) {
  if (bytes != RL_GENERATOR_STATE_BYTES)
    return rl::fail(RL_RUNTIME_ERROR, "get_state: wrong size of the state; expected %d bytes, got %zu",
                    RL_GENERATOR_STATE_BYTES, bytes);
  const rl_generator& g = resolve(generator);
  SavedState saved;
  std::memset(&saved, 0, sizeof saved);
  {
    const std::lock_guard<std::mutex> lock(g.mutex);
    saved.seed = g.seed;
    saved.left = g.left;
    saved.seeded = 1;
    saved.next = g.next;
    for (int i = 0; i < kWords; ++i) saved.words[i] = g.words[i];
    if (g.has_double_normal) {
      saved.has_double_normal = 1;
      saved.double_normal = g.double_normal;
    }
    if (g.has_float_normal) {
      saved.has_float_normal = 1;
      saved.float_normal = g.float_normal;
    }
  }
  std::memcpy(state, &saved, sizeof saved);
  return RL_OK;
}

rl_status rl_generator_set_state(rl_generator* generator, const void* state, size_t bytes) {
  if (bytes != RL_GENERATOR_STATE_BYTES)
    return rl::fail(RL_RUNTIME_ERROR, "set_state: wrong size of the state; expected %d bytes, got %zu",
                    RL_GENERATOR_STATE_BYTES, bytes);
  SavedState saved;
  std::memcpy(&saved, state, sizeof saved);
  // The last condition keeps every later draw inside the block.
  if (!saved.seeded || saved.left < 1 || saved.left > kWords || saved.next > kWords ||
      saved.next + static_cast<uint64_t>(saved.left) > kWords + 1)
    return rl::fail(
        RL_RUNTIME_ERROR,
        "set_state: not the state of a Mersenne Twister; expected a position inside the block of %d words, got "
        "next %llu with %d left",
        kWords, static_cast<unsigned long long>(saved.next), saved.left);
  rl_generator& g = resolve(generator);
  const std::lock_guard<std::mutex> lock(g.mutex);
  g.seed = saved.seed;
  g.left = saved.left;
  g.next = static_cast<uint32_t>(saved.next);
  for (int i = 0; i < kWords; ++i) g.words[i] = static_cast<uint32_t>(saved.words[i]);
  g.has_double_normal = saved.has_double_normal != 0;
  g.double_normal = g.has_double_normal ? saved.double_normal : 0;
  g.has_float_normal = saved.has_float_normal != 0;
  g.float_normal = g.has_float_normal ? saved.float_normal : 0;
  return RL_OK;
}

uint32_t rl_generator_random32(rl_generator* generator) {
  rl_generator& g = resolve(generator);
  const std::lock_guard<std::mutex> lock(g.mutex);
  return g.random32();
}

uint64_t rl_generator_random64(rl_generator* generator) {
  rl_generator& g = resolve(generator);
  const std::lock_guard<std::mutex> lock(g.mutex);
  return g.random64();
}

}  // extern "C"
