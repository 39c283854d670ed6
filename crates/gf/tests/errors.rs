//! What the public interface refuses, and that it does so without a panic.

use ncmesh_gf::{Field, GfError, Kernels, RowBuffer, Rows, RowsMut};

#[test]
fn lengths_that_disagree() {
    let kernels = Kernels::best(Field::Gf256);
    let mut y = [0; 4];
    assert_eq!(kernels.axpy(1, &[0; 3], &mut y), Err(GfError::Length { expected: 4, got: 3 }));
    assert_eq!(kernels.xor(&[0; 5], &mut y), Err(GfError::Length { expected: 4, got: 5 }));
    let rows = [0; 8];
    let rows = Rows::packed(&rows, 4, 2).unwrap();
    assert!(kernels.combine(&[1; 3], rows, &mut y).is_err());
    assert!(kernels.combine(&[1; 2], rows, &mut [0; 3]).is_err());
    assert!(kernels.accumulate(&[1; 1], rows, &mut y).is_err());
    let outputs = &mut RowsMut::single(&mut y);
    assert!(kernels.product(Rows::packed(&[1; 4], 2, 2).unwrap(), rows, outputs).is_err());
    assert!(kernels.sweep(0, &[0; 3], outputs).is_err());
    assert_eq!(kernels.sweep(4, &[0; 4], outputs), Err(GfError::Index { index: 4, count: 4 }));
}

#[test]
fn layouts_that_do_not_fit() {
    let bytes = [0; 10];
    assert!(Rows::new(&bytes, 4, 6, 2).is_ok());
    assert!(Rows::new(&bytes, 4, 7, 2).is_err());
    assert!(Rows::new(&bytes, 4, 3, 2).is_err(), "overlapping rows");
    assert!(Rows::new(&bytes, 1, usize::MAX, 3).is_err(), "overflow");
    assert!(RowsMut::new(&mut [0; 3], 2, 2, 2).is_err());
    assert!(Rows::new(&[], 0, 0, 5).is_ok(), "empty rows");
    let rows = Rows::packed(&bytes, 5, 2).unwrap();
    assert!(rows.columns(3, 3).is_err());
    assert!(rows.columns(usize::MAX, 2).is_err());
    assert_eq!(rows.columns(3, 2).unwrap().count(), 2);
    assert_eq!(rows.row(2), None);
}

#[test]
fn a_row_buffer_keeps_rows_apart_and_aligned() {
    let mut buffer = RowBuffer::new(100, 3);
    buffer.row_mut(1).unwrap().fill(7);
    assert_eq!(buffer.row(0).unwrap(), [0; 100]);
    assert_eq!(buffer.row(2).unwrap(), [0; 100]);
    assert_eq!(buffer.clone().row(1).unwrap(), [7; 100]);
    assert_eq!(buffer.row(1).unwrap().as_ptr().align_offset(64), 0);
    assert!(buffer.row(3).is_none() && buffer.row_mut(3).is_none());
    assert_eq!((buffer.rows(9).count(), buffer.rows_mut(2).count()), (3, 2));
    buffer.clear();
    assert_eq!(buffer.row(1).unwrap(), [0; 100]);
}
