//! Mechanisms that engines are built from. Each exists once; engines configure it.

pub mod coder;
pub mod flood;
pub mod flow;
pub mod flow_counters;
pub mod flow_table;
pub mod moving_average;
