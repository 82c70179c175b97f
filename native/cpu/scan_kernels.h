// Inner loops of the scans, compiled once per instruction set.
#pragma once

#include "cpu/isa.h"

namespace rl {

// Scans `lines` neighbouring lines of n elements: element r of line j stands at j * line_step + r * step, in both
// arrays, which may be the same.
using ScanLoop = void (*)(const void* in, void* out, int64_t lines, int64_t n, int64_t line_step, int64_t step);
using ScanIndexLoop = void (*)(const void* in, void* values, int64_t* indices, int64_t lines, int64_t n,
                               int64_t line_step, int64_t step);

enum ScanType : int { kScanInt64, kScanFloat, kScanDouble, kScanComplex64, kScanComplex128, kScanTypes };

struct ScanTable {
  ScanLoop sum[kScanTypes], product[kScanTypes];
  ScanIndexLoop max[RL_DTYPE_COUNT], min[RL_DTYPE_COUNT];  // null for complex numbers
};

RL_ISA_DECLARE(ScanTable, scan_table)

}  // namespace rl
