//! ncmesh scenarios and the virtual-clock driver.

pub mod scenario;
