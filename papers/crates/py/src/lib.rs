//! The compiled module `ncmesh_papers._models`: bindings of the papers' slot models.
//!
//! `cross` binds the trials of CORE's cross, `wireline` the slotted network of multirate multicast.
//! The functions are thin; `papers/python/ncmesh_papers` documents what they mean for Python.

#![allow(clippy::needless_pass_by_value)] // Arguments from Python come by value.

mod cross;
mod signals;
mod wireline;

use pyo3::prelude::*;

#[pymodule]
mod _models {
    #[pymodule_export]
    use super::cross::cross_transmissions;
    #[pymodule_export]
    use super::wireline::{
        multirate_simulate, multirate_trees, multirate_utility, multirate_worth,
    };

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name for it.
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
