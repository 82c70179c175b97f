// The thread pool.
//
// A loop is published in one of a few slots; the caller and the workers take blocks from it by counting up an index. A
// worker that finds nothing to do spins briefly, since the next loop usually follows at once, then sleeps on a futex.
// Callers from several threads use different slots and share the workers; when all slots are taken a caller runs its
// loop alone. The pool is never destroyed: its detached threads end with the process. A forked child starts with a new
// pool.
#include "core/parallel.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include "core/cpu_count.h"
#include "core/futex.h"

namespace rl {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kSlots = 8;
// A sleeping worker costs about 50 us to wake (measured: 20 to 90), so it waits about as long before it sleeps.
constexpr int64_t kSpinNanoseconds = 60'000;
constexpr uint32_t kClosed = 1u << 31;        // no worker may enter the slot
constexpr uint32_t kCallerSleeps = 1u << 30;  // the last worker to leave wakes the caller
constexpr uint32_t kEntered = kCallerSleeps - 1;

thread_local bool t_in_parallel = false;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

int64_t now_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct alignas(64) Slot {
  std::atomic<uint32_t> state{kClosed};
  std::atomic<bool> taken{false};
  // Written by the caller while the slot is closed and empty, read by workers that entered it.
  int64_t count = 0;
  int64_t block = 0;
  detail::BlockFunction body = nullptr;
  void* context = nullptr;
  uint32_t most_workers = 0;
  std::mutex error_mutex;
  std::exception_ptr error;
  alignas(64) std::atomic<int64_t> next{0};

  void run() {
    for (;;) {
      const int64_t begin = next.fetch_add(block, std::memory_order_relaxed);
      if (begin >= count) return;
      try {
        body(context, begin, std::min(begin + block, count));
      } catch (...) {
        const std::lock_guard<std::mutex> lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
  }

  bool has_work() const {
    const uint32_t value = state.load(std::memory_order_relaxed);
    return !(value & kClosed);
  }

  bool enter() {
    uint32_t value = state.load(std::memory_order_relaxed);
    for (;;) {
      if (value & kClosed) return false;
      // An open slot's fields are stable once this succeeds; most_workers is checked after entering.
      if (state.compare_exchange_weak(value, value + 1, std::memory_order_acquire, std::memory_order_relaxed)) break;
    }
    if ((value & kEntered) >= most_workers || next.load(std::memory_order_relaxed) >= count) {
      leave();
      return false;
    }
    return true;
  }

  void leave() {
    const uint32_t before = state.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kCallerSleeps) && (before & kEntered) == 1) futex_wake(&state, 1);
  }
};

class Pool {
 public:
  void run(int64_t count, int64_t block, detail::BlockFunction body, void* context, int threads) {
    Slot* const slot = take_slot();
    if (!slot) {
      run_alone(count, block, body, context);
      return;
    }
    const int64_t blocks = (count - 1) / block + 1;
    const int workers = static_cast<int>(std::min<int64_t>(threads, blocks)) - 1;
    start_workers(workers);
    slot->count = count;
    slot->block = block;
    slot->body = body;
    slot->context = context;
    slot->most_workers = static_cast<uint32_t>(workers);
    slot->error = nullptr;
    slot->next.store(0, std::memory_order_relaxed);
    slot->state.store(0, std::memory_order_release);
    work_signal_.fetch_add(1, std::memory_order_seq_cst);
    const int sleeping = sleeping_.load(std::memory_order_seq_cst);
    if (sleeping > 0) futex_wake(&work_signal_, std::min(sleeping, workers));

    t_in_parallel = true;
    slot->run();
    t_in_parallel = false;
    wait_until_empty(slot);

    std::exception_ptr error = std::move(slot->error);
    slot->error = nullptr;
    slot->taken.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
  }

  static void run_alone(int64_t count, int64_t block, detail::BlockFunction body, void* context) {
    // Like the parallel path: every block runs, the first exception is thrown at the end.
    std::exception_ptr error;
    for (int64_t begin = 0; begin < count; begin += block) {
      try {
        body(context, begin, std::min(begin + block, count));
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
  }

  void block_forks() { start_mutex_.lock(); }
  void allow_forks() { start_mutex_.unlock(); }

 private:
  Slot* take_slot() {
    for (Slot& slot : slots_) {
      if (!slot.taken.load(std::memory_order_relaxed) && !slot.taken.exchange(true, std::memory_order_acquire))
        return &slot;
    }
    return nullptr;
  }

  void start_workers(int wanted) {
    if (started_.load(std::memory_order_acquire) >= wanted) [[likely]]
      return;
    const std::lock_guard<std::mutex> lock(start_mutex_);
    while (started_.load(std::memory_order_relaxed) < wanted) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      // Signals belong to the user's threads.
      sigset_t all, previous;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &previous);
      pthread_t thread;
      const int failure = pthread_create(&thread, &attributes, &Pool::worker_main, this);
      pthread_sigmask(SIG_SETMASK, &previous, nullptr);
      pthread_attr_destroy(&attributes);
      if (failure) return;  // fewer workers: slower, still right
      started_.fetch_add(1, std::memory_order_release);
    }
  }

  // The caller has run out of blocks; workers may still be in theirs.
  static void wait_until_empty(Slot* slot) {
    uint32_t value = slot->state.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
    if (!(value & kEntered)) return;
    const int64_t deadline = now_nanoseconds() + kSpinNanoseconds;
    for (int i = 0;; ++i) {
      value = slot->state.load(std::memory_order_acquire);
      if (!(value & kEntered)) return;
      pause_briefly();
      if ((i & 31) == 31 && now_nanoseconds() > deadline) break;
    }
    for (;;) {
      value = slot->state.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
      if (!(value & kEntered)) return;
      futex_wait(&slot->state, value);
    }
  }

  static void* worker_main(void* pool) {
    t_in_parallel = true;
#if defined(__linux__)
    pthread_setname_np(pthread_self(), "rushlight");
#endif
    static_cast<Pool*>(pool)->work();
    return nullptr;
  }

  [[noreturn]] void work() {
    // With more threads than processors a spinning worker would keep another from running.
    const bool may_spin = usable_cpus() > 1;
    for (;;) {
      const uint32_t signal = work_signal_.load(std::memory_order_seq_cst);
      bool worked = false;
      for (Slot& slot : slots_) {
        if (!slot.has_work() || !slot.enter()) continue;
        slot.run();
        slot.leave();
        worked = true;
      }
      if (worked) continue;
      if (may_spin && started_.load(std::memory_order_relaxed) < usable_cpus() && spin(signal)) continue;
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      futex_wait(&work_signal_, signal);
      sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  // True as soon as a new loop is published.
  bool spin(uint32_t signal) const {
    const int64_t deadline = now_nanoseconds() + kSpinNanoseconds;
    for (int i = 0;; ++i) {
      if (work_signal_.load(std::memory_order_relaxed) != signal) return true;
      pause_briefly();
      if ((i & 31) == 31 && now_nanoseconds() > deadline) return false;
    }
  }

  alignas(64) std::atomic<uint32_t> work_signal_{0};
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<int> started_{0};
  std::mutex start_mutex_;
  Slot slots_[kSlots];
};

std::atomic<Pool*> g_pool{nullptr};
std::atomic<int> g_threads{0};  // 0: not decided yet

void before_fork() {
  if (Pool* pool = g_pool.load(std::memory_order_acquire)) pool->block_forks();
}
void after_fork_in_parent() {
  if (Pool* pool = g_pool.load(std::memory_order_acquire)) pool->allow_forks();
}
// The child has only the forking thread, so the pool it copied has no workers: it is left alone and the next loop makes
// a new one. (A body that forks must exec or exit in the child: the blocks its siblings were running are not there.)
void after_fork_in_child() { g_pool.store(nullptr, std::memory_order_release); }

__attribute__((constructor)) void watch_forks() {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

Pool* pool() {
  if (Pool* existing = g_pool.load(std::memory_order_acquire)) [[likely]]
    return existing;
  Pool* created = new Pool;
  Pool* expected = nullptr;
  if (!g_pool.compare_exchange_strong(expected, created, std::memory_order_acq_rel)) {
    delete created;
    created = expected;
  }
  return created;
}

int default_threads() {
  const int usable = std::min(usable_cpus(), kMaxThreads);
  const char* const wanted = std::getenv("RUSHLIGHT_NUM_THREADS");
  if (!wanted || !*wanted) return usable;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(wanted, &end, 10);
  if (errno == 0 && *end == '\0' && value >= 1 && value <= kMaxThreads) return static_cast<int>(value);
  std::fprintf(stderr, "rushlight: RUSHLIGHT_NUM_THREADS=%s: expected a number from 1 to %d; using %d\n", wanted,
               kMaxThreads, usable);
  return usable;
}

int thread_count() {
  const int threads = g_threads.load(std::memory_order_relaxed);
  if (threads > 0) [[likely]]
    return threads;
  const int chosen = default_threads();
  int expected = 0;
  return g_threads.compare_exchange_strong(expected, chosen) ? chosen : expected;
}

}  // namespace

bool in_parallel_region() { return t_in_parallel; }

namespace detail {

void run_blocks(int64_t count, int64_t block, BlockFunction body, void* context) {
  if (count <= 0) return;
  if (block <= 0) block = 1;
  // begin + block is computed for the last block too.
  if (block > count) block = count;
  if (count == block) {
    body(context, 0, count);
    return;
  }
  const int threads = t_in_parallel ? 1 : thread_count();
  if (threads == 1 || count > INT64_MAX - block * (kMaxThreads + 1)) {
    Pool::run_alone(count, block, body, context);
    return;
  }
  pool()->run(count, block, body, context, threads);
}

namespace {

struct StatusLoop {
  StatusBlockFunction body = nullptr;
  void* context = nullptr;
  std::atomic<int64_t> first_failure{INT64_MAX};
  std::mutex mutex;
  rl_status status = RL_OK;
  int64_t status_begin = INT64_MAX;
  char message[1024];
};

void run_status_block(void* context, int64_t begin, int64_t end) {
  StatusLoop& loop = *static_cast<StatusLoop*>(context);
  if (begin > loop.first_failure.load(std::memory_order_relaxed)) return;
  const rl_status status = loop.body(loop.context, begin, end);
  if (status == RL_OK) [[likely]]
    return;
  const std::lock_guard<std::mutex> lock(loop.mutex);
  if (begin >= loop.status_begin) return;
  loop.status = status;
  loop.status_begin = begin;
  std::snprintf(loop.message, sizeof loop.message, "%s", rl_last_error());
  loop.first_failure.store(begin, std::memory_order_relaxed);
}

}  // namespace

rl_status run_status_blocks(int64_t count, int64_t block, StatusBlockFunction body, void* context) {
  StatusLoop loop;
  loop.body = body;
  loop.context = context;
  run_blocks(count, block, run_status_block, &loop);
  return loop.status == RL_OK ? RL_OK : fail(loop.status, "%s", loop.message);
}

}  // namespace detail
}  // namespace rl

int rl_get_num_threads(void) { return rl::thread_count(); }

rl_status rl_set_num_threads(int threads) {
  if (threads < 1 || threads > rl::kMaxThreads)
    return rl::fail(RL_VALUE_ERROR, "set_num_threads: expected a number from 1 to %d, got %d", rl::kMaxThreads,
                    threads);
  rl::g_threads.store(threads, std::memory_order_relaxed);
  return RL_OK;
}

void rl_parallel_for(int64_t count, int64_t block, void (*body)(void* context, int64_t begin, int64_t end),
                     void* context) {
  rl::detail::run_blocks(count, block, body, context);
}
