// The table of operations, as tools/generate.py writes it from the records in rushlight/ops.
#include <cmath>

#include "op.h"
#include "rushlight/elementwise.h"

#include "elementwise_ids.h"
#include "op_table.inc"
