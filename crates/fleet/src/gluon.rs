//! Manifests of Gluon's autoupdater.
//!
//! A manifest has lines `BRANCH=`, `DATE=` and `PRIORITY=`, a line `MODEL VERSION SHA256 SIZE FILE`
//! for each model, a line `---`, and below it signatures of all lines above, 128 digits each.
//!
//! The signatures are ECDSA over the group of Ed25519, by ecdsautils, which no library that ncmesh
//! uses has. This module does not check them: it keeps them byte for byte, and the autoupdater on a
//! router checks them as before. Nothing that this module reads counts as signed.

use crate::hex::{hex, unhex};
use crate::image::Image;
use crate::manifest::{MAX_BYTES, MAX_SIGNATURES, SEPARATOR};
use crate::release::{Head, MAX_IMAGES, Release};
use crate::version::Version;
use crate::word;
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;

/// Longest line, bytes: the autoupdater stops at a longer one.
pub const MAX_LINE: usize = 512;

/// Reason why a text is no manifest of Gluon, or does not become a release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GluonError {
    /// It is longer than any manifest.
    #[error("a manifest has at most {MAX_BYTES} bytes")]
    Long,
    /// It is not plain text.
    #[error("a manifest is ASCII text, each line ended by a line feed")]
    NoText,
    /// A line is longer than the autoupdater reads.
    #[error("line {0} has more than {MAX_LINE} characters")]
    LongLine(usize),
    /// A line is none of a manifest.
    #[error("line {line}: expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The form that belongs there.
        expected: &'static str,
    },
    /// A field that the autoupdater needs is not there.
    #[error("there is no line {0}=")]
    Missing(&'static str),
    /// It has no image.
    #[error("there is no line MODEL VERSION SHA256 SIZE FILE")]
    NoImage,
    /// It has too many images.
    #[error("a manifest has at most {MAX_IMAGES} images")]
    ManyImages,
    /// It has too many signatures.
    #[error("a manifest has at most {MAX_SIGNATURES} signatures")]
    ManySignatures,
    /// Two lines that differ are for one model. The autoupdater would take the first.
    #[error("two images for {0}")]
    TwoImages(String),
    /// Models have different versions, but a release has one.
    #[error("versions {0} and {1} in one manifest")]
    TwoVersions(Version, Version),
}

/// Line of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GluonImage {
    /// Version of the image.
    pub version: Version,
    /// SHA-256 of the image.
    pub sha256: [u8; 32],
    /// Size, bytes.
    pub size: u64,
    /// Name of its file.
    pub file: String,
}

/// Fields of a manifest that a release does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// When the release was made, such as `2026-11-28 12:00:00+00:00`.
    pub date: Date,
    /// Days over which the nodes update.
    pub priority: Priority,
}

/// Manifest of Gluon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GluonManifest {
    /// The whole text. A signature is for bytes, so they stay as they are.
    text: String,
    branches: Vec<String>,
    schedule: Schedule,
    images: BTreeMap<String, GluonImage>,
    signatures: Vec<[u8; 64]>,
}

impl GluonManifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`GluonError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, GluonError> {
        if bytes.len() > MAX_BYTES {
            return Err(GluonError::Long);
        }
        let is_plain = |c: &u8| matches!(c, b'\n' | b'\t' | b' '..=b'~');
        let text = core::str::from_utf8(bytes).map_err(|_| GluonError::NoText)?;
        if !bytes.iter().all(is_plain) || !text.ends_with('\n') {
            return Err(GluonError::NoText);
        }

        let mut branches = Vec::new();
        let mut date = None;
        let mut priority = None;
        let mut images = BTreeMap::new();
        let mut signatures = None::<Vec<[u8; 64]>>;
        for (at, line) in text.lines().enumerate() {
            let line_number = at + 1;
            let expected = |expected| GluonError::Line { line: line_number, expected };
            if line.len() > MAX_LINE {
                return Err(GluonError::LongLine(line_number));
            }

            // Below the separator are signatures only.
            if let Some(signatures) = &mut signatures {
                if signatures.len() == MAX_SIGNATURES {
                    return Err(GluonError::ManySignatures);
                }
                if !line.is_empty() {
                    let digits = unhex(&line.to_ascii_lowercase());
                    signatures.push(digits.ok_or_else(|| expected("a signature of 128 digits"))?);
                }
            } else if line == SEPARATOR {
                signatures = Some(Vec::new());
            } else if let Some(branch) = line.strip_prefix("BRANCH=") {
                // A manifest may be for several branches.
                word::word("a branch", branch).map_err(|_| expected("BRANCH=NAME"))?;
                branches.push(branch.to_owned());
            } else if let Some(value) = line.strip_prefix("DATE=") {
                let value = value.parse().map_err(|_| expected(Date::FORM))?;
                // The autoupdater takes the first one, too.
                date.get_or_insert(value);
            } else if let Some(value) = line.strip_prefix("PRIORITY=") {
                let value = value.parse().map_err(|_| expected(Priority::FORM))?;
                priority.get_or_insert(value);
            } else if let Some((model, image)) = read_image(line).map_err(expected)? {
                if images.len() == MAX_IMAGES {
                    return Err(GluonError::ManyImages);
                }
                match images.get(&model) {
                    Some(known) if *known != image => return Err(GluonError::TwoImages(model)),
                    _ => images.insert(model, image),
                };
            }
        }

        // The autoupdater ignores a manifest without one of these.
        if branches.is_empty() {
            return Err(GluonError::Missing("BRANCH"));
        }
        if images.is_empty() {
            return Err(GluonError::NoImage);
        }

        let date = date.ok_or(GluonError::Missing("DATE"))?;
        let priority = priority.ok_or(GluonError::Missing("PRIORITY"))?;
        Ok(Self {
            text: text.to_owned(),
            branches,
            schedule: Schedule { date, priority },
            images,
            signatures: signatures.unwrap_or_default(),
        })
    }

    /// Writes the manifest of a release, for its channel as branch. Gluon's signers add their
    /// signatures with `contrib/sign.sh`.
    #[must_use]
    pub fn of(release: &Release, schedule: Schedule) -> Self {
        let Head { version, channel, .. } = release.head();
        let Schedule { date, priority } = &schedule;

        // Signatures are for these bytes, so no line is written in another way later.
        let mut text = format!("BRANCH={channel}\nDATE={date}\nPRIORITY={priority}\n\n");
        let mut images = BTreeMap::new();
        for Image { model, file, size, digests } in release.images() {
            let sha256 = hex(&digests.sha256);
            text.push_str(&format!("{model} {version} {sha256} {size} {file}\n"));
            let image = GluonImage {
                version: version.clone(),
                sha256: digests.sha256,
                size: *size,
                file: file.clone(),
            };
            images.insert(model.clone(), image);
        }

        let branches = vec![channel.clone()];
        Self { text, branches, schedule, images, signatures: Vec::new() }
    }

    /// Returns the branches that it is for.
    #[must_use]
    pub fn branches(&self) -> &[String] {
        &self.branches
    }

    /// Returns when and how fast nodes update.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the images by model.
    #[must_use]
    pub fn images(&self) -> &BTreeMap<String, GluonImage> {
        &self.images
    }

    /// Returns the signatures, which nobody has checked.
    #[must_use]
    pub fn signatures(&self) -> &[[u8; 64]] {
        &self.signatures
    }

    /// Returns the version of all images.
    ///
    /// # Errors
    /// [`GluonError::TwoVersions`].
    pub fn version(&self) -> Result<&Version, GluonError> {
        let mut versions = self.images.values().map(|image| &image.version);
        let first = versions.next().ok_or(GluonError::NoImage)?;

        // The spelling counts: 1.0 and 1.00 are one version, but two texts in one manifest.
        match versions.find(|other| *other != first) {
            Some(other) => Err(GluonError::TwoVersions(first.clone(), other.clone())),
            None => Ok(first),
        }
    }
}

impl fmt::Display for GluonManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads the line of a model. Returns `None` for one that the autoupdater skips.
fn read_image(line: &str) -> Result<Option<(String, GluonImage)>, &'static str> {
    let expected = "MODEL VERSION SHA256 SIZE FILE";
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let [model, version, sha256, size, file] = words[..] else {
        // Comments, and lines without a size, which old releases of Gluon write as well.
        let is_skipped = words.is_empty() || line.starts_with('#') || words.len() == 4;
        return if is_skipped { Ok(None) } else { Err(expected) };
    };
    if line.starts_with('#') {
        return Ok(None);
    }

    word::word("a model", model).map_err(|_| expected)?;
    word::file(file).map_err(|_| expected)?;
    let image = GluonImage {
        version: version.parse().map_err(|_| expected)?,
        sha256: unhex(&sha256.to_ascii_lowercase()).ok_or(expected)?,
        size: size.parse().map_err(|_| expected)?,
        file: file.to_owned(),
    };
    Ok(Some((model.to_owned(), image)))
}

/// A text that is no value of this field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct Unfit(&'static str);

/// Time of a release, as Gluon writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Date(String);

impl Date {
    const FORM: &'static str = "DATE=YYYY-MM-DD HH:MM:SS+HH:MM";
}

impl FromStr for Date {
    type Err = Unfit;

    fn from_str(text: &str) -> Result<Self, Unfit> {
        let form = b"0000-00-00 00:00:00+00:00";
        let fits = |(c, form): (u8, &u8)| match form {
            b'0' => c.is_ascii_digit(),
            b'+' => c == b'+' || c == b'-',
            other => c == *other,
        };

        let is_date = text.len() == form.len() && text.bytes().zip(form).all(fits);
        if is_date { Ok(Self(text.to_owned())) } else { Err(Unfit(Self::FORM)) }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Days over which nodes update, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority(String);

impl Priority {
    const FORM: &'static str = "PRIORITY=DAYS, such as 1 or 0.5";
}

impl FromStr for Priority {
    type Err = Unfit;

    fn from_str(text: &str) -> Result<Self, Unfit> {
        // The form that `strtof` and everybody else read the same way.
        let is_plain = text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
        let is_number = text.parse().is_ok_and(|days: f32| days.is_finite());
        if is_plain && is_number { Ok(Self(text.to_owned())) } else { Err(Unfit(Self::FORM)) }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
