//! Statistical propagation models: path loss over distance, and fading from frame to frame.

mod fading;
mod path_loss;

pub use fading::Fading;
pub use path_loss::PathLoss;
