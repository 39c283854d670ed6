//! Uncoded live streams, as users would have them otherwise: the baselines of the coded schemes.
//!
//! | scheme | how packets travel |
//! | --- | --- |
//! | `stream_tree` | down the shortest-ETX tree; each hop repeats a packet until its deadline |
//! | `smf` | flooded over multipoint relays, each of which sends it once (RFC 6621) |
//!
//! Both are one engine with two rules. A packet is held with the nodes that still lack it, and when
//! it is due for each; late packets are dropped.
//!
//! | module | contents |
//! | --- | --- |
//! | `engine` | the engine at one node: frames in, frames out |
//! | `api` | streams that this node sends, groups that it joins |
//! | `session` | a stream at one node: packets that it holds, and for whom |
//! | `relays` | multipoint relays, from link state |
//! | `frame` | frames |

mod api;
mod config;
mod engine;
mod frame;
mod relays;
mod session;

#[cfg(test)]
mod tests;

pub use config::LiveConfig;
pub use engine::{Live, Rule, SMF_ID, STREAM_TREE_ID};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;

/// Name of the scheme over a tree.
pub const STREAM_TREE_NAME: &str = "stream_tree";
/// Name of the scheme that floods.
pub const SMF_NAME: &str = "smf";

/// Row of the scheme over a tree in a program's registry.
pub const STREAM_TREE: Entry = Entry {
    name: STREAM_TREE_NAME,
    id: STREAM_TREE_ID,
    summary: "baseline: uncoded live streams over a tree, repeated at each hop until the deadline",
    paper: "baseline",
    settings: LiveConfig::settings,
    layouts: frame::TREE_LAYOUTS,
    read: |_, kind, body| frame::summary(STREAM_TREE_NAME, kind, body),
    build: Constructor::Stream(|settings| {
        let config: LiveConfig = settings.parse()?;
        Ok(Box::new(Live::new(Rule::Tree, config)))
    }),
};

/// Row of the scheme that floods in a program's registry.
pub const SMF: Entry = Entry {
    name: SMF_NAME,
    id: SMF_ID,
    summary: "baseline: uncoded live streams, flooded over multipoint relays",
    paper: "baseline: RFC 6621, relays by RFC 7181 (S-MPR)",
    settings: LiveConfig::settings,
    layouts: frame::SMF_LAYOUTS,
    read: |_, kind, body| frame::summary(SMF_NAME, kind, body),
    build: Constructor::Stream(|settings| {
        let config: LiveConfig = settings.parse()?;
        Ok(Box::new(Live::new(Rule::Flood, config)))
    }),
};
