//! The medium against figures worked by hand, exact models and another simulator.

#![allow(clippy::unwrap_used)] // Tests may.

mod cell;
mod dcf;
mod drive;
mod kinds;
mod mesh;
mod monte_carlo;
mod properties;
mod reception;
mod rts;
mod saturation;
mod slotted;
mod traffic;
