//! The medium, compared with timings calculated by hand, exact models and another simulator.

#![allow(clippy::unwrap_used)] // A test fails where it unwraps.

mod cell;
mod dcf;
mod drive;
mod fading;
mod kinds;
mod mesh;
mod monte_carlo;
mod moves;
mod properties;
mod reception;
mod rts;
mod saturation;
mod slotted;
mod traffic;
