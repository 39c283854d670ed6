//! Types that file schemes share with drivers.
//!
//! A file is cut into generations ([`Geometry`]), each of which proves with a hash tree that it
//! belongs to the file ([`merkle`]). The source announces it ([`Manifest`]) and sends it
//! ([`Outgoing`]). A [`TransferStatus`] shows how far a transfer is.

pub mod check;
mod generations;
mod geometry;
mod manifest;
pub mod merkle;
mod outgoing;
mod status;

pub use generations::GenerationSet;
pub use geometry::{Geometry, GeometryError};
pub use manifest::{Manifest, NameProblem, ReceiverState, Refusal, check_file_name, is_safe_name};
pub use outgoing::{Allowance, FileLimits, Outgoing, SendError, SendFailure};
pub use status::{Begun, Direction, ReceiverStatus, Stage, TransferStatus};
