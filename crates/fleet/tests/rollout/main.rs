//! Roll-outs over a mesh that loses messages, in which nodes lose power and one lies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

mod common;
mod hostile;
mod luck;
mod steps;
