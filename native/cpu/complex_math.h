// Functions of complex numbers for the elementwise kernels.
//
// Those with branch cuts come from the C library, whose complex functions follow C's Annex G: the sign of a zero chooses
// the side of a cut.
#pragma once

#include <complex.h>

#include "cpu/elementwise_math.h"
