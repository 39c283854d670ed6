//! Encoder, recoder and decoder of one generation. A packet is its packed coefficients followed by
//! its symbol.

use crate::fields::field;
use ncmesh_code::{CodeError, Shape, draw, pack, packed_len, unpack};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Returns a `ValueError` for an error of a coder.
fn refused(error: CodeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the shape of a generation over the field `name`.
fn shape(generation: usize, symbol_size: usize, name: &str) -> PyResult<Shape> {
    Shape::new(field(name)?, generation, symbol_size).map_err(refused)
}

/// Returns a random generator from `seed`, or from the operating system.
pub(crate) fn generator(seed: Option<u64>) -> PyResult<ChaCha8Rng> {
    if let Some(seed) = seed {
        return Ok(ChaCha8Rng::seed_from_u64(seed));
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(ChaCha8Rng::from_seed(key))
}

/// Returns the bytes of a bytes-like object.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    // Arrays of other types would be read byte by byte, which is never meant.
    let buffer = PyBuffer::<u8>::get(object).map_err(|_| {
        let kind = object.get_type();
        PyTypeError::new_err(format!("a bytes-like object of unsigned bytes is needed, not {kind}"))
    })?;
    buffer.to_vec(object.py())
}

/// Splits a packet of `shape` into coefficients and symbol.
fn split(shape: Shape, packet: &[u8]) -> PyResult<(Vec<u8>, &[u8])> {
    // The length is the only thing that a packet can be checked by: any coefficients are valid.
    let head = packed_len(shape.field(), shape.generation_size());
    let expected = head + shape.symbol_size();
    if packet.len() != expected {
        let got = packet.len();
        let message = format!("a packet has {expected} bytes here, not {got}");
        return Err(PyValueError::new_err(message));
    }

    let mut coefficients = vec![0; shape.generation_size()];
    unpack(shape.field(), &packet[..head], &mut coefficients).map_err(refused)?;
    Ok((coefficients, &packet[head..]))
}

/// Returns a packet whose coefficients and symbol `fill` writes.
fn packet<'py>(
    py: Python<'py>,
    shape: Shape,
    fill: impl FnOnce(&mut [u8], &mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    // The symbol is written into Python's object, without a copy.
    let head = packed_len(shape.field(), shape.generation_size());
    let mut coefficients = vec![0; shape.generation_size()];
    PyBytes::new_with(py, head + shape.symbol_size(), |bytes| {
        let (packed, symbol) = bytes.split_at_mut(head);
        fill(&mut coefficients, symbol)?;
        pack(shape.field(), &coefficients, packed).map_err(refused)
    })
}

/// Source of one generation.
#[pyclass(module = "ncmesh")]
pub(crate) struct Encoder {
    inner: ncmesh_code::Encoder,
    rng: ChaCha8Rng,
}

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (generation, symbol_size, field="gf256", *, seed=None))]
    fn new(
        generation: usize,
        symbol_size: usize,
        field: &str,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let shape = shape(generation, symbol_size, field)?;
        Ok(Self { inner: ncmesh_code::Encoder::new(shape), rng: generator(seed)? })
    }

    /// Loads the generation's source data, at most generation * symbol_size bytes, padded with
    /// zeros.
    fn load(&mut self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.load(&bytes_of(data)?).map_err(refused)
    }

    /// Returns a packet with these coefficients, one a byte, or with random ones.
    #[pyo3(signature = (coefficients=None))]
    fn encode<'py>(
        &mut self,
        py: Python<'py>,
        coefficients: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        // The encoder checks the number and the range of given coefficients.
        let shape = self.inner.shape();
        let mut chosen = vec![0; shape.generation_size()];
        match coefficients {
            Some(given) => chosen = bytes_of(given)?,
            None => draw(shape.field(), &mut self.rng, &mut chosen),
        }

        packet(py, shape, |coefficients, symbol| {
            self.inner.encode(&chosen, symbol).map_err(refused)?;
            coefficients.copy_from_slice(&chosen);
            Ok(())
        })
    }
}

/// Relay: keeps the innovative packets of one generation and makes fresh combinations of them.
#[pyclass(module = "ncmesh")]
pub(crate) struct Recoder {
    inner: ncmesh_code::Recoder,
    rng: ChaCha8Rng,
}

#[pymethods]
impl Recoder {
    #[new]
    #[pyo3(signature = (generation, symbol_size, field="gf256", *, seed=None))]
    fn new(
        generation: usize,
        symbol_size: usize,
        field: &str,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let shape = shape(generation, symbol_size, field)?;
        Ok(Self { inner: ncmesh_code::Recoder::new(shape), rng: generator(seed)? })
    }

    /// Adds a packet. Returns whether it was innovative.
    fn receive(&mut self, packet: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(packet)?;
        let (coefficients, symbol) = split(self.inner.shape(), &bytes)?;
        Ok(self.inner.absorb(&coefficients, symbol).map_err(refused)?.is_innovative())
    }

    /// Returns a random combination of all packets held.
    fn recode<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        // Without a packet the only combination is zero, which tells nobody anything.
        if self.inner.rank() == 0 {
            return Err(PyValueError::new_err("nothing was received yet: nothing to recode"));
        }
        let Self { inner, rng } = self;
        packet(py, inner.shape(), |coefficients, symbol| {
            inner.recode(rng, coefficients, symbol).map(drop).map_err(refused)
        })
    }

    /// Returns the number of linearly independent packets held.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank()
    }
}

/// Receiver of one generation.
#[pyclass(module = "ncmesh")]
pub(crate) struct Decoder {
    inner: ncmesh_code::Decoder,
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(signature = (generation, symbol_size, field="gf256"))]
    fn new(generation: usize, symbol_size: usize, field: &str) -> PyResult<Self> {
        Ok(Self { inner: ncmesh_code::Decoder::new(shape(generation, symbol_size, field)?) })
    }

    /// Adds a packet. Returns whether it was innovative.
    fn receive(&mut self, packet: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(packet)?;
        let (coefficients, symbol) = split(self.inner.shape(), &bytes)?;
        Ok(self.inner.absorb(&coefficients, symbol).map_err(refused)?.is_innovative())
    }

    /// Returns the number of linearly independent packets held.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// Returns whether the generation can be decoded.
    #[getter]
    fn is_complete(&self) -> bool {
        self.inner.is_complete()
    }

    /// Returns the generation's source data, including the zeros that padded it.
    fn data<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let rank = self.inner.rank();
        let generation = self.inner.shape().generation_size();
        let Some(data) = self.inner.decode() else {
            let message = format!("{rank} of {generation} independent packets are there");
            return Err(PyValueError::new_err(message));
        };
        Ok(PyBytes::new(py, data))
    }
}
