// Kernels of complex numbers: compiled once, since most of their time goes to functions of the C library.
#include "elementwise_complex.inc"
#include "cpu/complex_math.h"
#include "cpu/elementwise.h"
