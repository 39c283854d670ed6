//! Directories in one transfer: what a file contains whose name ends in `/`.
//!
//! ```text
//!   MAGIC | length of the index, 4 | index, JSON | bytes of the files in its order
//! ```
//!
//! The index comes first, so a receiver can place each file as soon as its bytes are there. A
//! sender writes a tree from paths of its file system: [`pack`]. A tree has plain files and
//! directories only: a symbolic link, unpacked, could lead what comes later anywhere.

pub(crate) mod format;
pub mod pack;
