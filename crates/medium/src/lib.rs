//! The radio medium as a sans-IO machine: propagation and medium access.
