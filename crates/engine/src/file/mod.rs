//! What file schemes share with drivers: how a file is cut, announced, and how its transfer stands.

mod batches;
mod geometry;
mod manifest;
pub mod merkle;
mod outgoing;
mod status;

pub use batches::BatchSet;
pub use geometry::{Geometry, GeometryError};
pub use manifest::{Manifest, ReceiverState, Refusal, is_safe_name};
pub use outgoing::{FileLimits, Outgoing, SendError, SendFailure};
pub use status::{Direction, ReceiverStatus, Stage, TransferStatus};
