// The caching allocator.
//
// Blocks of up to 1 MiB come from segments: 4 MiB aligned regions cut into 64 pages of 64 KiB. A run of pages (a span)
// holds blocks of one size class. Each thread keeps short lists of free blocks of the small classes, so that most calls
// take a block from a list and nothing else; lists are refilled from, and overflow into, the spans, under one lock. Any
// thread may free any block. A larger block is a region of its own, aligned like a segment, kept for reuse when freed:
// the system's zeroed pages cost more than most arithmetic on them. The segment of a block is found by masking its
// address; the segment's header knows the block's class.
#include "core/memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "core/cgroup.h"
#include "core/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define RL_POISON(address, bytes) __asan_poison_memory_region(address, bytes)
#define RL_UNPOISON(address, bytes) __asan_unpoison_memory_region(address, bytes)
#define RL_REDZONE 64
#else
#define RL_POISON(address, bytes) static_cast<void>(0)
#define RL_UNPOISON(address, bytes) static_cast<void>(0)
#define RL_REDZONE 0
#endif

// The default model for a library calls a function for each access. glibc keeps room for small variables like ours.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define RL_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define RL_FAST_TLS
#endif

namespace rl {
namespace {

constexpr size_t kSegmentBytes = size_t{4} << 20;
constexpr size_t kPageBytes = size_t{64} << 10;
constexpr int kPages = static_cast<int>(kSegmentBytes / kPageBytes);
static_assert(kPages == 64, "a segment's free pages are one 64-bit set");
constexpr size_t kMostSmall = size_t{32} << 10;  // kept by threads
constexpr size_t kMostSpan = size_t{1} << 20;    // from segments

// ---- size classes: multiples of 64 up to 1024, then four to each doubling.

constexpr int class_of(size_t bytes) {
  if (bytes <= 1024) return static_cast<int>((bytes - (bytes != 0)) >> 6);
  const int log = std::bit_width(bytes - 1) - 1;
  return 16 + (log - 10) * 4 + static_cast<int>((bytes - 1) >> (log - 2)) - 4;
}

constexpr size_t class_bytes(int index) {
  if (index < 16) return static_cast<size_t>(index + 1) * 64;
  const int log = 10 + (index - 16) / 4;
  return (size_t{1} << log) + static_cast<size_t>((index - 16) % 4 + 1) * (size_t{1} << (log - 2));
}

constexpr int kSmallClasses = class_of(kMostSmall) + 1;
constexpr int kClasses = class_of(kMostSpan) + 1;
constexpr uint8_t kLargeClass = 255;
static_assert(class_bytes(kClasses - 1) == kMostSpan && class_bytes(class_of(1025)) == 1280 && class_bytes(0) == 64);

struct ClassShape {
  uint32_t bytes;
  uint16_t pages;        // of a span
  uint16_t blocks;       // in a span
  uint16_t thread_most;  // blocks a thread keeps
  uint16_t batch;        // blocks moved at a time between a thread and the spans
};

constexpr ClassShape shape_of_class(int index) {
  const size_t bytes = class_bytes(index);
  size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  // The shortest span that wastes at most a sixteenth, and holds four blocks unless they are big.
  for (;; ++pages) {
    const size_t blocks = pages * kPageBytes / bytes;
    if (pages * kPageBytes - blocks * bytes <= pages * kPageBytes / 16 && (blocks >= 4 || bytes > kPageBytes * 4))
      break;
  }
  const size_t most = std::clamp<size_t>(2 * kPageBytes / bytes, 8, 256);
  return {static_cast<uint32_t>(bytes), static_cast<uint16_t>(pages), static_cast<uint16_t>(pages * kPageBytes / bytes),
          static_cast<uint16_t>(most), static_cast<uint16_t>(most / 2)};
}

struct ClassTable {
  ClassShape of[kClasses];
};
constexpr ClassTable kTable = [] {
  ClassTable table{};
  for (int i = 0; i < kClasses; ++i) table.of[i] = shape_of_class(i);
  return table;
}();

// ---- structures

struct FreeBlock {
  FreeBlock* next;
};

struct Span {
  FreeBlock* free;
  Span* next;  // among the spans of a class that have free blocks
  Span* previous;
  char* data;
  uint16_t free_blocks;
  uint16_t untouched;  // blocks at the end that were never handed out, and so are not in `free`
  uint8_t class_index;
  bool listed;
};

struct Segment {
  uint8_t page_class[kPages];  // first, to be one cache line
  uint8_t page_span[kPages];
  uint64_t free_pages;
  size_t mapped_bytes;
  Segment* next;  // all segments; for large regions: free regions of a size
  Segment* previous;
  // Large regions only
  Segment* newer;
  Segment* older;
  char* data;
  size_t block_bytes;
  Span spans[kPages];
};
static_assert(sizeof(Segment) <= kPageBytes);
constexpr size_t kLargeHeaderBytes = 4096;
static_assert(offsetof(Segment, spans) <= kLargeHeaderBytes);

Segment* segment_of(const void* block) {
  return reinterpret_cast<Segment*>(reinterpret_cast<uintptr_t>(block) & ~(kSegmentBytes - 1));
}

int page_of(const void* block) {
  return static_cast<int>((reinterpret_cast<uintptr_t>(block) & (kSegmentBytes - 1)) / kPageBytes);
}

// Written by one thread, read by others for statistics.
template <class T>
class Counter {
 public:
  T get() const { return value_.load(std::memory_order_relaxed); }
  void set(T value) { value_.store(value, std::memory_order_relaxed); }
  void add(T value) { set(get() + value); }

 private:
  std::atomic<T> value_{0};
};

struct Bin {
  FreeBlock* head = nullptr;
  Counter<uint32_t> count;
};

struct ThreadCache {
  Bin bins[kSmallClasses];
  // Not yet added to the global figures.
  Counter<int64_t> live_bytes;
  Counter<int64_t> live_peak;
  Counter<int64_t> live_blocks;
  Counter<int64_t> allocations;
  Counter<int64_t> misses;
  uint32_t flush_epoch = 0;
  ThreadCache* next = nullptr;
  ThreadCache* previous = nullptr;
};

RL_FAST_TLS thread_local ThreadCache* t_cache = nullptr;
RL_FAST_TLS thread_local bool t_ended = false;

// Large free regions by size: sixteen bins to each doubling.
constexpr int kLargeBins = 64 * 16;

size_t round_large(size_t bytes) {
  const size_t step = std::max(size_t{1} << (std::bit_width(bytes - 1) - 5), size_t{4096});
  return (bytes + step - 1) & ~(step - 1);
}

int large_bin(size_t rounded) {
  const int log = std::bit_width(rounded) - 1;
  return log * 16 + static_cast<int>((rounded >> (log - 4)) & 15);
}

struct Central {
  std::mutex mutex;
  Span* spans_with_free[kClasses] = {};
  Segment* segments = nullptr;  // those with pages in use or free, not the large ones
  Segment* large_free[kLargeBins] = {};
  Segment* large_newest = nullptr;
  Segment* large_oldest = nullptr;
  size_t large_free_bytes = 0;
  ThreadCache* threads = nullptr;
  uint32_t color = 0;

  int64_t allocated_bytes = 0;
  int64_t allocated_blocks = 0;
  int64_t peak_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t free_blocks = 0;  // in spans and large regions, not in threads
  int64_t allocations = 0;
  int64_t misses = 0;
  int64_t limit = 0;
  int64_t system_bytes = 0;  // physical memory and swap; 0: not asked yet
};

// Never destroyed: blocks are freed until the very end of the process.
alignas(Central) char g_storage[sizeof(Central)];
Central& g() { return *std::launder(reinterpret_cast<Central*>(g_storage)); }
std::atomic<uint32_t> g_flush_epoch{0};
pthread_key_t g_thread_key;

int64_t ask_system_bytes() {
  long long memory_kib = 0, swap_kib = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file)) {
      std::sscanf(line, "MemTotal: %lld", &memory_kib);
      std::sscanf(line, "SwapTotal: %lld", &swap_kib);
    }
    std::fclose(file);
  }
  int64_t bytes = (memory_kib + swap_kib) * 1024;
  if (memory_kib == 0) bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (bytes <= 0) bytes = INT64_MAX;
  return std::min(bytes, cgroup_memory_limit());
}

int64_t system_bytes() {
  if (g().system_bytes == 0) g().system_bytes = ask_system_bytes();
  return g().system_bytes;
}

// ---- regions of the system. All functions below are called with the lock held.

void* map_aligned(size_t bytes) {
  const size_t most = bytes + kSegmentBytes;
  void* const raw = mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(raw);
  char* const aligned =
      reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw) + kSegmentBytes - 1) & ~(kSegmentBytes - 1));
  if (aligned > begin) munmap(begin, static_cast<size_t>(aligned - begin));
  if (begin + most > aligned + bytes) munmap(aligned + bytes, static_cast<size_t>(begin + most - (aligned + bytes)));
  return aligned;
}

void unmap(Segment* segment) {
  const size_t bytes = segment->mapped_bytes;
  g().reserved_bytes -= static_cast<int64_t>(bytes);
  RL_UNPOISON(segment, bytes);
  munmap(segment, bytes);
}

void unlink_large_free(Segment* region) {
  Central& central = g();
  Segment*& head = central.large_free[large_bin(region->block_bytes)];
  (region->previous ? region->previous->next : head) = region->next;
  if (region->next) region->next->previous = region->previous;
  (region->newer ? region->newer->older : central.large_newest) = region->older;
  (region->older ? region->older->newer : central.large_oldest) = region->newer;
  central.large_free_bytes -= region->mapped_bytes;
  central.free_blocks -= 1;
}

void release_large(size_t keep_bytes) {
  while (g().large_free_bytes > keep_bytes) {
    Segment* const region = g().large_oldest;
    unlink_large_free(region);
    unmap(region);
  }
}

void list_span(Span* span) {
  Span*& head = g().spans_with_free[span->class_index];
  span->previous = nullptr;
  span->next = head;
  if (head) head->previous = span;
  head = span;
  span->listed = true;
}

void unlist_span(Span* span) {
  (span->previous ? span->previous->next : g().spans_with_free[span->class_index]) = span->next;
  if (span->next) span->next->previous = span->previous;
  span->listed = false;
}

// Gives the pages of a span whose blocks are all free back to its segment.
void release_span(Span* span) {
  if (span->listed) unlist_span(span);
  Segment* const segment = segment_of(span);
  const ClassShape& shape = kTable.of[span->class_index];
  g().free_blocks -= shape.blocks;
  segment->free_pages |= ((uint64_t{1} << shape.pages) - 1) << page_of(span->data);
}

constexpr uint64_t kAllPages = ~uint64_t{1};  // the header has the first page

void release_free_segments() {
  for (Segment* segment = g().segments; segment;) {
    Segment* const next = segment->next;
    if (segment->free_pages == kAllPages) {
      (segment->previous ? segment->previous->next : g().segments) = segment->next;
      if (segment->next) segment->next->previous = segment->previous;
      unmap(segment);
    } else {
      for (int page = 1; page < kPages; ++page) {
        if (segment->free_pages >> page & 1)
          madvise(reinterpret_cast<char*>(segment) + static_cast<size_t>(page) * kPageBytes, kPageBytes, MADV_DONTNEED);
      }
    }
    segment = next;
  }
}

void release_free_spans() {
  for (Span*& head : g().spans_with_free) {
    for (Span* span = head; span;) {
      Span* const next = span->next;
      if (span->free_blocks == kTable.of[span->class_index].blocks) release_span(span);
      span = next;
    }
  }
}

void release_all_free() {
  release_large(0);
  release_free_spans();
  release_free_segments();
}

bool fits(size_t bytes) {
  const int64_t most = g().limit > 0 ? std::min(g().limit, system_bytes()) : system_bytes();
  return g().reserved_bytes <= most && static_cast<int64_t>(bytes) <= most - g().reserved_bytes;
}

void* reserve(size_t bytes) {
  if (!fits(bytes)) {
    release_all_free();
    if (!fits(bytes)) return nullptr;
  }
  void* memory = map_aligned(bytes);
  if (!memory) {
    release_all_free();
    memory = map_aligned(bytes);
    if (!memory) return nullptr;
  }
  g().reserved_bytes += static_cast<int64_t>(bytes);
  return memory;
}

// ---- spans

// First page of a run of `count` free pages, or -1.
int find_pages(uint64_t free, int count) {
  uint64_t runs = free;
  for (int have = 1; have < count && runs;) {
    const int step = std::min(have, count - have);
    runs &= runs >> step;
    have += step;
  }
  return runs ? std::countr_zero(runs) : -1;
}

Span* new_span(int class_index) {
  const ClassShape& shape = kTable.of[class_index];
  Segment* segment = g().segments;
  int page = -1;
  for (; segment; segment = segment->next) {
    if (segment->free_pages && (page = find_pages(segment->free_pages, shape.pages)) >= 0) break;
  }
  if (!segment) {
    segment = static_cast<Segment*>(reserve(kSegmentBytes));
    if (!segment) return nullptr;
    segment->free_pages = kAllPages;
    segment->mapped_bytes = kSegmentBytes;
    segment->previous = nullptr;
    segment->next = g().segments;
    if (g().segments) g().segments->previous = segment;
    g().segments = segment;
    page = find_pages(segment->free_pages, shape.pages);
  }
  segment->free_pages &= ~(((uint64_t{1} << shape.pages) - 1) << page);
  for (int i = page; i < page + shape.pages; ++i) {
    segment->page_class[i] = static_cast<uint8_t>(class_index);
    segment->page_span[i] = static_cast<uint8_t>(page);
  }
  Span* const span = &segment->spans[page];
  span->free = nullptr;
  span->data = reinterpret_cast<char*>(segment) + static_cast<size_t>(page) * kPageBytes;
  span->free_blocks = shape.blocks;
  span->untouched = shape.blocks;
  span->class_index = static_cast<uint8_t>(class_index);
  g().free_blocks += shape.blocks;
  RL_POISON(span->data, shape.pages * kPageBytes);
  list_span(span);
  return span;
}

FreeBlock* take_from_spans(int class_index) {
  Span* span = g().spans_with_free[class_index];
  if (!span) {
    span = new_span(class_index);
    if (!span) return nullptr;
  }
  FreeBlock* block = span->free;
  if (block) {
    span->free = block->next;
  } else {
    const ClassShape& shape = kTable.of[class_index];
    block =
        reinterpret_cast<FreeBlock*>(span->data + static_cast<size_t>(shape.blocks - span->untouched) * shape.bytes);
    --span->untouched;
  }
  --g().free_blocks;
  if (--span->free_blocks == 0) unlist_span(span);
  return block;
}

void give_to_span(FreeBlock* block) {
  Segment* const segment = segment_of(block);
  Span* const span = &segment->spans[segment->page_span[page_of(block)]];
  block->next = span->free;
  span->free = block;
  ++g().free_blocks;
  ++span->free_blocks;
  if (!span->listed) list_span(span);
  // An empty span is kept only while it is its class's one supply.
  if (span->free_blocks == kTable.of[span->class_index].blocks && (span->next || span->previous)) release_span(span);
}

// ---- threads

void add_figures(ThreadCache* cache) {
  Central& central = g();
  central.peak_bytes = std::max(central.peak_bytes, central.allocated_bytes + cache->live_peak.get());
  central.allocated_bytes += cache->live_bytes.get();
  central.allocated_blocks += cache->live_blocks.get();
  central.allocations += cache->allocations.get();
  central.misses += cache->misses.get();
  cache->live_bytes.set(0);
  cache->live_peak.set(0);
  cache->live_blocks.set(0);
  cache->allocations.set(0);
  cache->misses.set(0);
}

void shrink_bin(ThreadCache* cache, int class_index, uint32_t keep) {
  Bin& bin = cache->bins[class_index];
  while (bin.count.get() > keep) {
    FreeBlock* const block = bin.head;
    bin.head = block->next;
    bin.count.add(static_cast<uint32_t>(-1));
    give_to_span(block);
  }
}

void empty_thread(ThreadCache* cache) {
  add_figures(cache);
  for (int i = 0; i < kSmallClasses; ++i) shrink_bin(cache, i, 0);
  cache->flush_epoch = g_flush_epoch.load(std::memory_order_relaxed);
}

void end_thread(void* value) {
  ThreadCache* const cache = static_cast<ThreadCache*>(value);
  {
    const std::lock_guard<std::mutex> lock(g().mutex);
    empty_thread(cache);
    (cache->previous ? cache->previous->next : g().threads) = cache->next;
    if (cache->next) cache->next->previous = cache->previous;
  }
  t_cache = nullptr;
  t_ended = true;  // what other destructors of this thread still free goes to the spans directly
  delete cache;
}

ThreadCache* thread_cache() {
  if (t_cache) return t_cache;
  if (t_ended) return nullptr;
  ThreadCache* const cache = new (std::nothrow) ThreadCache;
  if (!cache) return nullptr;
  if (pthread_setspecific(g_thread_key, cache) != 0) {
    delete cache;
    return nullptr;
  }
  cache->next = g().threads;
  if (g().threads) g().threads->previous = cache;
  g().threads = cache;
  t_cache = cache;
  return cache;
}

// ---- large blocks

void* take_large(size_t bytes) {
  const size_t rounded = round_large(bytes);
  const int bin = large_bin(rounded);
  // Up to a quarter more than needed is better than fresh pages.
  for (int i = bin; i <= bin + 4 && i < kLargeBins; ++i) {
    for (Segment* region = g().large_free[i]; region; region = region->next) {
      if (region->block_bytes < rounded) continue;
      unlink_large_free(region);
      return region->data;
    }
  }
  // Equal low address bits in all large blocks would crowd them into the same cache sets.
  const size_t offset = kLargeHeaderBytes * (1 + g().color++ % 16);
  const size_t mapped = offset + rounded;
  Segment* const region = static_cast<Segment*>(reserve(mapped));
  if (!region) return nullptr;
  ++g().misses;
#if defined(MADV_HUGEPAGE)
  if (mapped >= kSegmentBytes) madvise(region, mapped, MADV_HUGEPAGE);
#endif
  std::memset(region->page_class, kLargeClass, sizeof region->page_class);
  region->mapped_bytes = mapped;
  region->data = reinterpret_cast<char*>(region) + offset;
  region->block_bytes = rounded;
  return region->data;
}

void give_large(Segment* region) {
  Central& central = g();
  Segment*& head = central.large_free[large_bin(region->block_bytes)];
  region->previous = nullptr;
  region->next = head;
  if (head) head->previous = region;
  head = region;
  region->newer = nullptr;
  region->older = central.large_newest;
  (central.large_newest ? central.large_newest->newer : central.large_oldest) = region;
  central.large_newest = region;
  central.large_free_bytes += region->mapped_bytes;
  central.free_blocks += 1;
  RL_POISON(region->data, region->block_bytes);
  // Never sit on more than a quarter of the machine.
  release_large(static_cast<size_t>(system_bytes() / 4));
}

// ---- failures

void* refuse(size_t bytes) {
  const double gib = static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0);
  int64_t limit, system, allocated;
  {
    const std::lock_guard<std::mutex> lock(g().mutex);
    if (t_cache) add_figures(t_cache);
    limit = g().limit;
    system = system_bytes();
    allocated = g().allocated_bytes;
  }
  if (limit > 0 && limit < system) {
    fail(RL_MEMORY_ERROR,
         "allocate: out of memory; tried to allocate %zu bytes (%.2f GiB) while %lld are in use, and the limit is %lld "
         "bytes",
         bytes, gib, static_cast<long long>(allocated), static_cast<long long>(limit));
  } else {
    fail(RL_MEMORY_ERROR,
         "allocate: out of memory; tried to allocate %zu bytes (%.2f GiB) while %lld are in use, and the system has "
         "%lld bytes "
         "of memory and swap",
         bytes, gib, static_cast<long long>(allocated), static_cast<long long>(system));
  }
  return nullptr;
}

void count_central(int64_t bytes, int64_t blocks) {
  Central& central = g();
  central.allocated_bytes += bytes;
  central.allocated_blocks += blocks;
  if (blocks > 0) ++central.allocations;
  central.peak_bytes = std::max(central.peak_bytes, central.allocated_bytes);
}

void flush_if_asked(ThreadCache* cache) {
  if (cache->flush_epoch != g_flush_epoch.load(std::memory_order_relaxed)) empty_thread(cache);
}

// The list of this thread is empty, or the block is not a small one.
__attribute__((noinline)) void* allocate_slowly(size_t bytes) {
  void* result = nullptr;
  {
    const std::lock_guard<std::mutex> lock(g().mutex);
    ThreadCache* const cache = thread_cache();
    if (cache) {
      flush_if_asked(cache);
      add_figures(cache);
    }
    if (bytes > kMostSpan) {
      if (static_cast<uint64_t>(bytes) <= static_cast<uint64_t>(system_bytes())) result = take_large(bytes);
      if (result) count_central(static_cast<int64_t>(segment_of(result)->block_bytes), 1);
    } else {
      const int index = class_of(bytes);
      const ClassShape& shape = kTable.of[index];
      const bool miss = !g().spans_with_free[index];
      result = take_from_spans(index);
      if (result) {
        if (miss) ++g().misses;
        count_central(shape.bytes, 1);
        if (cache && index < kSmallClasses) {
          // A batch for the next calls, from what the spans have at hand.
          Bin& bin = cache->bins[index];
          for (int i = 1; i < shape.batch && g().spans_with_free[index]; ++i) {
            FreeBlock* const block = take_from_spans(index);
            RL_UNPOISON(block, sizeof *block);
            block->next = bin.head;
            bin.head = block;
            bin.count.add(1);
          }
        }
      }
    }
  }
  return result ? result : refuse(bytes);
}

__attribute__((noinline)) void deallocate_slowly(void* block) {
  Segment* const segment = segment_of(block);
  const uint8_t index = segment->page_class[page_of(block)];
  const std::lock_guard<std::mutex> lock(g().mutex);
  ThreadCache* const cache = thread_cache();
  if (cache) {
    flush_if_asked(cache);
    add_figures(cache);
  }
  if (index == kLargeClass) {
    count_central(-static_cast<int64_t>(segment->block_bytes), -1);
    give_large(segment);
    return;
  }
  const ClassShape& shape = kTable.of[index];
  count_central(-static_cast<int64_t>(shape.bytes), -1);
  give_to_span(static_cast<FreeBlock*>(block));
  if (cache && index < kSmallClasses) shrink_bin(cache, index, shape.thread_most - shape.batch);
}

// ---- fork: the lock is free in the child, and threads that do not exist there no longer count.

void before_fork() { g().mutex.lock(); }
void after_fork_in_parent() { g().mutex.unlock(); }
void after_fork_in_child() {
  // Their lists may have been caught in the middle of a change, so the blocks in them are given up.
  for (ThreadCache* cache = g().threads; cache; cache = cache->next) {
    if (cache != t_cache) add_figures(cache);
  }
  g().threads = t_cache;
  if (t_cache) t_cache->next = t_cache->previous = nullptr;
  g().mutex.unlock();
}

__attribute__((constructor(102))) void start() {
  new (g_storage) Central;
  pthread_key_create(&g_thread_key, end_thread);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace
}  // namespace rl

void* rl_allocate(size_t bytes) {
  using namespace rl;
#if RL_REDZONE
  const size_t asked = bytes;
  bytes = bytes > SIZE_MAX - RL_REDZONE ? bytes : bytes + RL_REDZONE;
#endif
  void* result = nullptr;
  ThreadCache* const cache = t_cache;
  if (bytes <= kMostSmall && cache) [[likely]] {
    const int index = class_of(bytes);
    Bin& bin = cache->bins[index];
    FreeBlock* const block = bin.head;
    if (block) [[likely]] {
      bin.head = block->next;
      bin.count.add(static_cast<uint32_t>(-1));
      const int64_t live = cache->live_bytes.get() + kTable.of[index].bytes;
      cache->live_bytes.set(live);
      if (live > cache->live_peak.get()) cache->live_peak.set(live);
      cache->live_blocks.add(1);
      cache->allocations.add(1);
      result = block;
    }
  }
  if (!result) result = allocate_slowly(bytes);
#if RL_REDZONE
  if (result) RL_UNPOISON(result, asked);
#endif
  return result;
}

void rl_deallocate(void* block) {
  using namespace rl;
  if (!block) return;
  const uint8_t index = segment_of(block)->page_class[page_of(block)];
  ThreadCache* const cache = t_cache;
#if RL_REDZONE
  if (index != kLargeClass) {
    RL_POISON(block, kTable.of[index].bytes);
    RL_UNPOISON(block, sizeof(FreeBlock));
  }
#endif
  if (index < kSmallClasses && cache) [[likely]] {
    Bin& bin = cache->bins[index];
    const uint32_t count = bin.count.get();
    if (count < kTable.of[index].thread_most) [[likely]] {
      FreeBlock* const free = static_cast<FreeBlock*>(block);
      free->next = bin.head;
      bin.head = free;
      bin.count.set(count + 1);
      cache->live_bytes.add(-static_cast<int64_t>(kTable.of[index].bytes));
      cache->live_blocks.add(-1);
      return;
    }
  }
  deallocate_slowly(block);
}

void rl_memory_get_stats(rl_memory_stats* out) {
  using namespace rl;
  const std::lock_guard<std::mutex> lock(g().mutex);
  Central& central = g();
  if (t_cache) add_figures(t_cache);
  *out = {central.allocated_bytes, central.allocated_blocks, 0,
          central.reserved_bytes,  central.free_blocks,      central.allocations,
          central.misses};
  int64_t peak = central.allocated_bytes;
  for (const ThreadCache* cache = central.threads; cache; cache = cache->next) {
    out->allocated_bytes += cache->live_bytes.get();
    out->allocated_blocks += cache->live_blocks.get();
    out->allocations += cache->allocations.get();
    peak += cache->live_peak.get();
    for (const Bin& bin : cache->bins) out->cached_blocks += bin.count.get();
  }
  // Exact with one thread; with several, off by at most what their lists hold.
  out->peak_allocated_bytes = std::max({central.peak_bytes, peak, out->allocated_bytes});
  out->cache_hits = out->allocations - central.misses;
}

void rl_memory_reset_peak(void) {
  using namespace rl;
  const std::lock_guard<std::mutex> lock(g().mutex);
  if (t_cache) add_figures(t_cache);
  g().peak_bytes = g().allocated_bytes;
}

void rl_memory_empty_cache(void) {
  using namespace rl;
  const std::lock_guard<std::mutex> lock(g().mutex);
  g_flush_epoch.fetch_add(1, std::memory_order_relaxed);  // other threads give theirs up when they next come here
  if (t_cache) empty_thread(t_cache);
  release_all_free();
}

void rl_memory_set_limit(int64_t bytes) {
  using namespace rl;
  const std::lock_guard<std::mutex> lock(g().mutex);
  g().limit = std::max<int64_t>(bytes, 0);
}
