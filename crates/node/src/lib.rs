//! The ncmesh daemon and the emulated ether on the wall clock.

pub mod etherd;
pub mod radio;
