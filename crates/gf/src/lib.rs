//! Finite-field kernels for network coding: GF(2), GF(2^4), GF(2^8).
