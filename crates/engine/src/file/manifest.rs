//! Announcement of a file, and the states of its receivers.

use super::geometry::Geometry;
use super::merkle::Hash;
use crate::name::{is_control, turns_text};
use ncmesh_wire::record::Bits;
use ncmesh_wire::{FlowId, choice};

/// Announcement of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Id of the transfer.
    pub flow: FlowId,
    /// Name of the file, without a path. One that ends in `/` is a directory, packed.
    pub name: String,
    /// How the file is cut.
    pub geometry: Geometry,
    /// Root of the hash tree over the generations.
    pub root: Hash,
    /// BLAKE3 of the whole file.
    pub hash: Hash,
}

impl Manifest {
    /// Returns whether it is a directory, packed.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        self.name.ends_with('/')
    }

    /// Returns the name that it gets at a receiver.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.name.strip_suffix('/').unwrap_or(&self.name)
    }
}

/// Length of the longest name of a file, bytes: a number behind it still fits.
const MAX_FILE_NAME: usize = 200;

/// Reason why a text may not become the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// A name that long leaves no room for a number.
    #[error("it has {0} bytes, of which {MAX_FILE_NAME} are allowed")]
    TooLong(usize),
    /// Such files are hidden, or directories.
    #[error("it begins with a dot")]
    LeadingDot,
    /// It would be a path.
    #[error("it has a {0:?}, which separates directories")]
    Separator(char),
    /// Terminals obey it.
    #[error("it has the control character {}", code(.0))]
    Control(char),
    /// It makes one name look like another.
    #[error("it has {}, which turns the direction of text", code(.0))]
    Direction(char),
}

/// Returns a character as Unicode calls it.
fn code(c: &char) -> String {
    format!("U+{:04X}", u32::from(*c))
}

/// Checks whether a name from the network may become a file's name. Letters of all languages may be
/// in it, with their marks of direction. A `/` at the end makes it the name of a directory.
///
/// # Errors
/// [`NameProblem`], the first one.
pub fn check_file_name(name: &str) -> Result<(), NameProblem> {
    let name = name.strip_suffix('/').unwrap_or(name);
    if name.is_empty() {
        return Err(NameProblem::Empty);
    }
    // Hidden files are often read by programs, so a received file must not become one.
    if name.starts_with('.') {
        return Err(NameProblem::LeadingDot);
    }

    // Separators could lead out of the inbox. Control characters and marks that turn text can make
    // a terminal show another name.
    for c in name.chars() {
        match c {
            '/' | '\\' => return Err(NameProblem::Separator(c)),
            c if is_control(c) => return Err(NameProblem::Control(c)),
            c if turns_text(c) => return Err(NameProblem::Direction(c)),
            _ => {}
        }
    }

    if name.len() > MAX_FILE_NAME {
        return Err(NameProblem::TooLong(name.len()));
    }
    Ok(())
}

/// Returns whether a name from the network may become a file's name: see [`check_file_name`].
#[must_use]
pub fn is_safe_name(name: &str) -> bool {
    check_file_name(name).is_ok()
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
    /// The hash of the whole file is not the announced one, although that of every generation is.
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
            Self::Corrupt => "the file is not what was announced",
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
            "/",
            "a//",
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
        for good in [
            "a",
            "photos/",
            "Größe 1.bin",
            "firmware-2.1.img",
            &"n".repeat(200),
            // Hebrew and Arabic with marks of direction, Persian with a joiner, an emoji with one.
            "דוח\u{200E}-2024.pdf",
            "\u{200F}تقرير\u{061C}.txt",
            "می\u{200C}خواهم.txt",
            "👩\u{200D}🌾.png",
            "संचिका.txt",
            "文件 名.txt",
            "e\u{301}te\u{301}.txt",
        ] {
            assert!(is_safe_name(good), "{good:?}");
        }
    }

    #[test]
    fn a_refused_name_has_its_true_reason() {
        for (name, reason) in [
            ("", "it is empty"),
            (".hidden", "it begins with a dot"),
            ("..", "it begins with a dot"),
            ("a/b", "it has a '/', which separates directories"),
            ("a\\b", "it has a '\\\\', which separates directories"),
            ("a\u{1b}[2J", "it has the control character U+001B"),
            ("a\u{2028}b", "it has the control character U+2028"),
            ("x\u{202E}gpj.exe", "it has U+202E, which turns the direction of text"),
            ("a\u{2067}b", "it has U+2067, which turns the direction of text"),
            (&"ö".repeat(101), "it has 202 bytes, of which 200 are allowed"),
        ] {
            assert_eq!(check_file_name(name).unwrap_err().to_string(), reason);
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
