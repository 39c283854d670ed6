//! The loss matrix: one loss probability for each directed link.

use crate::error::MediumError;
use crate::types::RadioId;

/// Loss probabilities of the directed links among `n` radios, stored sparsely.
///
/// A pair without a link has loss 1. Memory grows with the number of links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossMatrix {
    /// For each sender its links (receiver, loss below 1), sorted by receiver.
    rows: Vec<Vec<(usize, f64)>>,
}

/// A link of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossyLink {
    /// Radio that sends.
    pub from: RadioId,
    /// Radio that hears it.
    pub to: RadioId,
    /// Share of frames that is lost.
    pub loss: f64,
}

impl LossMatrix {
    /// Creates a matrix of `n` radios without links.
    pub fn new(n: usize) -> Self {
        Self { rows: vec![Vec::new(); n] }
    }

    /// Creates a matrix from `n` rows of `n` losses, `rows[from][to]`. Ignores the diagonal.
    ///
    /// # Errors
    /// [`MediumError::RaggedMatrix`] unless every row has `n` losses, [`MediumError::BadLoss`] for
    /// a loss outside 0 to 1.
    pub fn from_rows(rows: &[Vec<f64>]) -> Result<Self, MediumError> {
        let mut matrix = Self::new(rows.len());
        for (from, row) in rows.iter().enumerate() {
            if row.len() != rows.len() {
                return Err(MediumError::RaggedMatrix {
                    row: from,
                    length: row.len(),
                    expected: rows.len(),
                });
            }

            for (to, &loss) in row.iter().enumerate().filter(|&(to, _)| to != from) {
                matrix.set(RadioId(from), RadioId(to), loss)?;
            }
        }

        Ok(matrix)
    }

    /// Returns the number of radios.
    pub fn radios(&self) -> usize {
        self.rows.len()
    }

    /// Sets the loss probability from `from` to `to`. A loss of 1 removes the link.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`], [`MediumError::SelfLink`], or [`MediumError::BadLoss`] for a
    /// loss outside 0 to 1.
    pub fn set(&mut self, from: RadioId, to: RadioId, loss: f64) -> Result<(), MediumError> {
        let radios = self.radios();
        if let Some(radio) = [from, to].into_iter().find(|radio| radio.0 >= radios) {
            return Err(MediumError::UnknownRadio { radio, radios });
        }
        if from == to {
            return Err(MediumError::SelfLink { radio: from });
        }
        if !(0.0..=1.0).contains(&loss) {
            return Err(MediumError::BadLoss { from, to, loss });
        }

        // A row has the links that deliver, sorted by receiver. A loss of 1 leaves none.
        let row = &mut self.rows[from.0];
        match (row.binary_search_by_key(&to.0, |link| link.0), loss < 1.0) {
            (Ok(at), true) => row[at].1 = loss,
            (Ok(at), false) => drop(row.remove(at)),
            (Err(at), true) => row.insert(at, (to.0, loss)),
            (Err(_), false) => {}
        }

        Ok(())
    }

    /// Returns the loss probability from `from` to `to`: 1 if there is no link or no such radio.
    pub fn loss(&self, from: RadioId, to: RadioId) -> f64 {
        let Some(row) = self.rows.get(from.0) else {
            return 1.0;
        };
        row.binary_search_by_key(&to.0, |link| link.0).map_or(1.0, |at| row[at].1)
    }

    /// Returns all links, sorted by sender, then receiver.
    pub fn links(&self) -> impl Iterator<Item = LossyLink> + '_ {
        self.rows.iter().enumerate().flat_map(|(from, row)| {
            let from = RadioId(from);
            row.iter().map(move |&(to, loss)| LossyLink { from, to: RadioId(to), loss })
        })
    }

    /// Returns the links of one sender as (receiver, loss), sorted by receiver.
    pub(crate) fn row(&self, from: usize) -> &[(usize, f64)] {
        &self.rows[from]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_set_read_and_removed() {
        let mut matrix = LossMatrix::new(3);
        matrix.set(RadioId(0), RadioId(2), 0.25).unwrap();
        matrix.set(RadioId(0), RadioId(1), 0.5).unwrap();
        assert_eq!(matrix.loss(RadioId(0), RadioId(2)), 0.25);
        assert_eq!(matrix.loss(RadioId(2), RadioId(0)), 1.0);
        assert_eq!(matrix.loss(RadioId(9), RadioId(0)), 1.0);
        matrix.set(RadioId(0), RadioId(2), 1.0).unwrap();
        let links: Vec<_> = matrix.links().collect();
        assert_eq!(links, [LossyLink { from: RadioId(0), to: RadioId(1), loss: 0.5 }]);
    }

    #[test]
    fn bad_entries_are_refused() {
        let mut matrix = LossMatrix::new(2);
        for loss in [-0.1, 1.1, f64::NAN] {
            assert!(matrix.set(RadioId(0), RadioId(1), loss).is_err());
        }
        assert!(matrix.set(RadioId(0), RadioId(0), 0.0).is_err());
        assert!(matrix.set(RadioId(0), RadioId(2), 0.0).is_err());
        assert!(LossMatrix::from_rows(&[vec![0.0, 0.1], vec![0.2]]).is_err());
    }
}
