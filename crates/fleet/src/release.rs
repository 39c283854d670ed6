//! Parts of a release, and its text that is signed.

use crate::hex::hex;
use crate::image::Image;
use crate::version::Version;
use crate::word::{self, Misnamed};
use core::fmt::{self, Write};
use std::collections::BTreeMap;

/// Most images of one release.
pub const MAX_IMAGES: usize = 2048;
/// Most versions that a release can name as those it replaces.
pub const MAX_REPLACED: usize = 16;

/// Reason why parts make no release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A name has characters that are not allowed.
    #[error(transparent)]
    Misnamed(#[from] Misnamed),
    /// It has no image.
    #[error("a release has at least one image")]
    NoImage,
    /// It has too many images.
    #[error("a release has at most {MAX_IMAGES} images")]
    ManyImages,
    /// It names too many versions.
    #[error("a release replaces at most {MAX_REPLACED} versions")]
    ManyReplaced,
    /// It would replace its own version or a newer one.
    #[error("version {0} cannot be replaced by version {1}, which is not newer")]
    Replaced(Version, Version),
    /// Two images are for one model.
    #[error("two images for {0}")]
    TwoImages(String),
    /// Two images have one name.
    #[error("two images that differ are named {0}")]
    TwoFiles(String),
    /// An image has no contents.
    #[error("the image for {0} is empty")]
    Empty(String),
}

/// Hash of a release's signed text: two releases with one id are the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReleaseId(pub [u8; 32]);

impl fmt::Display for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReleaseId({})", hex(&self.0[..4]))
    }
}

/// Facts of a release that are the same for all models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Name of the firmware, such as that of a community. Versions count within one name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Channel, such as `stable` or `testing`. A node follows one.
    pub channel: String,
    /// Versions from which a node may change to this one. Without any, all older ones.
    pub replaces: Vec<Version>,
}

/// A release: one image for each model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    head: Head,
    /// In the order of their models.
    images: Vec<Image>,
}

impl Release {
    /// Makes a release of its parts, in any order.
    ///
    /// # Errors
    /// A [`Flaw`].
    pub fn new(mut head: Head, mut images: Vec<Image>) -> Result<Self, Flaw> {
        word::word("a release's name", &head.name)?;
        word::word("a channel", &head.channel)?;

        // A replaced version is older and stands there once: one release has one text.
        if head.replaces.len() > MAX_REPLACED {
            return Err(Flaw::ManyReplaced);
        }
        let is_older = |old: &&Version| head.version.is_newer_than(old);
        if let Some(old) = head.replaces.iter().find(|old| !is_older(old)) {
            return Err(Flaw::Replaced(old.clone(), head.version));
        }
        head.replaces.sort_by(Version::order);
        head.replaces.dedup_by(|a, b| a.is_same(b));

        // A release without images would be for nobody.
        match images.len() {
            0 => return Err(Flaw::NoImage),
            1..=MAX_IMAGES => {}
            _ => return Err(Flaw::ManyImages),
        }
        images.sort_by(|a, b| a.model.cmp(&b.model));

        let mut files: BTreeMap<&str, &Image> = BTreeMap::new();
        for image in &images {
            word::word("a model", &image.model)?;
            word::file(&image.file)?;
            if image.size == 0 {
                return Err(Flaw::Empty(image.model.clone()));
            }
            // Models may share a file, which then is one file.
            let first = files.entry(&image.file).or_insert(image);
            if (first.size, first.digests) != (image.size, image.digests) {
                return Err(Flaw::TwoFiles(image.file.clone()));
            }
        }

        // Sorted by model, so two images for one stand side by side.
        if let Some(two) = images.windows(2).find(|two| two[0].model == two[1].model) {
            return Err(Flaw::TwoImages(two[0].model.clone()));
        }

        Ok(Self { head, images })
    }

    /// Returns the facts that are the same for all models.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns all images, in the order of their models.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// Returns the image for a model.
    #[must_use]
    pub fn image(&self, model: &str) -> Option<&Image> {
        let at = self.images.binary_search_by(|image| image.model.as_str().cmp(model)).ok()?;
        Some(&self.images[at])
    }

    /// Returns the text that is signed. The same release has the same text.
    #[must_use]
    pub fn statement(&self) -> String {
        // Each line begins with its field, and no value has a space or a line feed, so the text can
        // be read in one way only.
        let Head { name, version, channel, replaces } = &self.head;
        let mut text = format!("{FIRST_LINE}\nname {name}\nversion {version}\nchannel {channel}\n");
        for old in replaces {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "replaces {old}");
        }
        for Image { model, file, size, digests } in &self.images {
            let sha256 = hex(&digests.sha256);
            let blake3 = hex(&digests.blake3);
            let _ = writeln!(text, "image {model} {size} {sha256} {blake3} {file}");
        }
        text
    }

    /// Returns the hash of that text.
    #[must_use]
    pub fn id(&self) -> ReleaseId {
        ReleaseId(blake3::hash(self.statement().as_bytes()).into())
    }
}

/// First line of a manifest: its format and the format's version.
pub(crate) const FIRST_LINE: &str = "ncmesh release 1";
