//! Roll-outs over the API: the commands of an operator, and how far a roll-out is.

use super::blocking::blocking;
use super::types::{ApiError, ErrorCode, Recipients};
use crate::node::{Handle, Node, Push, Source, not_applied};
use ncmesh_engine::Background;
use ncmesh_fleet::rollout::{self, Batch, Settings};
use ncmesh_fleet::{MAX_BYTES, Manifest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Times that the stages of a roll-out may take, s. The longest is a month.
const SECONDS: RangeInclusive<u64> = 1..=2_678_400;
/// Shares of the nodes that are updated at once.
const PERCENT: RangeInclusive<u8> = 1..=100;

/// Body of `POST /v1/fleet/push`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushRequest {
    /// File of the manifest, an absolute path.
    pub manifest: PathBuf,
    /// Directory of the images, an absolute path.
    pub images: PathBuf,
    /// Nodes that take part. With `"all"` those that come up later do so as well.
    pub to: Recipients,
    /// Most airtime that images may take in the background, 1 to 100 percent. 100 if absent.
    #[serde(default)]
    pub background: Option<u8>,
    /// Time after which nodes that have not staged the release are listed as missing.
    #[serde(default)]
    pub stage_within_s: Option<u64>,
    /// Whether nodes may go to an older version.
    #[serde(default)]
    pub downgrade: bool,
}

/// Body of `POST /v1/fleet/apply`. What is absent has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// Update those that have staged the release, though some have not.
    #[serde(default)]
    pub without_missing: bool,
    /// Nodes that are updated at once: `{"nodes": 3}` or `{"percent": 10}`.
    #[serde(default)]
    pub batch: Option<Batch>,
    /// Nodes that are updated before all others, by name or id.
    #[serde(default)]
    pub canaries: Vec<String>,
    /// Time in which the nodes of a batch must be updated.
    #[serde(default)]
    pub update_within_s: Option<u64>,
    /// Time that a node waits for its confirmation before it goes back.
    #[serde(default)]
    pub confirm_within_s: Option<u64>,
    /// Whether nodes on trial are kept by a `confirm` alone.
    #[serde(default)]
    pub by_hand: bool,
}

/// Answer to all paths below `/v1/fleet`: roll-outs of router images at this node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetStatus {
    /// This node as one that takes part in roll-outs. Absent without `[fleet] model`.
    pub member: Option<FleetMember>,
    /// The roll-out that this node leads, or led last.
    pub rollout: Option<FleetRollout>,
}

/// A node that takes part in roll-outs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMember {
    /// Its model.
    pub model: String,
    /// Version that it runs.
    pub running: String,
    /// Version of the roll-out that it takes part in, once it has the manifest.
    pub version: Option<String>,
    /// Public key of the operator of that roll-out.
    pub operator: Option<String>,
    /// How far it is: `staging`, `staged`, `applying`, `trial`, `kept`, `rolling_back`,
    /// `rolled_back`, `refused`, `failed` or `aborted`.
    pub standing: Option<String>,
    /// Why, if there is more to say.
    pub why: Option<String>,
}

/// A roll-out, at the node that leads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRollout {
    /// Its number.
    pub number: u64,
    /// Firmware that the release is of.
    pub name: String,
    /// Version of the release.
    pub version: String,
    /// Id of the release.
    pub release: String,
    /// Stage: `pushing`, `pushed`, `applying`, `done`, `stopped`, `rolling_back` or `rolled_back`.
    pub stage: String,
    /// The thing that it waits for, or how it ended, in words.
    pub waits_for: String,
    /// Number of batches, once the release is applied.
    pub batches: usize,
    /// Batch that is updated now, from 1.
    pub batch: Option<usize>,
    /// Its nodes.
    pub nodes: Vec<FleetNode>,
}

/// A node of a roll-out, as its operator knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetNode {
    /// Its id.
    pub id: u16,
    /// Its name; its id while that is unknown.
    pub name: String,
    /// Its model. Absent if it never answered.
    pub model: Option<String>,
    /// Version that it runs.
    pub running: Option<String>,
    /// How far it is, as in the state of a node that takes part.
    pub standing: Option<String>,
    /// Why, if there is more to say.
    pub why: Option<String>,
    /// Batch in which it is updated, from 1.
    pub batch: Option<usize>,
    /// Time since it was heard last, s. Absent if it was not heard since the daemon started.
    pub last_heard_s: Option<f64>,
}

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
    if let Some(percent) = background.filter(|percent| Background::of(*percent).is_none()) {
        return Err(wrong(format!("background = {percent}: allowed is 1 to 100 percent")));
    }
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

    let crate::node::FleetNodes { nodes, is_open } = nodes;
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
    let is_possible = match batch {
        None => true,
        Some(Batch::Nodes(nodes)) => *nodes > 0,
        Some(Batch::Percent(percent)) => PERCENT.contains(percent),
    };
    if !is_possible {
        return Err(wrong("batch: allowed is 1 node or more, or 1 to 100 percent"));
    }
    let usual = Settings::default();
    let update_within = seconds("update_within_s", *update_within_s, usual.update_within)?;
    let confirm_within = seconds("confirm_within_s", *confirm_within_s, usual.confirm_within)?;
    let canaries = match &request.canaries {
        names if names.is_empty() => Vec::new(),
        names => node.fleet_nodes(&Recipients::Named(names.clone()))?.nodes,
    };

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
        rollout.apply(now, links, *without_missing).map_err(|e| not_applied(&e))
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
