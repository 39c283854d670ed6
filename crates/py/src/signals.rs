//! Ctrl-C while Python waits for compiled code that runs without the GIL.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often a run looks whether it is interrupted.
const LOOK: Duration = Duration::from_millis(50);

/// What Python's signal handlers raised meanwhile.
pub(crate) struct Signals {
    looked: Instant,
    raised: PyResult<()>,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self { looked: Instant::now(), raised: Ok(()) }
    }

    /// Looks now and then whether the run is to end.
    pub(crate) fn look(&mut self) -> ControlFlow<()> {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            #[allow(clippy::redundant_closure_for_method_calls)] // Its lifetimes do not fit.
            let raised = Python::attach(|py| py.check_signals());
            self.raised = raised;
        }
        if self.raised.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What was raised.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.raised
    }
}
