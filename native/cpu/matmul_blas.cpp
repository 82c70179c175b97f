// Finds and loads the CBLAS library at first use.
#include "cpu/matmul_blas.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "rushlight/matmul.h"

namespace rl {
namespace detail {
const BlasTable* loaded_blas = nullptr;
}

namespace {

std::mutex g_mutex;
std::string* g_path = nullptr;  // what rl_set_blas_library was told
void* g_library = nullptr;
std::string* g_loaded_path = nullptr;
BlasTable g_table;

// Packaged OpenBLAS builds rename their symbols so that two copies can live in one process.
void* find_symbol(void* library, const char* name) {
  static constexpr const char* prefixes[] = {"scipy_", "", "openblas_"};
  for (const char* prefix : prefixes) {
    char full[128];
    std::snprintf(full, sizeof full, "%s%s", prefix, name);
    if (void* address = dlsym(library, full)) return address;
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(find_symbol(library, name));
  if (!function && missing.empty()) missing = name;
  return function != nullptr;
}

// Null and a reason, or the handle.
void* open_library(const char* path, std::string& reason) {
  // Local: the symbols must not meet those of another BLAS in the process.
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const text = dlerror();
    reason += std::string(reason.empty() ? "" : "; ") + (text ? text : path);
    return nullptr;
  }
  std::string missing;
  BlasTable t;
  find(library, "cblas_sgemm", t.sgemm, missing);
  find(library, "cblas_dgemm", t.dgemm, missing);
  find(library, "cblas_cgemm", t.cgemm, missing);
  find(library, "cblas_zgemm", t.zgemm, missing);
  find(library, "cblas_sgemv", t.sgemv, missing);
  find(library, "cblas_dgemv", t.dgemv, missing);
  find(library, "cblas_cgemv", t.cgemv, missing);
  find(library, "cblas_zgemv", t.zgemv, missing);
  find(library, "cblas_sdot", t.sdot, missing);
  find(library, "cblas_ddot", t.ddot, missing);
  find(library, "cblas_cdotu_sub", t.cdotu, missing);
  find(library, "cblas_cdotc_sub", t.cdotc, missing);
  find(library, "cblas_zdotu_sub", t.zdotu, missing);
  find(library, "cblas_zdotc_sub", t.zdotc, missing);
  if (!missing.empty()) {
    reason += std::string(reason.empty() ? "" : "; ") + path + " has no function " + missing;
    dlclose(library);
    return nullptr;
  }
  g_table = t;
  return library;
}

}  // namespace

namespace detail {

const BlasTable* load_blas() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (loaded_blas) return loaded_blas;
  std::string reason;
  const char* chosen = std::getenv("RUSHLIGHT_BLAS");
  if (chosen && *chosen) {
    g_library = open_library(chosen, reason);
  } else if (g_path) {
    chosen = g_path->c_str();
    g_library = open_library(chosen, reason);
  } else {
    for (const char* name : {"libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so"}) {
      chosen = name;
      if ((g_library = open_library(name, reason))) break;
    }
  }
  if (!g_library) {
    fail(RL_RUNTIME_ERROR,
         "matrix product: no BLAS library could be loaded; install the package scipy-openblas32, or set RUSHLIGHT_BLAS "
         "to the "
         "path of an OpenBLAS library (%s)",
         reason.c_str());
    return nullptr;
  }
  g_loaded_path = new std::string(chosen);
  // Its own threads split some sums by their number, which changes the bits; ours work on fixed blocks.
  if (auto* set_threads = reinterpret_cast<void (*)(int)>(find_symbol(g_library, "openblas_set_num_threads")))
    set_threads(1);
  __atomic_store_n(&loaded_blas, &g_table, __ATOMIC_RELEASE);
  return loaded_blas;
}

}  // namespace detail
}  // namespace rl

rl_status rl_set_blas_library(const char* path) {
  using namespace rl;
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_loaded_path && path && *g_loaded_path != path)
    return fail(RL_RUNTIME_ERROR, "set_blas_library: %s is loaded already, so %s cannot be", g_loaded_path->c_str(),
                path);
  delete g_path;
  g_path = path ? new std::string(path) : nullptr;
  return RL_OK;
}

int rl_blas_loaded(void) { return __atomic_load_n(&rl::detail::loaded_blas, __ATOMIC_ACQUIRE) != nullptr; }

void* rl_blas_symbol(const char* name) {
  if (!name) {
    rl::fail(RL_VALUE_ERROR, "blas_symbol: the name is NULL");
    return nullptr;
  }
  if (!rl::blas()) return nullptr;
  void* const address = rl::find_symbol(rl::g_library, name);
  if (!address) rl::fail(RL_RUNTIME_ERROR, "blas_symbol: %s has no function %s", rl::g_loaded_path->c_str(), name);
  return address;
}
