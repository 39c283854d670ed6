//! Coding over a sliding window: what a node knows of an endless stream of packets.
//!
//! A stream has no generations. Its packets are numbered, and a coded packet is a combination of
//! any that follow each other closely. A node keeps what it heard in reduced row echelon form: each
//! row leads with another packet, and no other row contains that packet. So a row with one
//! coefficient is a packet itself, known as soon as that is possible, and a packet that arrives as
//! it was sent costs no arithmetic at all.
//!
//! Symbols may differ in length; a shorter one counts as filled up with zeros. All arithmetic is
//! over GF(2^8). Compare the sliding window codes of RFC 8681, where only the source codes.

use crate::Field;
use crate::coefficients::draw;
use ncmesh_gf::Kernels;
use rand_core::RngCore;
use std::collections::BTreeMap;
use std::ops::Range;

/// A combination of packets of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coded {
    /// Number of the first packet in it.
    pub first: u32,
    /// Coefficients of that packet and those behind it. The last one is not zero.
    pub coefficients: Vec<u8>,
    /// The combined symbols.
    pub symbol: Vec<u8>,
}

/// Packets of a stream that a node knows.
#[derive(Debug)]
pub struct Window {
    kernels: Kernels,
    /// Rows by the packet that leads them: its coefficient is 1 and the first.
    rows: BTreeMap<u32, Row>,
}

#[derive(Clone, Debug)]
struct Row {
    coefficients: Vec<u8>,
    symbol: Vec<u8>,
}

impl Default for Window {
    fn default() -> Self {
        Self { kernels: Kernels::best(Field::Gf256), rows: BTreeMap::new() }
    }
}

impl Window {
    /// Takes a combination. Returns whether it was innovative.
    ///
    /// The caller bounds how far apart the packets are that it lets in: a row spans no more.
    pub fn absorb(&mut self, coded: Coded) -> bool {
        let Coded { first, coefficients, symbol } = coded;
        let mut row = Row { coefficients, symbol };

        // Take out what is known. Rows contain no packet that leads another one, so that no step
        // undoes an earlier one.
        for (lead, known) in self.span(first, row.coefficients.len()) {
            let at = (lead - first) as usize;
            let factor = row.coefficients.get(at).copied().unwrap_or(0);
            add(&self.kernels, factor, known, at, &mut row);
        }

        // The first coefficient that is left leads the row. It is scaled to 1, as elimination
        // expects.
        let Some(at) = row.coefficients.iter().position(|c| *c != 0) else { return false };
        let lead = first + at as u32;
        row.coefficients.drain(..at);
        row.trim();
        if let Some(inverse) = Field::Gf256.inv(row.coefficients[0]) {
            self.kernels.scale(inverse, &mut row.coefficients);
            self.kernels.scale(inverse, &mut row.symbol);
        }

        // Take the new packet out of the rows before it.
        for (other, earlier) in self.rows.range_mut(..lead) {
            let at = (lead - other) as usize;
            if let Some(factor) = earlier.coefficients.get(at).copied().filter(|c| *c != 0) {
                add(&self.kernels, factor, &row, at, earlier);
                earlier.trim();
            }
        }

        self.rows.insert(lead, row);
        true
    }

    /// Returns a packet, if it is known.
    #[must_use]
    pub fn packet(&self, number: u32) -> Option<&[u8]> {
        let row = self.rows.get(&number).filter(|row| row.coefficients.len() == 1)?;
        Some(&row.symbol)
    }

    /// Appends to a packet that is known and no part of any combination yet. Returns whether it is
    /// known.
    pub fn append(&mut self, number: u32, bytes: &[u8]) -> bool {
        let row = self.rows.get_mut(&number).filter(|row| row.coefficients.len() == 1);
        row.map(|row| row.symbol.extend(bytes)).is_some()
    }

    /// Returns the symbol of the combination with these coefficients of the packets from `first`
    /// on; `None` if what is known does not yield it.
    #[must_use]
    pub fn express(&self, first: u32, coefficients: &[u8]) -> Option<Vec<u8>> {
        // The symbol gathers what is taken out. It is the one wanted if no coefficient is left.
        let mut rest = Row { coefficients: coefficients.to_vec(), symbol: Vec::new() };
        for (lead, known) in self.span(first, coefficients.len()) {
            let at = (lead - first) as usize;
            let factor = rest.coefficients.get(at).copied().unwrap_or(0);
            add(&self.kernels, factor, known, at, &mut rest);
        }
        rest.coefficients.iter().all(|c| *c == 0).then_some(rest.symbol)
    }

    /// Returns the packets that lead rows, from `from` on. They are as many as the dimensions that
    /// are known of the stream from there.
    pub fn leads(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.rows.range(from..).map(|(lead, _)| *lead)
    }

    /// Returns the last packet in the row that `lead` leads, if there is one.
    #[must_use]
    pub fn reach(&self, lead: u32) -> Option<u32> {
        self.rows.get(&lead).map(|row| lead + row.coefficients.len() as u32 - 1)
    }

    /// Returns how many packets lead rows, from `from` on.
    #[must_use]
    pub fn count(&self, from: u32) -> usize {
        // Few rows are before it, for what is needed no more is forgotten.
        self.rows.len() - self.rows.range(..from).count()
    }

    /// Returns how many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns a random combination of the rows that lie within `packets` and whose leads are
    /// `wanted`; `None` if there is none.
    pub fn combine(
        &self,
        packets: Range<u32>,
        wanted: impl Fn(u32) -> bool,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Option<Coded> {
        let rows: Vec<_> = self.within(packets).filter(|(lead, _)| wanted(*lead)).collect();
        let first = rows.first()?.0;
        let mut factors = vec![0; rows.len()];
        draw(Field::Gf256, rng, &mut factors);

        // Each row takes part: a factor of zero would waste what only that row has. The first
        // coefficient is 1, so that a single packet comes out as it is.
        factors[0] = 1;
        let mut sum = Row { coefficients: Vec::new(), symbol: Vec::new() };
        for ((lead, row), factor) in rows.into_iter().zip(factors) {
            add(&self.kernels, factor.max(1), row, (lead - first) as usize, &mut sum);
        }

        sum.trim();
        Some(Coded { first, coefficients: sum.coefficients, symbol: sum.symbol })
    }

    fn within(&self, packets: Range<u32>) -> impl Iterator<Item = (u32, &Row)> {
        let Range { start, end } = packets;
        // A range of a map must not end before it begins.
        let rows = self.rows.range(start..end.max(start)).map(|(lead, row)| (*lead, row));
        rows.filter(move |(lead, row)| lead + row.coefficients.len() as u32 <= end)
    }

    /// Forgets the rows that packets before `start` lead.
    pub fn forget_before(&mut self, start: u32) {
        self.rows = self.rows.split_off(&start);
    }

    fn span(&self, first: u32, len: usize) -> impl Iterator<Item = (u32, &Row)> {
        let end = first.saturating_add(len as u32);
        self.rows.range(first..end).map(|(lead, row)| (*lead, row))
    }
}

impl Row {
    /// Removes zeros behind the last coefficient.
    fn trim(&mut self) {
        let len = self.coefficients.iter().rposition(|c| *c != 0).map_or(0, |last| last + 1);
        self.coefficients.truncate(len);
    }
}

/// Adds `factor` times `row` to `sum`, in which it begins at the coefficient `at`.
fn add(kernels: &Kernels, factor: u8, row: &Row, at: usize, sum: &mut Row) {
    if factor == 0 {
        return;
    }

    // The sum grows to hold the row. A shorter symbol counts as filled up with zeros.
    let end = at + row.coefficients.len();
    sum.coefficients.resize(sum.coefficients.len().max(end), 0);
    sum.symbol.resize(sum.symbol.len().max(row.symbol.len()), 0);
    for (x, y) in [
        (&row.coefficients, &mut sum.coefficients[at..end]),
        (&row.symbol, &mut sum.symbol[..row.symbol.len()]),
    ] {
        // Both have the same length.
        let _ = kernels.axpy(factor, x, y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    fn symbol(number: u32) -> Vec<u8> {
        (0..=number as usize % 7).map(|i| (number as usize * 31 + i * 7 + 1) as u8).collect()
    }

    fn plain(number: u32) -> Coded {
        Coded { first: number, coefficients: vec![1], symbol: symbol(number) }
    }

    fn padded(symbol: &[u8]) -> Vec<u8> {
        let mut symbol = symbol.to_vec();
        symbol.resize(7, 0);
        symbol
    }

    #[test]
    fn one_combination_repairs_any_loss() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut source = Window::default();
        (10..20).for_each(|n| assert!(source.absorb(plain(n))));
        for lost in 10..20 {
            let mut sink = Window::default();
            (10..20).filter(|n| *n != lost).for_each(|n| assert!(sink.absorb(plain(n))));
            assert!(sink.absorb(source.combine(10..20, |_| true, &mut rng).unwrap()));
            assert!(!sink.absorb(source.combine(10..20, |_| true, &mut rng).unwrap()));
            assert!((10..20).all(|n| sink.packet(n).map(padded) == Some(padded(&symbol(n)))));
        }
    }

    #[test]
    fn a_combination_lies_within_its_bounds() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut source = Window::default();
        assert_eq!(source.combine(0..4, |_| true, &mut rng), None);
        (0..20).for_each(|n| assert!(source.absorb(plain(n))));
        let coded = source.combine(5..9, |_| true, &mut rng).unwrap();
        assert_eq!((coded.first, coded.coefficients.len()), (5, 4));
        assert_eq!((source.count(0), source.count(15), source.count(30)), (20, 5, 0));
        source.forget_before(18);
        assert_eq!((source.leads(0).collect::<Vec<_>>(), source.len()), (vec![18, 19], 2));
    }

    #[test]
    fn a_combination_is_expressed_by_those_who_know_enough() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut source = Window::default();
        let mut sink = Window::default();
        (10..14).for_each(|n| assert!(source.absorb(plain(n))));
        let coded = source.combine(10..14, |_| true, &mut rng).unwrap();
        let expressed = |of: &Window| of.express(coded.first, &coded.coefficients);
        assert_eq!(expressed(&source), Some(coded.symbol.clone()));
        (10..13).for_each(|n| assert!(sink.absorb(plain(n))));
        assert_eq!(expressed(&sink), None);
        assert!(sink.absorb(source.combine(12..14, |_| true, &mut rng).unwrap()));
        assert_eq!(expressed(&sink), Some(coded.symbol.clone()));
        assert_eq!(sink.express(11, &[1]).map(|s| padded(&s)), Some(padded(&symbol(11))));
        assert_eq!(sink.express(14, &[1]), None);
    }

    proptest! {
        /// Whatever is lost on two hops, and recoded in between: what the sink takes for packets
        /// are the packets, and it has all that the relay had once it heard as much.
        #[test]
        fn recoded_packets_are_decoded(
            seed in any::<u64>(),
            steps in prop::collection::vec((0..4u8, any::<bool>(), 0..3u32), 1..120),
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut source = Window::default();
            let mut relay = Window::default();
            let mut sink = Window::default();
            let mut next = 100;
            let mut low = 100;
            for (step, arrives, back) in steps {
                match step {
                    0 => {
                        source.absorb(plain(next));
                        if arrives {
                            relay.absorb(plain(next));
                        }
                        next += 1;
                    }
                    1 if arrives => {
                        let from = low.max(next.saturating_sub(8 * back));
                        let coded = source.combine(from..next, |_| true, &mut rng);
                        coded.map(|coded| relay.absorb(coded));
                    }
                    2 if arrives => {
                        let coded = relay.combine(low..next, |_| true, &mut rng);
                        coded.map(|coded| sink.absorb(coded));
                    }
                    3 => {
                        while sink.packet(low).is_some() {
                            low += 1;
                        }
                    }
                    _ => {}
                }
                for number in 100..next {
                    for known in [relay.packet(number), sink.packet(number)].into_iter().flatten() {
                        prop_assert_eq!(padded(known), padded(&symbol(number)));
                    }
                }
                prop_assert!(sink.len() <= relay.len() && relay.len() <= source.len());
            }
            for _ in 0..200 {
                relay.combine(low..next, |_| true, &mut rng).map(|coded| sink.absorb(coded));
            }
            prop_assert_eq!(sink.leads(low).count(), relay.leads(low).count());
        }
    }
}
