//! ncmesh scenarios and the virtual-clock driver.
