//! Names in manifests: words without spaces that are safe on a command line and as a file's name.

/// Longest name of a release, channel or model, and longest version, bytes.
pub const MAX_WORD: usize = 64;
/// Longest name of an image's file, bytes: what an inbox takes.
pub const MAX_FILE: usize = 200;

/// A text that is no name: what it stands for, and what is allowed there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} is {longest} characters out of A-Z a-z 0-9 . , : + ~ _ -, the first a letter or digit"
)]
pub struct Misnamed {
    /// Part of the manifest.
    pub what: &'static str,
    /// Allowed length, such as "1 to 64".
    pub longest: &'static str,
}

/// Checks a name of a release, channel or model, or a version. `what` names it in the error.
///
/// # Errors
/// [`Misnamed`].
pub fn word(what: &'static str, text: &str) -> Result<(), Misnamed> {
    let longest = "1 to 64";
    if is_word(text, MAX_WORD) { Ok(()) } else { Err(Misnamed { what, longest }) }
}

/// Checks the name of an image's file. It has no `/`, so it cannot lead out of a directory.
pub(crate) fn file(text: &str) -> Result<(), Misnamed> {
    let longest = "1 to 200";
    if is_word(text, MAX_FILE) { Ok(()) } else { Err(Misnamed { what: "a file's name", longest }) }
}

/// The first character is neither `-`, which begins an option, nor `.`, which hides a file.
fn is_word(text: &str, longest: usize) -> bool {
    // Boards of OpenWrt have a comma, such as `tplink,archer-c7-v2`.
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b".,:+~_-".contains(&c);
    (1..=longest).contains(&text.len())
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && text.bytes().all(is_allowed)
}
