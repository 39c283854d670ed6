//! Packets of one generation of which some are false, and which of them agree with each other.
//!
//! A packet has a coding vector `v` and a payload `p`; it is true if `p = v·X`, where `X` are the
//! source symbols. Weights `z` over all packets that cancel both their vectors and their payloads
//! are a *dependency*. The errors of false packets that were not made to fit each other are
//! linearly independent, so every dependency has weight zero at each of them: the packets with a
//! weight that is not zero agree. See J. Metzner and E. Kapturowski, "A General Decoding Technique
//! Applicable to Replicated File Disagreement Location and Concatenated Code Decoding", IEEE Trans.
//! Inf. Theory 36(4), 1990.
//!
//! Among packets of rank `k`, two more than there are false ones suffice. A sender that adds the
//! same error to several packets is not found out so: what is decoded from packets that agree must
//! be checked all the same.

use crate::error::CodeError;
use crate::separator::Combination;
use crate::shape::Shape;
use ncmesh_gf::{GfError, Kernels};

/// A row of the elimination, and the column of its leading one.
struct Pivot {
    column: usize,
    row: Vec<u8>,
}

/// Returns for each packet whether a dependency shows that it agrees with others.
///
/// Costs one pass over a payload for each pair of a packet and an independent one.
///
/// # Errors
/// [`CodeError::Length`] for a packet of other lengths than `shape` says,
/// [`CodeError::Coefficient`] for a value that is not an element of the field.
pub fn agreeing(shape: Shape, packets: &[Combination]) -> Result<Vec<bool>, CodeError> {
    let kernels = Kernels::best(shape.field());
    let content = shape.generation_size() + shape.symbol_size();
    let mut agrees = vec![false; packets.len()];
    let mut pivots: Vec<Pivot> = Vec::new();
    for (number, (vector, payload)) in packets.iter().enumerate() {
        shape.check_lengths(vector.len(), payload.len())?;
        shape.check_elements(vector)?;

        // A row is vector, payload, and the weights of the packets that it was made of.
        let mut row = [&vector[..], &payload[..], &vec![0; packets.len()]].concat();
        row[content + number] = 1;
        reduce(&kernels, &pivots, &mut row)?;
        match row[..content].iter().position(|byte| *byte != 0) {
            // The first element that is left makes the row a pivot for the packets behind it.
            Some(column) => {
                let inverse = shape.field().inv(row[column]).unwrap_or(1);
                kernels.scale(inverse, &mut row);
                pivots.push(Pivot { column, row });
            }

            // Nothing is left, so the weights are a dependency.
            None => {
                let weights = row[content..].iter();
                agrees.iter_mut().zip(weights).for_each(|(agrees, weight)| *agrees |= *weight != 0);
            }
        }
    }

    Ok(agrees)
}

/// Eliminates the columns of `pivots` from a row. Each pivot's row is zero in the columns of those
/// before it.
fn reduce(kernels: &Kernels, pivots: &[Pivot], row: &mut [u8]) -> Result<(), GfError> {
    for pivot in pivots {
        let lead = row[pivot.column];
        if lead != 0 {
            kernels.axpy(lead, &pivot.row, row)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoder, draw};
    use ncmesh_gf::Field;
    use rand_chacha::ChaCha8Rng;
    use rand_core::{RngCore, SeedableRng};

    const K: usize = 8;
    const SIZE: usize = 64;

    /// Returns `count` combinations of one generation. Those numbered in `is_false` are spoiled.
    fn packets(count: usize, is_false: &[usize], rng: &mut ChaCha8Rng) -> Vec<Combination> {
        let shape = Shape::new(Field::Gf256, K, SIZE).unwrap();
        let mut encoder = Encoder::new(shape);
        let mut source = vec![0; K * SIZE];
        rng.fill_bytes(&mut source);
        encoder.load(&source).unwrap();
        let packet = |number| {
            let mut vector = vec![0; K];
            let mut payload = vec![0; SIZE];
            draw(Field::Gf256, rng, &mut vector);
            encoder.encode(&vector, &mut payload).unwrap();
            if is_false.contains(&number) {
                rng.fill_bytes(&mut payload[SIZE / 2..]);
            }
            (vector, payload)
        };
        (0..count).map(packet).collect()
    }

    #[test]
    fn two_more_packets_than_false_ones_tell_the_true_ones_apart() {
        let shape = Shape::new(Field::Gf256, K, SIZE).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for is_false in [&[][..], &[0], &[3], &[0, 1, 9], &[0, 2, 4, 6, 8, 10, 12, 14]] {
            let count = K + is_false.len() + 2;
            let agrees = agreeing(shape, &packets(count, is_false, &mut rng)).unwrap();
            assert!(is_false.iter().all(|number| !agrees[*number]), "{is_false:?}: {agrees:?}");
            let agreeing = agrees.iter().filter(|agrees| **agrees).count();
            assert!(agreeing >= K, "{is_false:?}: {agreeing} agree");
        }
    }

    #[test]
    fn without_redundancy_nothing_is_known() {
        let shape = Shape::new(Field::Gf256, K, SIZE).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for is_false in [&[][..], &[1]] {
            let agrees = agreeing(shape, &packets(K + is_false.len(), is_false, &mut rng));
            assert_eq!(agrees.unwrap(), vec![false; K + is_false.len()]);
        }
    }

    #[test]
    fn packets_of_another_shape_are_an_error() {
        let shape = Shape::new(Field::Gf256, K, SIZE).unwrap();
        assert!(agreeing(shape, &[(vec![1; K], vec![0; SIZE - 1])]).is_err());
        assert!(agreeing(shape, &[(vec![1; K + 1], vec![0; SIZE])]).is_err());
    }
}
