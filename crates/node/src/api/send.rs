//! Sending a file over the API, and resuming transfers after a restart.
//!
//! A transfer starts in these steps: resolve the receivers, open the file, cut it into generations,
//! hash it, save the transfer to the journal, announce it. Steps that wait for a disk run on other
//! threads, between calls of the node's loop.

use super::blocking::blocking;
use super::spool;
use super::types::{ApiError, ErrorCode, Recipients, SendRequest};
use crate::node::{Handle, Receivers};
use crate::state::{Left, OutgoingFile, USUAL_PRIORITY};
use crate::store::is_temporary;
use crate::tree::format::check_tree;
use ncmesh_engine::Background;
use ncmesh_engine::file::merkle::{self, Digest, MerkleTree};
use ncmesh_engine::file::{Allowance, Geometry, Manifest, check_file_name};
use ncmesh_engine::registry::{AUTO, ServiceKind};
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engines::registry;
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, Metadata};
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// Longest time to wait for a path to a receiver.
const REACH_TIME: Duration = Duration::from_secs(10);
/// Time between two looks for a path.
const REACH_PAUSE: Duration = Duration::from_millis(200);
/// Pauses between attempts to open the files of resumed transfers.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(64) };

/// Least limit of what a source sends.
const LEAST_LIMIT_BPS: u64 = 1_000;
/// Highest priority of a file.
const HIGHEST_PRIORITY: u8 = 9;

/// Offers a file to its receivers.
///
/// # Errors
/// [`ApiError`] if the file, its name or its receivers are unsuitable.
pub(super) async fn send(handle: &Handle, request: SendRequest) -> Result<FlowId, ApiError> {
    let path = request.path.clone();
    let offered = offer(handle, request, None).await;
    if offered.is_err() {
        spool::forget(handle.call(|node| node.spool()).await?, &path).await?;
    }
    offered
}

/// Sends a file to nodes whose ids are known, for a part of the daemon.
pub(crate) async fn send_to(handle: Handle, request: SendRequest, receivers: Receivers) {
    let path = request.path.clone();
    if let Err(e) = offer(&handle, request, Some(receivers)).await {
        tracing::warn!("{} is not sent: {e}", path.display());
    }
}

/// Offers a file to its receivers, those of the request unless others are given.
async fn offer(
    handle: &Handle,
    request: SendRequest,
    receivers: Option<Receivers>,
) -> Result<FlowId, ApiError> {
    let SendRequest { path, to, name, scheme, background, limit_bps, priority } = request;

    // Check everything that needs no reading: name, scheme, receivers, file, size.
    let name = sent_name(&path, name)?;
    let scheme = scheme.as_deref().unwrap_or(AUTO);
    let choice = registry()
        .choose(ServiceKind::File, scheme)
        .map_err(|e| ApiError::new(ErrorCode::BadRequest, e.to_string()))?;
    let scheme = choice.entry.name;
    let background = background.map(checked_background).transpose()?;
    if let Some(bps) = limit_bps.filter(|bps| *bps < LEAST_LIMIT_BPS) {
        let problem = format!("limit_bps = {bps}: allowed is {LEAST_LIMIT_BPS} or more");
        return Err(ApiError::new(ErrorCode::BadRequest, problem));
    }
    let priority = priority.unwrap_or(USUAL_PRIORITY);
    if priority > HIGHEST_PRIORITY {
        let problem = format!("priority = {priority}: allowed is 0 to {HIGHEST_PRIORITY}");
        return Err(ApiError::new(ErrorCode::BadRequest, problem));
    }

    let receivers = match receivers {
        Some(receivers) => receivers,
        None => resolve(handle, to).await?,
    };

    // Opened once: the file that was measured is the one that is hashed and sent.
    let opened = path.clone();
    let announced = name.clone();
    let (file, size) = blocking(move || open(&opened, &announced)).await??;
    let (geometry, source) =
        handle.call(move |node| Ok((node.cut(scheme, size)?, node.id()))).await??;

    // Hash the file. This takes the longest.
    let read = path.clone();
    let (file, digest) = blocking(move || digest_unchanged(&read, file, &geometry)).await??;

    // Name the transfer, save it and announce it.
    let serial = getrandom::u32().map_err(|e| file_error(&path, &e.into()))?;
    let flow = FlowId { source, serial };
    let root = MerkleTree::new(digest.leaves.clone(), geometry.depth()).root();
    let manifest = Manifest { flow, name, geometry, root, hash: digest.whole };

    let (receivers, open) = (receivers.listed, receivers.open);
    let outgoing = OutgoingFile {
        path,
        manifest,
        scheme: scheme.into(),
        scheme_reason: Some(ncmesh_engines::reason(choice).into()),
        receivers,
        done: BTreeMap::new(),
        open,
        allowance: Allowance { background, limit_bps },
        priority,
    };
    start(handle, outgoing, file, digest).await?;
    Ok(flow)
}

/// Returns the bound on the airtime of a file in the background.
pub(super) fn checked_background(percent: u8) -> Result<Background, ApiError> {
    let wrong = || {
        let problem = format!("`background` must be 1 to 100 percent, not {percent}");
        ApiError::new(ErrorCode::BadRequest, problem)
    };
    Background::of(percent).ok_or_else(wrong)
}

/// Returns the nodes that are meant. Waits for those that are known but have no path for now: they
/// may have just restarted.
async fn resolve(handle: &Handle, to: Recipients) -> Result<Receivers, ApiError> {
    let deadline = Instant::now() + REACH_TIME;
    loop {
        let to = to.clone();
        match handle.call(move |node| node.resolve(&to)).await? {
            Err(e) if e.code == ErrorCode::UnreachableReceiver && Instant::now() < deadline => {
                tokio::time::sleep(REACH_PAUSE).await;
            }
            resolved => return resolved,
        }
    }
}

/// Saves the transfer to the journal, then announces it.
async fn start(
    handle: &Handle,
    outgoing: OutgoingFile,
    file: File,
    digest: Digest,
) -> Result<(), ApiError> {
    // Saved before it is announced, or a crash between would leave receivers without a source.
    let journal = handle.call(|node| node.outgoing_journal()).await?;
    let flow = outgoing.manifest.flow;
    let kept = outgoing.clone();
    let written = journal.clone();
    blocking(move || written.save(&kept)).await?.map_err(|e| {
        ApiError::new(ErrorCode::File, format!("the state directory cannot be written: {e}"))
    })?;

    let sent = handle.call(move |node| node.send(outgoing, Some(file), digest.leaves)).await?;
    if sent.is_err() {
        // A refused transfer has nothing to resume. If removing it fails, it is refused again at
        // the next start.
        let _ = blocking(move || journal.remove(flow)).await?;
    }

    sent
}

/// Resumes the transfers that were in progress when the daemon stopped.
pub async fn resume(handle: Handle) -> Result<(), ApiError> {
    let journal = handle.call(|node| node.outgoing_journal()).await?;
    // A directory that cannot be read must not keep the daemon from running.
    let left = blocking(move || journal.load()).await?.unwrap_or_else(|e| {
        tracing::warn!("transfers under way cannot be read: {e}");
        Left::default()
    });

    let Left { files, damaged } = left;
    handle.call(move |node| node.note_damaged(damaged)).await?;
    send_again(&handle, VecDeque::from(files)).await
}

/// Sends a file whose turn has come.
pub async fn send_waiting(handle: Handle, file: OutgoingFile) {
    let flow = file.manifest.flow;
    // It fails only while the daemon stops.
    let _ = send_again(&handle, VecDeque::from([file])).await;
    let _ = handle
        .call(move |node| {
            node.note_unsent(flow);
            node.send_waiting();
        })
        .await;
}

/// Opens files that were hashed before, and sends them.
async fn send_again(handle: &Handle, mut left: VecDeque<OutgoingFile>) -> Result<(), ApiError> {
    let mut failures = 0;
    while let Some(outgoing) = left.pop_front() {
        let flow = outgoing.manifest.flow;
        // Files are opened one at a time, so that a thousand transfers need no thousand
        // descriptors.
        let checked = outgoing.clone();
        let (file, leaves) = match blocking(move || reopen(&checked)).await? {
            // The last descriptor is in use, or the disk does not answer: later, after the others.
            Err(e) if is_temporary(&e) => {
                tracing::warn!("{flow} is resumed later: {e}");
                left.push_back(outgoing);
                tokio::time::sleep(PAUSES.pause(failures)).await;
                failures += 1;
                continue;
            }
            reopened => reopened.unwrap_or_default(),
        };

        match handle.call(move |node| node.send(outgoing, file, leaves)).await? {
            Ok(()) => tracing::info!("{flow}: resumed"),
            Err(e) => tracing::warn!("{flow} is not resumed: {e}"),
        }
    }

    Ok(())
}

/// File of a resumed transfer and its hashes.
type Reopened = (Option<File>, Vec<merkle::Hash>);

/// Opens and hashes the file of a resumed transfer.
///
/// A file that is missing or has changed comes without hashes. The engine then reports it as
/// changed and tells the receivers.
fn reopen(outgoing: &OutgoingFile) -> io::Result<Reopened> {
    // Check the type first: opening a pipe would wait for its writer.
    if !std::fs::metadata(&outgoing.path)?.is_file() {
        return Ok((None, Vec::new()));
    }
    let file = File::open(&outgoing.path)?;
    let geometry = &outgoing.manifest.geometry;
    if file.metadata()?.len() != geometry.size() {
        return Ok((Some(file), Vec::new()));
    }
    let digest = merkle::digest(BufReader::new(&file), geometry)?;
    let is_same = digest.whole == outgoing.manifest.hash;
    Ok((Some(file), if is_same { digest.leaves } else { Vec::new() }))
}

/// Returns the file's name at the receivers, if they will accept it.
fn sent_name(path: &Path, name: Option<String>) -> Result<String, ApiError> {
    if !path.is_absolute() {
        return Err(ApiError::new(ErrorCode::BadRequest, "path must be absolute"));
    }

    // Checked here, so that the user hears at once and not from each receiver.
    let own = || path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let name = name.or_else(own).unwrap_or_default();
    check_file_name(&name).map(|()| name.clone()).map_err(|problem| {
        let message =
            format!("receivers would refuse the name {name:?}: {problem}; give another (--name)");
        ApiError::new(ErrorCode::File, message)
    })
}

fn open(path: &Path, name: &str) -> Result<(File, u64), ApiError> {
    let metadata = std::fs::metadata(path).map_err(|e| file_error(path, &e))?;
    // Check the type first: opening a pipe would wait for its writer.
    if !metadata.is_file() {
        let problem = format!("{} is not a regular file", path.display());
        return Err(ApiError::new(ErrorCode::File, problem));
    }
    let file = File::open(path).map_err(|e| file_error(path, &e))?;
    // Checked here: receivers would find out when they have all of it.
    if name.ends_with('/') {
        check_tree(&file).map_err(|e| file_error(path, &e))?;
    }
    Ok((file, metadata.len()))
}

/// Hashes a file and checks that it did not change meanwhile.
fn digest_unchanged(
    path: &Path,
    file: File,
    geometry: &Geometry,
) -> Result<(File, Digest), ApiError> {
    // Size and time of change, before and after: a file that was written meanwhile is refused.
    let failed = |e: io::Error| file_error(path, &e);
    let before = file.metadata().map_err(failed)?;
    let digest = merkle::digest(BufReader::new(&file), geometry);
    let after = file.metadata().map_err(failed)?;
    let is_same = geometry.size() == after.len() && stamp(&before) == stamp(&after);

    // Files of /proc and /sys have a size of 0, or one that is not theirs.
    let is_short = digest.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::UnexpectedEof);
    if is_same && (is_short || file.read_at(&mut [0], after.len()).is_ok_and(|more| more > 0)) {
        let problem = format!(
            "{} has other bytes than its size says, {}: `ncmesh send - --name NAME < FILE` sends \
             what can be read of it",
            path.display(),
            after.len()
        );
        return Err(ApiError::new(ErrorCode::File, problem));
    }

    if !is_same {
        let problem =
            format!("{} changes while it is read; send it when it is finished", path.display());
        return Err(ApiError::new(ErrorCode::File, problem));
    }

    Ok((file, digest.map_err(failed)?))
}

fn stamp(metadata: &Metadata) -> (u64, Option<std::time::SystemTime>) {
    (metadata.len(), metadata.modified().ok())
}

fn file_error(path: &Path, e: &io::Error) -> ApiError {
    ApiError::new(ErrorCode::File, format!("{} cannot be read: {e}", path.display()))
}
