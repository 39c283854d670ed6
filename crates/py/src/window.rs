//! The coder of streams: a window of packets that slides, for Python.

use crate::coders::{bytes_of, generator};
use ncmesh_code::{Coded, Window as Known};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;

/// Packets that one combination may span. A window has no bound of its own.
const SPAN: RangeInclusive<usize> = 1..=65_535;

/// Last packet of a stream: the number behind it is one, too.
const LAST: u32 = u32::MAX - 1;

/// Returns the number of a packet.
fn number(of: i64) -> PyResult<u32> {
    let known = u32::try_from(of).ok().filter(|number| *number <= LAST);
    known.ok_or_else(|| PyValueError::new_err(format!("packet {of}: allowed is 0 to {LAST}")))
}

/// A combination of packets that follow each other closely.
#[pyclass(module = "ncmesh", frozen)]
pub(crate) struct Combination(Coded);

#[pymethods]
impl Combination {
    #[new]
    fn new(
        first: i64,
        coefficients: &Bound<'_, PyAny>,
        symbol: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        // A row of the window is as long as the combinations that it took in.
        let first = number(first)?;
        let mut coefficients = bytes_of(coefficients)?;

        let len = coefficients.len();
        if !SPAN.contains(&len) || first.checked_add(len as u32).is_none() {
            let message = format!(
                "{len} coefficients from packet {first}: allowed are {} to {}, up to packet {LAST}",
                SPAN.start(),
                SPAN.end()
            );
            return Err(PyValueError::new_err(message));
        }

        // Zeros behind the last coefficient say nothing.
        let last = coefficients.iter().rposition(|c| *c != 0);
        coefficients.truncate(last.map_or(0, |last| last + 1));
        Ok(Self(Coded { first, coefficients, symbol: bytes_of(symbol)? }))
    }

    /// Returns the number of the first packet in it.
    #[getter]
    fn first(&self) -> u32 {
        self.0.first
    }

    /// Returns the coefficients of that packet and those behind it, one a byte.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.coefficients)
    }

    /// Returns the combined symbols.
    #[getter]
    fn symbol<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.symbol)
    }
}

/// Packets of an endless stream that a node knows, and combinations of them, over GF(2^8).
#[pyclass(module = "ncmesh")]
pub(crate) struct Window {
    known: Known,
    rng: ChaCha8Rng,
}

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (*, seed=None))]
    fn new(seed: Option<u64>) -> PyResult<Self> {
        Ok(Self { known: Known::default(), rng: generator(seed)? })
    }

    /// Adds a packet of the stream. Returns whether it was innovative.
    fn add(&mut self, number: i64, symbol: &Bound<'_, PyAny>) -> PyResult<bool> {
        // A packet is the combination of itself alone.
        let first = self::number(number)?;
        Ok(self.known.absorb(Coded { first, coefficients: vec![1], symbol: bytes_of(symbol)? }))
    }

    /// Adds a combination. Returns whether it was innovative.
    fn receive(&mut self, packet: &Combination) -> bool {
        self.known.absorb(packet.0.clone())
    }

    /// Returns a random combination of all that is known of the packets from `first` to before
    /// `end`; `None` if that is nothing.
    #[pyo3(signature = (first=0, end=None))]
    fn combine(&mut self, first: i64, end: Option<i64>) -> PyResult<Option<Combination>> {
        // A row that reaches beyond the range is left out, whatever it holds within.
        let end = end.map_or(Ok(u32::MAX), number)?;

        let packets = number(first)?..end;
        Ok(self.known.combine(packets, |_| true, &mut self.rng).map(Combination))
    }

    /// Returns a packet of the stream, `None` if it is not known yet.
    fn packet<'py>(&self, py: Python<'py>, number: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let symbol = self.known.packet(self::number(number)?);
        Ok(symbol.map(|symbol| PyBytes::new(py, symbol)))
    }

    /// Forgets what begins with a packet before `start`.
    fn forget_before(&mut self, start: i64) -> PyResult<()> {
        self.known.forget_before(number(start)?);
        Ok(())
    }

    /// Returns the number of linearly independent packets held.
    #[getter]
    fn rank(&self) -> usize {
        self.known.len()
    }
}
