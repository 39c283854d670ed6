//! The public interface rejects wrong arguments with an error and without a panic.

use ncmesh_gf::{Field, GfError, Kernels, RowBuffer, Rows, RowsMut};

#[test]
fn lengths_that_disagree() {
    let kernels = Kernels::best(Field::Gf256);
    let mut y = [0; 4];
    assert_eq!(kernels.axpy(1, &[0; 3], &mut y), Err(GfError::Length { expected: 4, got: 3 }));
    assert_eq!(kernels.axpy(1, &[0; 5], &mut y), Err(GfError::Length { expected: 4, got: 5 }));
    let rows = [0; 8];
    let rows = Rows::packed(&rows, 4, 2).unwrap();
    assert!(kernels.combine(&[1; 3], rows, &mut y).is_err());
    assert!(kernels.combine(&[1; 2], rows, &mut [0; 3]).is_err());
    assert!(kernels.accumulate(&[1; 1], rows, &mut y).is_err());
    let outputs = &mut RowsMut::single(&mut y);
    assert!(kernels.product(Rows::packed(&[1; 4], 2, 2).unwrap(), rows, outputs).is_err());
}

#[test]
fn eliminations_that_do_not_fit() {
    let kernels = Kernels::best(Field::Gf16);
    let mut bytes = [0; 64 * 4];
    let mut run = |vector: usize, free: usize, present: usize, length: usize| {
        let rows = &mut RowsMut::packed(&mut bytes, length, 2).unwrap();
        kernels.eliminate(&[0; 70][..vector], &mut [255; 130][..free], present, rows)
    };
    assert_eq!(run(2, 64, 0, 64), Ok(None));
    assert_eq!(run(2, 63, 0, 64), Err(GfError::Length { expected: 64, got: 63 }));
    assert_eq!(run(2, 60, 0, 60), Err(GfError::Length { expected: 64, got: 60 }));
    assert_eq!(run(0, 0, 0, 0), Err(GfError::Length { expected: 64, got: 0 }));
    assert_eq!(run(65, 64, 0, 64), Err(GfError::Index { index: 65, count: 65 }));
    assert_eq!(run(2, 64, 3, 64), Err(GfError::Index { index: 3, count: 3 }));
    assert_eq!(run(1, 64, 2, 64), Err(GfError::Index { index: 2, count: 2 }));
    assert!(run(70, 128, 2, 128).is_ok());
}

#[test]
fn a_pivot_without_a_row_is_none() {
    let mut bytes = [0; 64];
    let rows = &mut RowsMut::packed(&mut bytes, 64, 1).unwrap();
    let kernels = Kernels::best(Field::Gf256);
    assert_eq!(kernels.eliminate(&[0, 7], &mut [255; 64], 0, rows), Ok(None));
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
