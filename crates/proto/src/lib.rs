//! ncmesh protocol engines as sans-IO state machines.
