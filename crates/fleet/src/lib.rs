//! Releases of router images: what a release is, who signed it, and how it rolls out over a mesh.
//!
//! A [`Manifest`] names the images of a [`Release`] and carries the signatures of those who answer
//! for it. [`Trust`] says which signatures count, and [`Station`] whether a release is for a node.
//! Manifests of other updaters are read and written, so that they and their signers stay in use:
//! [`gluon`] for the autoupdater of Freifunk's Gluon, [`eupgrade`] for LibreMesh.
//!
//! The crate has no sockets, files or clock: callers hand in readers, bytes and times.

pub mod eupgrade;
pub mod gluon;
mod hex;
mod image;
mod judge;
mod manifest;
mod release;
pub mod rollout;
pub mod usign;
mod version;
mod word;

pub use image::{Digests, Image};
pub use judge::{Known, Refusal, Station, Trust, TrustError};
pub use manifest::{MAX_BYTES, MAX_SIGNATURES, Manifest, ManifestError};
pub use release::{Flaw, Head, MAX_IMAGES, MAX_REPLACED, Release, ReleaseId};
pub use version::Version;
pub use word::{MAX_FILE, MAX_WORD, Misnamed, word as check_word};
