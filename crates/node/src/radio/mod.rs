//! What a daemon sends and hears with.

pub mod air;
