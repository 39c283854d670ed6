//! Tasks of a host around its stack, in the simulator and in the daemon.
//!
//! The daemon (`ncmesh-node`) and the simulator (`ncmesh-sim`) drive the same stack. Around it both
//! decide whether to take an announced file, carry IP packets in and out, and join stream layers to
//! local ports. Those decisions are state machines without sockets, disk, threads or clock, and
//! they are here, so that what decides a result is the same code in both worlds:
//!
//! - [`files`]: what to do about every file that is announced or sent
//! - [`gateway`]: IP packets between a host and a tunnel of the mesh, with a queue for each
//!   connection
//! - [`console`]: what a console shows of a stack
//! - [`streams`]: what the host's ports are connected to
//! - [`measure`]: round trips and bandwidth to other nodes, by packets of ncmesh's own
//! - [`saving`]: values that must outlive the host, written until that succeeds

pub mod console;
pub mod files;
pub mod gateway;
pub mod measure;
mod rate_limit;
pub mod saving;
pub mod streams;

use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::backoff::Backoff;

/// Pauses between attempts at what failed for a reason that may pass.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(64) };
