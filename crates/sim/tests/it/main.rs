//! The simulator: scenarios, observers and outcomes, and whole runs of the engines.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod console;
mod file_multicast;
mod flows;
mod formats;
mod measured_beforehand;
mod mobility;
mod observers;
mod outcome;
mod ports;
mod scenario_file;
mod scenarios;
mod schema;
mod sharing;
mod side_by_side;
mod streams;
mod support;
