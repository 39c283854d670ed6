//! The compiled module `ncmesh._ncmesh`: thin bindings of codes, fields, plans and simulators.
//!
//! Their documentation for Python is in `python/ncmesh`, where users read it.

#![allow(clippy::needless_pass_by_value)] // Arguments from Python come by value.

mod coders;
mod fields;
mod plain;
mod planned;
mod plans;
mod signals;
mod simulate;
mod window;

use pyo3::prelude::*;

pyo3::create_exception!(
    _ncmesh,
    ScenarioError,
    pyo3::exceptions::PyValueError,
    "A scenario, or a setting of one, is wrong: what, and what is allowed."
);
pyo3::create_exception!(
    _ncmesh,
    UnreachableError,
    pyo3::exceptions::PyRuntimeError,
    "A receiver cannot be reached from the source over the links as they were measured."
);

#[pymodule]
mod _ncmesh {
    use ncmesh_engines::AddError;
    use pyo3::exceptions::PyRuntimeError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::coders::{Decoder, Encoder, Recoder};
    #[pymodule_export]
    use super::fields::{field_inverse, field_matmul, field_multiply, field_order, field_rank};
    #[pymodule_export]
    use super::plans::{more_largest_threshold, more_plan, pacifier_plan};
    #[pymodule_export]
    use super::simulate::{check, loss_matrix, mesh, result_schema, schemes, simulate};
    #[pymodule_export]
    use super::window::{Combination, Window};
    #[pymodule_export]
    use super::{ScenarioError, UnreachableError};

    /// Adds the scheme that follows a plan of Python's.
    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        let late = |error: AddError| PyRuntimeError::new_err(error.to_string());
        ncmesh_engines::add(&[super::planned::PLANNED]).map_err(late)
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name for it.
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
