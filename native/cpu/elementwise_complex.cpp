// Kernels of complex numbers: compiled once, since most of their time goes to functions of the C library.
#include "cpu/complex_math.h"
#include "cpu/elementwise.h"

// What follows is written in terms of the above.
#include "elementwise_complex.inc"
