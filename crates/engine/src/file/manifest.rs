//! Announcement of a file, and the states of its receivers.

use super::geometry::Geometry;
use super::merkle::Hash;
use crate::name::is_deceptive;
use ncmesh_wire::record::Bits;
use ncmesh_wire::{FlowId, choice};

/// Announcement of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Id of the transfer.
    pub flow: FlowId,
    /// Name of the file, without a path.
    pub name: String,
    /// How the file is cut.
    pub geometry: Geometry,
    /// Root of the hash tree over the batches.
    pub root: Hash,
    /// BLAKE3 of the whole file.
    pub hash: Hash,
}

/// Returns whether a name from the network may become a file's name: no path separators, no control
/// characters, no leading dot, and 1 to 200 bytes, so that a suffix still fits.
#[must_use]
pub fn is_safe_name(name: &str) -> bool {
    let plain = |c: char| !matches!(c, '/' | '\\') && !is_deceptive(c);
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.chars().all(plain)
}

/// State of a receiver, as the source sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReceiverState {
    /// The file was announced to it; it has not answered yet.
    Invited,
    /// It is receiving.
    Active,
    /// It has the whole file, verified.
    Complete,
    /// It does not take the file.
    Refused(Refusal),
    /// It was reached once, and cannot be reached now.
    Lost,
}

/// Reason why a receiver does not take a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The file's name is not safe.
    BadName,
    /// No space is left.
    NoSpace,
    /// The inbox cannot be written.
    Unwritable,
    /// The receiver's operator cancelled it.
    Cancelled,
    /// The hash of the whole file is not the announced one, although that of every batch is.
    Corrupt,
    /// The receiver has as many transfers as it allows now. It takes the file later.
    Busy,
    /// The receiver has no inbox.
    NoInbox,
    /// The receiver takes no files from this source.
    NotAllowed,
}

impl Refusal {
    const ALL: [Self; 8] = [
        Self::BadName,
        Self::NoSpace,
        Self::Unwritable,
        Self::Cancelled,
        Self::Corrupt,
        Self::Busy,
        Self::NoInbox,
        Self::NotAllowed,
    ];

    /// Returns the reason in words.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::BadName => "the file's name is not allowed there",
            Self::NoSpace => "no space is left there",
            Self::Unwritable => "its inbox cannot be written",
            Self::Cancelled => "cancelled by the receiver",
            Self::Corrupt => "the file does not match its announced hash",
            Self::Busy => "too many transfers at once there",
            Self::NoInbox => "it takes no files (no inbox configured)",
            Self::NotAllowed => "it takes no files from this node",
        }
    }
}

impl Bits for ReceiverState {
    const NAMES: &'static [(u64, &'static str)] = &[
        (0, "invited"),
        (1, "active"),
        (2, "complete"),
        (3, "lost"),
        (16, "refused: name not allowed"),
        (17, "refused: no space"),
        (18, "refused: inbox not writable"),
        (19, "refused: cancelled"),
        (20, "refused: does not match its hash"),
        (21, "refused: busy"),
        (22, "refused: no inbox"),
        (23, "refused: source not allowed"),
    ];

    fn from_bits(bits: u8) -> Option<Self> {
        Self::from_code(bits)
    }

    fn to_bits(&self) -> u8 {
        self.code()
    }
}

choice!(@value ReceiverState);

impl ReceiverState {
    /// Returns the code of the state in frames and journals.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Invited => 0,
            Self::Active => 1,
            Self::Complete => 2,
            Self::Lost => 3,
            Self::Refused(why) => 16 + why as u8,
        }
    }

    /// Returns the state of a code; `None` if the code has none.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Invited,
            1 => Self::Active,
            2 => Self::Complete,
            3 => Self::Lost,
            _ => Self::Refused(*Refusal::ALL.get(usize::from(code.checked_sub(16)?))?),
        })
    }

    /// Returns whether nothing more is to be sent to this receiver. A busy one is asked again.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Complete => true,
            Self::Refused(why) => why != Refusal::Busy,
            Self::Invited | Self::Active | Self::Lost => false,
        }
    }

    /// Returns the name of the state in the API and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invited => "invited",
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Refused(_) => "refused",
            Self::Lost => "lost",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_the_network_cannot_leave_the_inbox() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            ".part",
            "a\nb",
            "a\0",
            "x\u{202E}gpj",
            &"n".repeat(201),
        ] {
            assert!(!is_safe_name(bad), "{bad:?}");
        }
        for good in ["a", "Größe 1.bin", "firmware-2.1.img", &"n".repeat(200)] {
            assert!(is_safe_name(good), "{good:?}");
        }
    }

    #[test]
    fn states_survive_the_wire() {
        let refused = Refusal::ALL.map(ReceiverState::Refused);
        use ReceiverState::{Active, Complete, Invited, Lost};
        for state in [Invited, Active, Complete, Lost].into_iter().chain(refused) {
            assert_eq!(ReceiverState::from_code(state.code()), Some(state));
        }
        assert_eq!(ReceiverState::from_code(9), None);
        assert_eq!(ReceiverState::from_code(255), None);
    }
}
