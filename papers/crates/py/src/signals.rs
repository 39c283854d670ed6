//! Ctrl-C while Python waits for a model that runs without the GIL.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Time between two looks at Python's signal handlers.
const PERIOD: Duration = Duration::from_millis(50);

/// Polls Python's signal handlers and keeps the exception that one of them raised.
pub(crate) struct Signals {
    polled: Instant,
    raised: PyResult<()>,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self { polled: Instant::now(), raised: Ok(()) }
    }

    /// Says whether the model should stop. Takes the GIL once per `PERIOD`.
    pub(crate) fn poll(&mut self) -> ControlFlow<()> {
        if self.polled.elapsed() >= PERIOD {
            // A model polls far more often than Python needs it.
            self.polled = Instant::now();
            #[allow(clippy::redundant_closure_for_method_calls)] // Its lifetimes do not fit.
            let raised = Python::attach(|py| py.check_signals());
            self.raised = raised;
        }
        if self.raised.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the exception that stopped the model, if there was one.
    pub(crate) fn into_result(self) -> PyResult<()> {
        self.raised
    }
}
