//! Tests of the decisions, of frames, and of the engine at one node.

mod decisions;
mod ends;
mod frames;
mod lies;
mod node;
mod queues;
mod trees;
