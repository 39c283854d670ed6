//! Names of received files in an inbox: those that its file system takes.
//!
//! A file system refuses names for reasons of its own: characters (`:` on FAT), lengths (143 bytes
//! on eCryptfs), letters that its version of Unicode does not have. So a name is tried, in a
//! directory beside the parts.

use crate::root::Root;
use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Directory among the parts in which names are tried.
const TRIED: &str = "names";
/// Length of the longest alternative name, bytes. Every file system takes it, with a number behind.
const LONGEST_ALTERNATIVE: usize = 100;

/// Number of alternative names that are tried if the file's own is taken.
const MAX_NAMES: u32 = 1000;

/// Held while a name is tried: the directory is removed afterwards.
static TRYING: Mutex<()> = Mutex::new(());

/// Names that received files get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The announced ones. Files whose name the file system refuses are refused.
    Announced,
    /// They get alternative names.
    Adapted,
}

/// The file system refuses the name of a file.
#[derive(Debug, thiserror::Error)]
#[error("its file system refuses the name ({0})")]
pub(super) struct NameRefused(io::Error);

/// Returns the name that a file gets in an inbox, where `parts` is the directory of parts: the
/// announced one, or an alternative where that is impossible.
pub(super) fn name_in<'a>(
    inbox: &Root,
    parts: &str,
    announced: &'a str,
) -> io::Result<Cow<'a, str>> {
    match check(inbox, parts, announced) {
        Ok(()) => Ok(announced.into()),
        Err(e) if is_refused(&e) => Ok(alternative(announced).into()),
        Err(e) => Err(e),
    }
}

/// Tries a name in the directory of parts.
///
/// # Errors
/// [`NameRefused`] if no file can have it, though one of another name can be made.
pub(super) fn check(inbox: &Root, parts: &str, name: &str) -> io::Result<()> {
    let Err(first) = made(inbox, parts, name) else { return Ok(()) };

    // A full disk or a lack of descriptors refuses every name, and may be over the next time.
    made(inbox, parts, "a")?;
    match made(inbox, parts, name) {
        Err(e) if e.raw_os_error() == first.raw_os_error() => {
            Err(io::Error::new(ErrorKind::InvalidInput, NameRefused(e)))
        }
        tried => tried,
    }
}

/// Makes a file of this name and removes it.
fn made(inbox: &Root, parts: &str, name: &str) -> io::Result<()> {
    // One attempt at a time, because all use the same directory.
    let _trying = TRYING.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = Path::new(parts).join(TRIED);
    inbox.make_dir(parts)?;
    inbox.make_dir(&dir)?;
    let file = dir.join(name);
    let made = inbox.create(&file).and_then(|_| inbox.remove(&file));
    made.and(inbox.remove_dir(&dir))
}

/// Returns the possible names: `a.txt`, `a (2).txt`, `a (3).txt`, ...
pub(super) fn names(name: &str) -> impl Iterator<Item = PathBuf> {
    let (stem, extension) = match name.rfind('.') {
        // A name such as `.profile` has no extension.
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    };

    let first = std::iter::once(PathBuf::from(name));
    let stem = stem.to_owned();
    let extension = extension.to_owned();
    first.chain((2..=MAX_NAMES).map(move |n| format!("{stem} ({n}){extension}").into()))
}

/// Returns whether an error is [`NameRefused`].
pub(super) fn is_refused(e: &io::Error) -> bool {
    let inner = e.get_ref();
    inner.and_then(|inner| inner.downcast_ref::<NameRefused>()).is_some()
}

/// Returns a name that every file system takes: `_` stands for all characters but letters and
/// digits of ASCII, `.`, `_`, `-` and spaces. A long name loses the end of its stem.
pub(super) fn alternative(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let (stem, extension) = match plain.rfind('.') {
        Some(at) if at > 0 && plain.len() - at <= LONGEST_ALTERNATIVE / 2 => plain.split_at(at),
        _ => (plain.as_str(), ""),
    };

    let room = LONGEST_ALTERNATIVE - extension.len();
    let stem = &stem[..stem.len().min(room)];

    // FAT takes no dots or spaces at the end.
    format!("{stem}{extension}").trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_possible_everywhere() {
        for (name, other) in [
            ("firmware-2.1.img", "firmware-2.1.img"),
            ("12:30 Größe?.txt", "12_30 Gr__e_.txt"),
            ("a|b<c>\"d*", "a_b_c__d_"),
            ("end. ", "end"),
        ] {
            assert_eq!(alternative(name), other, "{name}");
        }
        let long = format!("{}.tar", "n".repeat(190));
        assert_eq!(alternative(&long), format!("{}.tar", "n".repeat(96)));
        assert_eq!(alternative(&"é".repeat(150)).len(), 100);
        assert_eq!(alternative(&format!("a.{}", "x".repeat(190))).len(), 100);
    }

    #[test]
    fn other_names_keep_the_extension() {
        let first = |name| -> Vec<_> { names(name).take(3).collect() };
        assert_eq!(
            first("a.tar.gz"),
            ["a.tar.gz", "a.tar (2).gz", "a.tar (3).gz"].map(PathBuf::from)
        );
        assert_eq!(first("a")[1], Path::new("a (2)"));
    }
}
