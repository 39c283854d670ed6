//! Field arithmetic on arrays with one element a byte.

use ncmesh_gf::{Field, Kernels, Rows, RowsMut};
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyValueError, PyZeroDivisionError};
use pyo3::prelude::*;

/// Returns the field with this name.
pub(crate) fn field(name: &str) -> PyResult<Field> {
    match name {
        "gf2" => Ok(Field::Gf2),
        "gf16" => Ok(Field::Gf16),
        "gf256" => Ok(Field::Gf256),
        _ => {
            let message = format!("no field is called {name:?}: there are gf2, gf16, gf256");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Returns the number of elements of the field.
#[pyfunction]
pub(crate) fn field_order(name: &str) -> PyResult<usize> {
    Ok(field(name)?.order())
}

/// Multiplies arrays element by element.
#[pyfunction]
pub(crate) fn field_multiply<'py>(
    py: Python<'py>,
    a: PyReadonlyArray1<'py, u8>,
    b: PyReadonlyArray1<'py, u8>,
    name: &str,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let field = field(name)?;
    let a = a.as_slice()?;
    let b = b.as_slice()?;
    Ok(PyArray1::from_iter(py, a.iter().zip(b).map(|(a, b)| field.mul(*a, *b))))
}

/// Inverts each element.
#[pyfunction]
pub(crate) fn field_inverse<'py>(
    py: Python<'py>,
    a: PyReadonlyArray1<'py, u8>,
    name: &str,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let field = field(name)?;
    let inverses: Option<Vec<u8>> = a.as_slice()?.iter().map(|a| field.inv(*a)).collect();
    let inverses = inverses.ok_or_else(|| PyZeroDivisionError::new_err("0 has no inverse"))?;
    Ok(PyArray1::from_vec(py, inverses))
}

/// Multiplies two matrices.
#[pyfunction]
pub(crate) fn field_matmul<'py>(
    py: Python<'py>,
    a: PyReadonlyArray2<'py, u8>,
    b: PyReadonlyArray2<'py, u8>,
    name: &str,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    // The inner sizes must agree. Rows of a C-ordered array lie one behind the other, as the
    // kernels need them; other orders are refused.
    let kernels = Kernels::best(field(name)?);
    let ([rows, inner], [given, columns]) =
        ([a.shape()[0], a.shape()[1]], [b.shape()[0], b.shape()[1]]);
    if inner != given {
        let message = format!("{rows} x {inner} times {given} x {columns}: the inner sizes differ");
        return Err(PyValueError::new_err(message));
    }

    let wrong = |e: ncmesh_gf::GfError| PyValueError::new_err(e.to_string());
    let product = PyArray2::zeros(py, [rows, columns], false);
    let left = Rows::packed(a.as_slice()?, inner, rows).map_err(wrong)?;
    let right = Rows::packed(b.as_slice()?, columns, inner).map_err(wrong)?;
    let mut writable = product.readwrite();
    let mut output = RowsMut::packed(writable.as_slice_mut()?, columns, rows).map_err(wrong)?;
    kernels.product(left, right, &mut output).map_err(wrong)?;
    drop(writable);
    Ok(product)
}

/// Returns the rank of a matrix.
#[pyfunction]
pub(crate) fn field_rank(a: PyReadonlyArray2<'_, u8>, name: &str) -> PyResult<usize> {
    // Gaussian elimination: each pivot clears its column below, and the pivots are the rank.
    let kernels = Kernels::best(field(name)?);
    let columns = a.shape()[1];
    let mut rows: Vec<Vec<u8>> = a.as_slice()?.chunks(columns.max(1)).map(<[u8]>::to_vec).collect();
    let mut rank = 0;
    for column in 0..columns {
        let Some(found) = (rank..rows.len()).find(|row| rows[*row][column] != 0) else { continue };
        rows.swap(rank, found);
        let (above, below) = rows.split_at_mut(rank + 1);
        clear_column(kernels, &above[rank], below, column)?;
        rank += 1;
    }

    Ok(rank)
}

/// Subtracts multiples of `pivot` from all rows, so that `column` becomes zero.
fn clear_column(
    kernels: Kernels,
    pivot: &[u8],
    rows: &mut [Vec<u8>],
    column: usize,
) -> PyResult<()> {
    let field = kernels.field();
    for row in rows {
        let factor = field.div(row[column], pivot[column]).unwrap_or_default();
        kernels.axpy(factor, pivot, row).map_err(|e| PyValueError::new_err(e.to_string()))?;
    }
    Ok(())
}
