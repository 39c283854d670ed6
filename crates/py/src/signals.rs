//! Handling of Ctrl-C while compiled code runs without the GIL.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Interval at which a run checks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Exception raised by Python's signal handlers during a run.
pub(crate) struct Signals {
    checked: Instant,
    raised: PyResult<()>,
}

impl Signals {
    /// Returns a state in which nothing was raised.
    pub(crate) fn new() -> Self {
        Self { checked: Instant::now(), raised: Ok(()) }
    }

    /// Checks for signals once each interval. Breaks if the run must end.
    pub(crate) fn check(&mut self) -> ControlFlow<()> {
        // Attaching to the interpreter may wait for another thread, so it is not done at each call.
        if self.checked.elapsed() >= CHECK_INTERVAL {
            self.checked = Instant::now();
            #[allow(clippy::redundant_closure_for_method_calls)] // Its lifetimes do not fit.
            let raised = Python::attach(|py| py.check_signals());
            self.raised = raised;
        }
        if self.raised.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the exception, if there is one.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.raised
    }
}
