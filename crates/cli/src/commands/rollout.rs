//! `ncmesh fleet push`, `apply`, `confirm`, `abort`, `rollback` and `status`: roll-outs of router
//! images, which the daemon carries out.

use super::send::recipients;
use crate::client::{Client, absolute};
use crate::failure::{Failure, Kind};
use crate::fleet_args::{ApplyArgs, EventArgs, PushArgs, RolloutCommand};
use crate::remote_args::{Remote, WatchArgs};
use crate::show::{self, Table};
use crate::watch::{Interrupts, watch};
use ncmesh_engine::Background;
use ncmesh_node::api::fleet::{
    ApplyRequest, FleetEvent, FleetEvents, FleetMember, FleetNode, FleetRollout, FleetStatus,
    PushRequest,
};
use std::path::Path;
use std::time::Duration;

/// Resource of the daemon that tells how far a roll-out is.
const PATH: &str = "/v1/fleet";
/// Time between two questions how far it is.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs a command. `before` are the options before its name.
pub(crate) fn run(before: Remote, command: RolloutCommand) -> Result<(), Failure> {
    match command {
        RolloutCommand::Push(c) => push(&c.remote.or(before), c.args),
        RolloutCommand::Apply(c) => apply(&c.remote.or(before), c.args),
        RolloutCommand::Confirm(c) => command_of(&c.remote.or(before), "confirm"),
        RolloutCommand::Abort(c) => command_of(&c.remote.or(before), "abort"),
        RolloutCommand::Rollback(c) => command_of(&c.remote.or(before), "rollback"),
        RolloutCommand::Status(c) => status(&c.remote.or(before), &c.args),
        RolloutCommand::Events(c) => events(&c.remote.or(before), &c.args),
    }
}

fn push(remote: &Remote, args: PushArgs) -> Result<(), Failure> {
    let PushArgs { manifest, images, to, airtime, within, downgrade, wait } = args;
    // The daemon has another working directory.
    let manifest = absolute(&manifest)?;
    let images = match images {
        Some(images) => absolute(&images)?,
        None => manifest.parent().unwrap_or(Path::new("/")).to_owned(),
    };
    let request = PushRequest {
        manifest,
        images,
        to: recipients(to)?,
        background: airtime.map(Background::percent),
        stage_within_s: within,
        downgrade,
    };

    // The answer comes once all files are read, which takes a while for large images.
    let client = Client::new(remote)?;
    let begun: FleetStatus = client.post("/v1/fleet/push", &request)?;
    if !wait {
        return shown(remote, &begun);
    }
    let ended = follow(&client, &["pushing"])?;
    shown(remote, &ended)?;

    // A push is over when each node has said something, which may be that it does not take it.
    let has = |node: &FleetNode| matches!(node.standing.as_deref(), Some("staged" | "kept"));
    let mut all = ended.rollout.map(|rollout| rollout.nodes).unwrap_or_default();
    all.retain(|node| node.standing.as_deref() != Some("has_no_fleet"));
    let staged = all.iter().filter(|node| has(node)).count();
    if staged == all.len() {
        return Ok(());
    }
    let message = format!("{staged} of {} nodes have staged the release", all.len());
    Err(Failure::new(Kind::Incomplete, message))
}

fn apply(remote: &Remote, args: ApplyArgs) -> Result<(), Failure> {
    let ApplyArgs { without_missing, batch, canary, within, trial, at, by_hand, wait } = args;
    // Options that are left out have the daemon's defaults: only it knows the mesh.
    let request = ApplyRequest {
        without_missing,
        batch,
        canaries: canary,
        update_within_s: within,
        confirm_within_s: trial,
        by_hand,
        after_s: at.map(|at| at.as_secs()),
    };

    let client = Client::new(remote)?;
    let begun: FleetStatus = client.post("/v1/fleet/apply", &request)?;
    if !wait {
        return shown(remote, &begun);
    }
    let ended = follow(&client, &["scheduled", "applying"])?;
    shown(remote, &ended)?;

    // Any other end is a reason to look at the nodes, which the table above names.
    match ended.rollout {
        Some(rollout) if rollout.stage == "done" => Ok(()),
        Some(rollout) => Err(Failure::new(Kind::Incomplete, rollout.waits_for)),
        None => Err(Failure::new(Kind::Incomplete, "the roll-out is gone")),
    }
}

/// Gives a command that has no options.
fn command_of(remote: &Remote, command: &str) -> Result<(), Failure> {
    let status: FleetStatus = Client::new(remote)?.post(&format!("{PATH}/{command}"), &())?;
    shown(remote, &status)
}

fn status(remote: &Remote, args: &WatchArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    if args.watch {
        return watch(&client, remote.json, PATH, |status: &FleetStatus| text(status));
    }
    shown(remote, &client.read(PATH)?)
}

/// Prints the events of the roll-out, with `--watch` also those to come.
fn events(remote: &Remote, args: &EventArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    let mut interrupts = Interrupts::new(&client)?;
    let mut last: Option<FleetEvent> = None;
    loop {
        let FleetEvents { events } = client.read("/v1/fleet/events")?;
        // Another roll-out counts its events from the beginning.
        let seen = last.as_ref().map_or((0, 0), |last| (last.rollout, last.number));
        for event in events.iter().filter(|event| (event.rollout, event.number) > seen) {
            if !show::json_line(event)? {
                return Ok(());
            }
        }
        last = events.last().cloned().or(last);
        if !args.watch || interrupts.come_within(&client, POLL_INTERVAL) {
            return Ok(());
        }
    }
}

/// Waits until the roll-out leaves these stages.
fn follow(client: &Client, stages: &[&str]) -> Result<FleetStatus, Failure> {
    loop {
        // Another stage ends the wait, also one that somebody else has begun.
        let status: FleetStatus = client.read(PATH)?;
        if status.rollout.as_ref().is_none_or(|rollout| !stages.contains(&&*rollout.stage)) {
            return Ok(status);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn shown(remote: &Remote, status: &FleetStatus) -> Result<(), Failure> {
    if remote.json { show::json(status) } else { show::line(&text(status)) }
}

/// Returns the roll-out that the node leads as a table, and else the one that it takes part in.
fn text(status: &FleetStatus) -> String {
    // The operator's own node may take part, too: the table has a row for it.
    match status {
        FleetStatus { rollout: Some(rollout), .. } => led(rollout),
        FleetStatus { member: Some(member), .. } => taken(member),
        FleetStatus { .. } => {
            "no roll-outs here; [fleet] in node.toml says which this node takes part in".into()
        }
    }
}

fn led(rollout: &FleetRollout) -> String {
    let FleetRollout { name, version, waits_for, begins_in_s, nodes, .. } = rollout;
    let mut table =
        Table::new(["NODE", "ID", "MODEL", "RUNNING", "STATE", "BATCH", "HEARD", "WHY"]);
    for node in nodes {
        // A restart of the daemon forgets when nodes were heard, not what they said.
        let heard = node.last_heard_s.map(|s| format!("{} ago", show::duration(s)));
        let standing = node.standing.as_deref().map(|word| word.replace('_', " "));
        table.row([
            node.name.clone(),
            node.id.to_string(),
            show::or_dash(node.model.clone()),
            show::or_dash(node.running.clone()),
            standing.unwrap_or_else(|| "never heard".into()),
            show::or_dash(node.batch.map(|batch| batch.to_string())),
            show::or_dash(heard),
            show::or_dash(node.why.clone()),
        ]);
    }
    let begins = begins_in_s.map(|s| format!(", in {}", show::duration(s))).unwrap_or_default();
    format!("{table}\n{name} {version}: {waits_for}{begins}")
}

fn taken(member: &FleetMember) -> String {
    // One line is enough for a node that only follows.
    let FleetMember { model, running, version, standing, why, .. } = member;
    let version = version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let why = why.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
    match standing {
        Some(standing) => {
            let standing = standing.replace('_', " ");
            format!("{model} runs {running}; roll-out{version}: {standing}{why}")
        }
        None => format!("{model} runs {running}; no roll-out yet"),
    }
}
