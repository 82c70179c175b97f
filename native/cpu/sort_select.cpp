// rl_topk and rl_select: some of the order, without sorting it all.
#include "cpu/sort_count.h"

namespace rl {
namespace {

// ---- topk

struct TopContext {
  int64_t k;
  bool reverse;  // the largest: the first of the descending order
};

struct Candidate {
  uint64_t key, index;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
};

constexpr int64_t kTile = 512;

// Whether the first k of n elements are found among candidates, and how many words these take.
bool takes_candidates(int64_t n, int64_t k) { return n >= 256 && k * 8 < n; }
int64_t candidate_words(int64_t k) { return 2 * std::max(2 * k, k + kTile); }

// The first k of n elements that are dense, for k far below n: candidates are those below the k-th least so far.
template <class T>
void top_candidates(const SliceCall& call, const TopContext& context, SortSpace& space) {
  using Key = typename SortKey<T>::Key;
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const Key flip = context.reverse ? static_cast<Key>(~Key(0)) : Key(0);
  const Stored* elements = reinterpret_cast<const Stored*>(call.src);
  const auto find = sort_table().below[dtype_of<T>];
  Candidate* const kept = reinterpret_cast<Candidate*>(space.words());
  int64_t size = 0;
  int32_t found[kTile + 16];
  uint64_t bound = 0;
  const auto tighten = [&] {
    std::nth_element(kept, kept + (context.k - 1), kept + size);
    size = context.k;
    bound = kept[size - 1].key;
  };
  const auto add = [&](int64_t i) {
    kept[size++] = {static_cast<uint64_t>(static_cast<Key>(load_key<T>(elements + i) ^ flip)),
                    static_cast<uint64_t>(i)};
  };
  int64_t i = 0;
  for (const int64_t first = std::max<int64_t>(2 * context.k, 64); i < first; ++i) add(i);
  tighten();
  // Tiles as long as what came before: about k of a tile's elements are new candidates.
  for (int64_t tile; i < call.n; i += tile) {
    tile = std::min({kTile, i, call.n - i});
    const int64_t count = find(elements + i, tile, bound, context.reverse, found);
    for (int64_t j = 0; j < count; ++j) add(i + found[j]);
    if (count > 0) tighten();
  }
  std::sort(kept, kept + size);
  for (int64_t j = 0; j < size; ++j) {
    if (call.values != nullptr)
      *reinterpret_cast<Stored*>(call.values + j * call.values_step) = elements[kept[j].index];
    if (call.indices != nullptr)
      *reinterpret_cast<int64_t*>(call.indices + j * call.indices_step) = static_cast<int64_t>(kept[j].index);
  }
}

template <class T>
rl_status top_body(const SliceCall& call, SortSpace& space, const void* state) {
  const TopContext& context = *static_cast<const TopContext*>(state);
  if (context.k == 0) return RL_OK;
  if (takes_candidates(call.n, context.k) && call.src_step == static_cast<int64_t>(sizeof(T))) {
    top_candidates<T>(call, context, space);
    return RL_OK;
  }
  if constexpr (kCountable<T>) {
    if (sorts_by_counting<T>(call.n)) return sort_counted<T>(call, context.k, context.reverse);
  }
  const SliceWords shape = sort_slice<T>(call.src, call.src_step, call.n, context.reverse, space);
  emit_words<T>(call, shape, space.words(), context.k, context.reverse);
  return RL_OK;
}

// ---- the k-th smallest

// Brings the k-th least of n distinct words to words[k] by narrowing down to one bucket at a time.
uint64_t select_word(uint64_t* words, int64_t n, int64_t k, int low, int high) {
  constexpr int kDigit = 11;
  constexpr int64_t kFew = 1024;
  while (n > kFew && high > low) {
    const int shift = std::max(low, high - kDigit);
    const uint64_t mask = (uint64_t{1} << (high - shift)) - 1;
    int64_t counts[1 << kDigit] = {};
    for (int64_t i = 0; i < n; ++i) ++counts[(words[i] >> shift) & mask];
    uint64_t bucket = 0;
    while (k >= counts[bucket]) k -= counts[bucket++];
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      words[kept] = words[i];
      kept += ((words[i] >> shift) & mask) == bucket;
    }
    n = kept;
    high = shift;
  }
  std::nth_element(words, words + k, words + n);
  return words[k];
}

template <class T>
int64_t count_nans(const char* from, int64_t step, int64_t n) {
  int64_t count = 0;
  if constexpr (is_float_v<T>) {
    if (step == static_cast<int64_t>(sizeof(T))) {
      const T* elements = reinterpret_cast<const T*>(from);
      for (int64_t i = 0; i < n; ++i) count += SortKey<T>::nan(SortKey<T>::of(elements[i]));
    } else {
      for (int64_t i = 0; i < n; ++i) count += SortKey<T>::nan(load_key<T>(from + i * step));
    }
  }
  return count;
}

struct SelectContext {
  rl_select_kind kind;
  int64_t k;
};

template <class T>
rl_status select_body(const SliceCall& call, SortSpace& space, const void* state) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  using Key = typename SortKey<T>::Key;
  const SelectContext& context = *static_cast<const SelectContext*>(state);
  const auto at = [&](int64_t i) { return call.src + i * call.src_step; };
  const auto is_nan = [&](int64_t i) { return SortKey<T>::nan(load_key<T>(at(i))); };
  int64_t index = -1;
  if (context.kind == RL_SELECT_MODE && sorts_by_counting<T>(call.n)) {
    if constexpr (kCountable<T>) index = mode_counted<T>(call.src, call.src_step, call.n);
    if (index < 0) return RL_MEMORY_ERROR;
  } else if (context.kind == RL_SELECT_MODE) {
    const SliceWords shape = sort_slice<T>(call.src, call.src_step, call.n, false, space);
    const uint64_t* words = space.words();
    const uint64_t mask = (uint64_t{1} << shape.index_bits) - 1;
    const auto key = [&](int64_t i) { return load_key<T>(at(static_cast<int64_t>(words[i] & mask))); };
    int64_t best = 0;
    for (int64_t begin = 0; begin < call.n;) {
      const Key here = key(begin);
      int64_t end = begin + 1;
      if (!SortKey<T>::nan(here)) {
        while (end < call.n && key(end) == here) ++end;
      }
      if (end - begin > best) {
        best = end - begin;
        index = static_cast<int64_t>(words[end - 1] & mask);
      }
      begin = end;
    }
  } else {
    int64_t k = context.k - 1, nans = 0;
    if (is_float_v<T> && context.kind != RL_SELECT_KTH) {
      nans = count_nans<T>(call.src, call.src_step, call.n);
      if (nans > 0) {
        for (index = 0; !is_nan(index);) ++index;
      }
    }
    if (context.kind != RL_SELECT_KTH) k = std::max<int64_t>(0, (call.n - nans - 1) / 2);
    if (nans > 0 && context.kind == RL_SELECT_MEDIAN) {
      // the first NaN
    } else if (selects_by_counting<T>(call.n)) {
      index = select_counted<T>(call.src, call.src_step, call.n, k);
      if (index < 0) return RL_MEMORY_ERROR;
    } else {
      const SliceWords shape = load_slice<T>(call.src, call.src_step, call.n, false, space);
      const uint64_t mask = (uint64_t{1} << shape.index_bits) - 1;
      if (shape.shift == 0) {
        index = static_cast<int64_t>(select_word(space.words(), call.n, k, shape.index_bits, shape.high) & mask);
      } else {
        // Words have lost bits of their keys: compare those themselves.
        const uint64_t* keys = space.keys();
        uint64_t* order = space.words();
        for (int64_t i = 0; i < call.n; ++i) order[i] = static_cast<uint64_t>(i);
        std::nth_element(order, order + k, order + call.n,
                         [&](uint64_t a, uint64_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
        index = static_cast<int64_t>(order[k]);
      }
    }
  }
  if (call.values != nullptr) *reinterpret_cast<Stored*>(call.values) = *reinterpret_cast<const Stored*>(at(index));
  if (call.indices != nullptr) *reinterpret_cast<int64_t*>(call.indices) = index;
  return RL_OK;
}

}  // namespace
}  // namespace rl

extern "C" {

rl_status rl_topk(const rl_tensor* src, int32_t dim, int64_t k, int largest, const rl_tensor* values,
                  const rl_tensor* indices) {
  const int64_t n = src->ndim == 0 ? 1 : (dim >= 0 && dim < src->ndim ? src->shape[dim] : 0);
  if (k < 0 || k > n) {
    return rl::fail(RL_RUNTIME_ERROR, "topk: selected index k out of range; expected 0 to %lld, got %lld",
                    static_cast<long long>(n), static_cast<long long>(k));
  }
  rl::Slices plan;
  RL_TRY(rl::plan_slices("topk", *src, dim, src->ndim == 0 ? -1 : k, values, indices, &plan));
  const rl::TopContext context{k, largest != 0};
  rl::SliceBody body = nullptr;
  const bool candidates = rl::takes_candidates(n, k), dense = plan.steps[0] == plan.item;
  RL_DISPATCH_REAL(src->dtype, T, {
    body = rl::top_body<T>;
    if (candidates)
      plan.words = dense ? rl::candidate_words(k) : std::max(n, rl::candidate_words(k));
    else if (rl::sorts_by_counting<T>(n))
      plan.words = 0;
  });
  return rl::for_each_slice(plan, body, &context);
}

rl_status rl_select(const rl_tensor* src, int32_t dim, rl_select_kind kind, int64_t k, const rl_tensor* values,
                    const rl_tensor* indices) {
  static constexpr const char* names[] = {"kthvalue", "median", "nanmedian", "mode"};
  const char* name = kind >= 0 && kind <= RL_SELECT_MODE ? names[kind] : "select";
  rl::Slices plan;
  RL_TRY(rl::plan_slices(name, *src, dim, 1, values, indices, &plan));
  if (plan.n == 0) {
    return rl::fail(RL_INDEX_ERROR, "%s(): Expected reduction dim %d to have non-zero size, got shape %s", name, dim,
                    rl::shape_text(src));
  }
  if (kind == RL_SELECT_KTH && (k < 1 || k > plan.n)) {
    return rl::fail(RL_RUNTIME_ERROR,
                    "kthvalue(): selected number k out of range for dimension %d; expected 1 to %lld, got %lld", dim,
                    static_cast<long long>(plan.n), static_cast<long long>(k));
  }
  const rl::SelectContext context{kind, k};
  rl::SliceBody body = nullptr;
  RL_DISPATCH_REAL(src->dtype, T, {
    body = rl::select_body<T>;
    if (kind == RL_SELECT_MODE ? rl::sorts_by_counting<T>(plan.n) : rl::selects_by_counting<T>(plan.n)) plan.words = 0;
  });
  return rl::for_each_slice(plan, body, &context);
}

}  // extern "C"
