//! Commands of an operator over the API.

use super::blocking::blocking;
use super::fleet::{ApplyRequest, FleetStatus, PushRequest};
use super::send::checked_background;
use super::types::{ApiError, ErrorCode, Recipients};
use crate::node::{FleetNodes, Handle, Node, Push, Source, not_applied};
use ncmesh_fleet::rollout::{self, Settings};
use ncmesh_fleet::{MAX_BYTES, Manifest};
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// Times that the stages of a roll-out may take, s. The longest is a month.
const SECONDS: RangeInclusive<u64> = 1..=2_678_400;

fn wrong(problem: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, problem)
}

/// Returns a time of a request.
fn seconds(name: &str, given: Option<u64>, default: Duration) -> Result<Duration, ApiError> {
    match given {
        None => Ok(default),
        Some(s) if SECONDS.contains(&s) => Ok(Duration::from_secs(s)),
        Some(s) => {
            let longest = SECONDS.end();
            Err(wrong(format!("{name} = {s}: allowed is 1 to {longest} s")))
        }
    }
}

/// Begins a roll-out. All its files are read before any node hears of it.
///
/// # Errors
/// [`ErrorCode::Refused`] for a release that this node would not take itself, [`ErrorCode::File`]
/// for files that cannot be read or are not those of the manifest, and those of
/// [`Node::push_fleet`].
pub(super) async fn push(handle: &Handle, request: PushRequest) -> Result<FleetStatus, ApiError> {
    let PushRequest { manifest: file, images, to, background, stage_within_s, downgrade } = request;
    if !file.is_absolute() || !images.is_absolute() {
        return Err(wrong("manifest and images must be absolute paths"));
    }
    background.map(checked_background).transpose()?;
    let usual = Settings::default();
    let settings = Settings {
        stage_within: seconds("stage_within_s", stage_within_s, usual.stage_within)?,
        may_downgrade: downgrade,
        ..usual
    };

    // The signatures are checked first: nothing of an unsigned release is worth reading.
    let read = file.clone();
    let manifest = blocking(move || read_manifest(&read)).await??;
    let checked = manifest.clone();
    handle.call(move |node| node.check_release(&checked)).await?.map_err(|refusal| {
        ApiError::new(ErrorCode::Refused, format!("{}: {refusal}", file.display()))
    })?;

    let nodes = handle.call(move |node| node.fleet_nodes(&to)).await??;
    let dir = images.clone();
    let checked = manifest.clone();
    blocking(move || check_images(&dir, &checked)).await??;

    let FleetNodes { nodes, is_open } = nodes;
    let source = Source { images, background, is_open };
    handle
        .call(move |node| {
            node.push_fleet(Push { manifest, source, nodes, settings })?;
            Ok(node.fleet_status())
        })
        .await?
}

fn read_manifest(file: &Path) -> Result<Manifest, ApiError> {
    let failed = |e: &dyn std::fmt::Display| {
        ApiError::new(ErrorCode::File, format!("{} cannot be read: {e}", file.display()))
    };
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|e| failed(&e))?;
    Manifest::parse(&bytes)
        .map_err(|e| ApiError::new(ErrorCode::Refused, format!("{}: {e}", file.display())))
}

/// Checks that the files of a directory are the images of a release.
fn check_images(dir: &Path, manifest: &Manifest) -> Result<(), ApiError> {
    for image in manifest.release().images() {
        let path = dir.join(&image.file);
        let is_image = File::open(&path).and_then(|file| image.is(file)).map_err(|e| {
            ApiError::new(ErrorCode::File, format!("{} cannot be read: {e}", path.display()))
        })?;
        if !is_image {
            let problem = format!("{} is not the image for {}", path.display(), image.model);
            return Err(ApiError::new(ErrorCode::Refused, problem));
        }
    }
    Ok(())
}

/// Updates the nodes that have staged the release.
///
/// # Errors
/// [`ErrorCode::BadRequest`] for a value that is not allowed or a release that is not staged, and
/// errors of the canaries' names.
pub(super) fn apply(node: &mut Node, request: &ApplyRequest) -> Result<FleetStatus, ApiError> {
    let ApplyRequest { without_missing, batch, update_within_s, confirm_within_s, by_hand, .. } =
        request;
    if batch.is_some_and(|batch| !batch.is_possible()) {
        return Err(wrong("batch: allowed is 1 node or more, or 1 to 100 percent"));
    }
    let usual = Settings::default();
    let update_within = seconds("update_within_s", *update_within_s, usual.update_within)?;
    let confirm_within = seconds("confirm_within_s", *confirm_within_s, usual.confirm_within)?;
    let after = match request.after_s {
        None | Some(0) => Duration::ZERO,
        after => seconds("after_s", after, Duration::ZERO)?,
    };
    let canaries = match &request.canaries {
        names if names.is_empty() => Vec::new(),
        names => node.fleet_nodes(&Recipients::Named(names.clone()))?.nodes,
    };

    node.check_fleet_orders()?;
    node.command_fleet(|rollout, now, links| {
        let settings = Settings {
            update_within,
            confirm_within,
            batch: batch.unwrap_or(usual.batch),
            canaries: canaries.iter().map(|node| rollout::Node(node.0)).collect(),
            by_hand: *by_hand,
            ..rollout.settings().clone()
        };
        rollout.adjust(settings);
        rollout.apply(now, links, after, *without_missing).map_err(|e| not_applied(&e))
    })?;
    Ok(node.fleet_status())
}

/// Keeps the nodes that are on trial.
///
/// # Errors
/// [`ErrorCode::BadRequest`] if none is, or this node leads no roll-out.
pub(super) fn confirm(node: &mut Node) -> Result<FleetStatus, ApiError> {
    let confirmed = node.command_fleet(|rollout, now, _| Ok(rollout.confirm(now)))?;
    match confirmed {
        0 => Err(wrong("no node is on trial")),
        _ => Ok(node.fleet_status()),
    }
}

/// Ends the roll-out.
///
/// # Errors
/// [`ErrorCode::BadRequest`] if this node leads none.
pub(super) fn abort(node: &mut Node) -> Result<FleetStatus, ApiError> {
    node.command_fleet(|rollout, now, _| {
        rollout.abort(now);
        Ok(())
    })?;
    Ok(node.fleet_status())
}

/// Sends all nodes that were updated back.
///
/// # Errors
/// [`ErrorCode::BadRequest`] if this node leads no roll-out.
pub(super) fn rollback(node: &mut Node) -> Result<FleetStatus, ApiError> {
    node.command_fleet(|rollout, now, _| {
        rollout.rollback(now);
        Ok(())
    })?;
    Ok(node.fleet_status())
}
