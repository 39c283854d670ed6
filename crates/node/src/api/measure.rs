//! Measured round trips and bandwidth. The handlers wait; the node's loop does not.

use super::answers::{BandwidthRequest, EchoRequest, Measured, Path};
use super::types::{ApiError, ErrorCode};
use crate::node::Handle;
use ncmesh_engine::time::Duration;
use ncmesh_wire::NodeId;
use std::ops::RangeInclusive;
use tokio::time::timeout;

/// Longest time in which the round trips of one hop are measured.
const ECHO_TIME: Duration = Duration::from_secs(2);
/// Time after which the next echo request is sent though the reply has not come.
const ECHO_PAUSE: Duration = Duration::from_millis(500);
/// Echo requests to each hop.
const COUNTS: RangeInclusive<u8> = 0..=20;

/// Returns the best path to a node, with measured round trips to each hop.
///
/// # Errors
/// Errors of a receiver of that name; [`ErrorCode::BadRequest`] if the count is not allowed.
pub(super) async fn echo_path(
    handle: &Handle,
    node: String,
    EchoRequest { count }: EchoRequest,
) -> Result<Path, ApiError> {
    if !COUNTS.contains(&count) {
        let problem = format!("count = {count}: allowed is 0 to {}", COUNTS.end());
        return Err(ApiError::new(ErrorCode::BadRequest, problem));
    }
    let mut path = handle.call(move |own| own.path_to(&node)).await??;
    // One after the other, so that they do not wait for each other on the air.
    for hop in &mut path.hops {
        hop.rtt_s = round_trip(handle, NodeId(hop.id), count).await?;
    }
    Ok(path)
}

/// Measures the median of some round trips, s, as many as come back in [`ECHO_TIME`].
async fn round_trip(handle: &Handle, to: NodeId, count: u8) -> Result<Option<f64>, ApiError> {
    // One deadline for all, so that an answer to a late echo does not prolong the measurement.
    let until = handle.call(|node| node.clock().now() + ECHO_TIME).await?;
    let mut rtts = Vec::new();
    let mut late = Vec::new();
    for _ in 0..count {
        let mut answer = handle.call(move |node| node.echo(to, until)).await?;
        // The next echo does not wait for a lost one.
        match timeout(ECHO_PAUSE, &mut answer).await {
            Ok(rtt) => rtts.extend(rtt.ok().flatten()),
            Err(_) => late.push(answer),
        }
    }

    for answer in late {
        rtts.extend(answer.await.ok().flatten());
    }

    // The median: one echo that waited behind a transfer must not decide.
    rtts.sort_unstable();
    Ok(rtts.get(rtts.len() / 2).map(Duration::as_secs_f64))
}

/// Measures the bandwidth to a node.
///
/// # Errors
/// Errors of a receiver of that name; [`ErrorCode::BadRequest`], [`ErrorCode::Busy`];
/// [`ErrorCode::UnreachableReceiver`] if it does not answer.
pub(super) async fn bandwidth(
    handle: &Handle,
    request: BandwidthRequest,
) -> Result<Measured, ApiError> {
    let mut running = handle.call(move |node| node.begin_run(&request)).await??;
    let result = (&mut running.result).await;
    running.measured(result.ok().flatten())
}
