//! Precedence of real-time traffic, which others cannot be kept out by.

/// Packets of real-time traffic that go before others in a row, at most. A host that marks
/// everything as urgent leaves a quarter to those who mark nothing.
const IN_A_ROW: u8 = 3;

/// Whether real-time traffic goes first now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Precedence {
    /// Packets that went before others, one after the other.
    in_a_row: u8,
}

impl Precedence {
    /// Returns whether a packet of real-time traffic goes before others.
    #[must_use]
    pub fn is_given(self) -> bool {
        self.in_a_row < IN_A_ROW
    }

    /// Notes that a packet goes, and whether it is of real-time traffic while others wait.
    pub fn note(&mut self, overtakes: bool) {
        self.in_a_row = if overtakes { self.in_a_row.saturating_add(1) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_get_one_packet_of_four() {
        let mut precedence = Precedence::default();
        let goes_first: Vec<bool> = (0..8)
            .map(|_| {
                let is_first = precedence.is_given();
                precedence.note(is_first);
                is_first
            })
            .collect();
        assert_eq!(goes_first, [true, true, true, false, true, true, true, false]);
    }
}
