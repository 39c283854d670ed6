//! The ncmesh daemon and the emulated ether on the wall clock.
