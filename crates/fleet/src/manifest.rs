//! The manifest of a release: its text and the signatures under it.
//!
//! The signed part has one form only: what is read and written again is the same text, so a
//! signature never depends on how somebody laid out a line. The lines of signatures behind it may
//! come in any order, so that signers can add theirs to copies and join the files.

use crate::hex::{hex, unhex};
use crate::image::{Digests, Image};
use crate::release::{FIRST_LINE, Flaw, Head, MAX_IMAGES, MAX_REPLACED, Release};
use crate::version::Version;
use crate::word::Misnamed;
use core::fmt;
use ncmesh_wire::identity::{PublicKey, Purpose, SecretKey, Signature};
use std::collections::BTreeSet;

/// Longest manifest, bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Most signatures of one manifest.
pub const MAX_SIGNATURES: usize = 64;

/// Line between a release and its signatures.
pub(crate) const SEPARATOR: &str = "---";

/// Reason why a text is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is longer than any manifest.
    #[error("a manifest has at most {MAX_BYTES} bytes")]
    Long,
    /// It is not plain text.
    #[error("a manifest is ASCII text, each line ended by a line feed")]
    NoText,
    /// It is another file, or of a later format.
    #[error("the first line of a manifest is \"{FIRST_LINE}\"")]
    NoManifest,
    /// A line is not what has its place there.
    #[error("line {line}: expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The form that belongs there.
        expected: &'static str,
    },
    /// A line has a name that is none.
    #[error("line {line}: {misnamed}")]
    Misnamed {
        /// Number of the line, from 1.
        line: usize,
        /// The name's rule.
        misnamed: Misnamed,
    },
    /// The lines do not make a release.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// The lines make a release, but not in the order or form that is signed.
    #[error("the lines of the release are not in the form in which a release is written")]
    Form,
    /// It has too many signatures.
    #[error("a manifest has at most {MAX_SIGNATURES} signatures")]
    ManySignatures,
}

/// One line under a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signed {
    key: PublicKey,
    signature: Signature,
}

/// A release and its signatures, which may be false: [`Manifest::signers`] checks them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    release: Release,
    /// Ordered by key, then by signature; none twice.
    signatures: Vec<Signed>,
}

impl Manifest {
    /// Returns the manifest of a release, without signatures. The longest release leaves room for
    /// all signatures within [`MAX_BYTES`].
    #[must_use]
    pub fn new(release: Release) -> Self {
        Self { release, signatures: Vec::new() }
    }

    /// Reads a manifest. Takes time and memory proportional to its length.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_BYTES {
            return Err(ManifestError::Long);
        }
        let is_plain = |c: &u8| matches!(c, b'\n' | b' '..=b'~');
        let text = core::str::from_utf8(bytes).map_err(|_| ManifestError::NoText)?;
        if !bytes.iter().all(is_plain) || !text.ends_with('\n') {
            return Err(ManifestError::NoText);
        }

        let mut lines = Lines { rest: text, number: 0 };

        if lines.next() != Some(FIRST_LINE) {
            return Err(ManifestError::NoManifest);
        }
        let release = read_release(&mut lines)?;
        // Leading zeros, a second order of lines and the like: signed is one form only.
        let statement = release.statement();
        if !text.strip_prefix(&statement).is_some_and(|rest| rest.starts_with(SEPARATOR)) {
            return Err(ManifestError::Form);
        }

        // Lines are counted, not signatures: a line that is repeated costs its reading, too.
        let mut manifest = Self { release, signatures: Vec::new() };
        let mut count = 0;
        while let Some(line) = lines.next() {
            count += 1;
            if count > MAX_SIGNATURES {
                return Err(ManifestError::ManySignatures);
            }
            let signed = read_signature(line).ok_or_else(|| lines.expected("KEY SIGNATURE"))?;
            manifest.add(signed);
        }
        Ok(manifest)
    }

    /// Returns the release.
    #[must_use]
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Adds the signature of a key.
    ///
    /// # Errors
    /// [`ManifestError::ManySignatures`].
    pub fn sign(&mut self, key: &SecretKey) -> Result<(), ManifestError> {
        let signature = key.sign(Purpose::Release, self.release.statement().as_bytes());
        // Signing twice adds nothing: the algorithm gives the same signature again.
        self.add(Signed { key: key.public(), signature });
        if self.signatures.len() > MAX_SIGNATURES {
            return Err(ManifestError::ManySignatures);
        }
        Ok(())
    }

    /// Returns those of these keys that signed the release. Each counts once, however many lines it
    /// has; the signatures of other keys cost nothing.
    #[must_use]
    pub fn signers(&self, keys: &BTreeSet<PublicKey>) -> BTreeSet<PublicKey> {
        let statement = self.release.statement();
        // A check costs much more than a look-up, and a hostile manifest may have many lines.
        let candidates = self.signatures.iter().filter(|signed| keys.contains(&signed.key));
        let is_good = |Signed { key, signature }: &&Signed| {
            key.has_signed(Purpose::Release, statement.as_bytes(), signature)
        };
        candidates.filter(is_good).map(|signed| signed.key).collect()
    }

    /// Returns the keys under it, whether their signatures are good or not.
    #[must_use]
    pub fn claimed(&self) -> BTreeSet<PublicKey> {
        self.signatures.iter().map(|signed| signed.key).collect()
    }

    fn add(&mut self, signed: Signed) {
        let place = |known: &Signed| {
            known.key.cmp(&signed.key).then(known.signature.0.cmp(&signed.signature.0))
        };

        // Kept in order, so copies that were signed in another order become the same file.
        if let Err(at) = self.signatures.binary_search_by(place) {
            self.signatures.insert(at, signed);
        }
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{SEPARATOR}", self.release.statement())?;
        for Signed { key, signature } in &self.signatures {
            writeln!(f, "{key} {}", hex(&signature.0))?;
        }
        Ok(())
    }
}

/// Lines of a text with their numbers.
struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (line, rest) = self.rest.split_once('\n')?;
        self.rest = rest;
        self.number += 1;
        Some(line)
    }

    fn expected(&self, expected: &'static str) -> ManifestError {
        ManifestError::Line { line: self.number, expected }
    }

    /// Returns the next line without the word that it begins with.
    fn field(&mut self, name: &str, expected: &'static str) -> Result<&'a str, ManifestError> {
        let value = self.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.ok_or_else(|| self.expected(expected))
    }

    fn version(&self, text: &str) -> Result<Version, ManifestError> {
        let line = self.number;
        text.parse().map_err(|misnamed| ManifestError::Misnamed { line, misnamed })
    }
}

/// Reads the lines behind the first one, up to the separator and with it.
fn read_release(lines: &mut Lines<'_>) -> Result<Release, ManifestError> {
    let name = lines.field("name", "name NAME")?.to_owned();
    let version = lines.field("version", "version VERSION")?;
    let version = lines.version(version)?;
    let channel = lines.field("channel", "channel CHANNEL")?.to_owned();
    let mut head = Head { name, version, channel, replaces: Vec::new() };

    let mut images = Vec::new();
    loop {
        let expected = "\"replaces VERSION\", \"image MODEL SIZE SHA256 BLAKE3 FILE\" or \"---\"";
        let line = lines.next().ok_or_else(|| lines.expected(expected))?;
        if line == SEPARATOR {
            return Ok(Release::new(head, images)?);
        }
        // Bounds are checked before lines are kept, so a hostile text costs no more than its size.
        match line.split_once(' ') {
            Some(("replaces", _)) if head.replaces.len() == MAX_REPLACED => {
                return Err(Flaw::ManyReplaced.into());
            }
            Some(("image", _)) if images.len() == MAX_IMAGES => return Err(Flaw::ManyImages.into()),
            Some(("replaces", old)) => head.replaces.push(lines.version(old)?),
            Some(("image", rest)) => {
                images.push(read_image(rest).ok_or_else(|| {
                    lines.expected("image MODEL SIZE SHA256 BLAKE3 FILE, with hashes of 64 digits")
                })?);
            }
            _ => return Err(lines.expected(expected)),
        }
    }
}

fn read_image(text: &str) -> Option<Image> {
    let mut words = text.split(' ');
    let model = words.next()?.to_owned();
    let size = words.next()?.parse().ok()?;
    let digests = Digests { sha256: unhex(words.next()?)?, blake3: unhex(words.next()?)? };
    let file = words.next()?.to_owned();
    words.next().is_none().then_some(Image { model, file, size, digests })
}

fn read_signature(line: &str) -> Option<Signed> {
    let (key, signature) = line.split_once(' ')?;
    let key = PublicKey::new(unhex(key)?)?;
    Some(Signed { key, signature: Signature(unhex(signature)?) })
}
