//! Handling of Ctrl-C, and display of progress, while compiled code runs without the GIL.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Interval at which a run checks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Exception raised by Python's signal handlers, or by the display of progress, during a run.
pub(crate) struct Signals {
    checked: Instant,
    progress: Option<Py<PyAny>>,
    raised: PyResult<()>,
}

impl Signals {
    /// Returns a state in which nothing was raised.
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { checked: Instant::now(), progress, raised: Ok(()) }
    }

    /// Checks for signals once each interval, and reports the `share` that is done. Breaks if the
    /// run must end.
    pub(crate) fn check(&mut self, share: impl FnOnce() -> f64) -> ControlFlow<()> {
        // Attaching to the interpreter may wait for another thread, so it is not done at each call.
        if self.checked.elapsed() >= CHECK_INTERVAL {
            self.checked = Instant::now();
            let progress = self.progress.as_ref().map(|shown| (shown, share()));
            self.raised = Python::attach(|py| {
                if let Some((shown, share)) = progress {
                    shown.call1(py, (share,))?;
                }
                py.check_signals()
            });
        }

        if self.raised.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the exception, if there is one.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.raised
    }
}
