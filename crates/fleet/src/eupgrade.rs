//! Announcements of LibreMesh's `eupgrade`: one JSON file for each board, signed by `usign`.

use crate::hex::{hex, unhex};
use crate::image::Image;
use crate::word::{self, Misnamed};
use serde::{Deserialize, Serialize};

/// Longest file, bytes.
pub const MAX_BYTES: usize = 64 * 1024;
/// Most images and most addresses of each image.
pub const MAX_ITEMS: usize = 16;

/// Version of the format.
const FORMAT: u32 = 1;

/// Reason why a text is no announcement.
#[derive(Debug, thiserror::Error)]
pub enum EupgradeError {
    /// It is longer than any announcement.
    #[error("an announcement has at most {MAX_BYTES} bytes")]
    Long,
    /// It is no JSON, or lacks a field.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is of a later format.
    #[error("metadata-version {0} is not known, only {FORMAT}")]
    Format(u32),
    /// It has too many images or addresses.
    #[error("more than {MAX_ITEMS} images, or addresses of one image")]
    Many,
    /// The board or a file has a name that is none.
    #[error(transparent)]
    Misnamed(#[from] Misnamed),
    /// A hash is none.
    #[error("the sha256 of {0} is not 64 digits")]
    Hash(String),
    /// It has no image that `eupgrade` would take.
    #[error("there is no image of type \"installer\" or \"sysupgrade\"")]
    NoImage,
}

/// Announcement of the latest image of a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Announcement {
    metadata_version: u32,
    images: Vec<BoardImage>,
    /// Name of the board, as in `/tmp/sysinfo/board_name`.
    pub board: String,
    /// Description of the release, which a node compares with its `DISTRIB_DESCRIPTION`.
    pub version: String,
    /// Page that says what is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_info_url: Option<String>,
}

/// Image of a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BoardImage {
    /// Name of its file.
    pub name: String,
    /// `sysupgrade`, or `installer` for a script that installs it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is: below the node's `api_url`, or anywhere.
    pub download_urls: Vec<String>,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

impl Announcement {
    /// Returns the announcement of an image, which lies beside the directory `latest`.
    #[must_use]
    pub fn of(image: &Image, description: &str) -> Self {
        let file = BoardImage {
            name: image.file.clone(),
            kind: "sysupgrade".into(),
            download_urls: vec![image.file.clone()],
            sha256: hex(&image.digests.sha256),
        };

        Self {
            metadata_version: FORMAT,
            images: vec![file],
            board: image.model.clone(),
            version: description.to_owned(),
            release_info_url: None,
        }
    }

    /// Reads an announcement.
    ///
    /// # Errors
    /// [`EupgradeError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, EupgradeError> {
        if bytes.len() > MAX_BYTES {
            return Err(EupgradeError::Long);
        }
        let found: Self = serde_json::from_slice(bytes)?;
        if found.metadata_version != FORMAT {
            return Err(EupgradeError::Format(found.metadata_version));
        }

        // A router reads this with little memory, so lists that no release needs are refused.
        let urls = found.images.iter().map(|image| image.download_urls.len());
        if found.images.len().max(urls.max().unwrap_or(0)) > MAX_ITEMS {
            return Err(EupgradeError::Many);
        }

        // Names become those of files, and hashes are compared as bytes.
        word::word("a board", &found.board)?;
        for image in &found.images {
            word::file(&image.name)?;
            image.digest()?;
        }
        found.image()?;
        Ok(found)
    }

    /// Returns the image that `eupgrade` takes: the first installer, else the last `sysupgrade`.
    ///
    /// # Errors
    /// [`EupgradeError::NoImage`].
    pub fn image(&self) -> Result<&BoardImage, EupgradeError> {
        let of = |kind: &'static str| self.images.iter().filter(move |image| image.kind == kind);
        of("installer").next().or(of("sysupgrade").next_back()).ok_or(EupgradeError::NoImage)
    }

    /// Returns the text.
    ///
    /// # Errors
    /// None that is known: all fields are text and numbers.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Returns the name of its file below `latest/`, as `eupgrade` makes it of the board's name.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.json", slug(&self.board))
    }
}

impl BoardImage {
    /// Returns its SHA-256.
    ///
    /// # Errors
    /// [`EupgradeError::Hash`].
    pub fn digest(&self) -> Result<[u8; 32], EupgradeError> {
        unhex(&self.sha256).ok_or_else(|| EupgradeError::Hash(self.name.clone()))
    }
}

/// Replaces the same characters as LibreMesh does.
fn slug(board: &str) -> String {
    let replace = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    board.chars().map(replace).collect()
}
