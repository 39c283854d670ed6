//! `ncmesh status`.

use crate::args::Remote;
use crate::client::Client;
use crate::failure::Failure;
use crate::show;
use ncmesh_node::api::types::{Status, Traffic};

pub(crate) fn run(remote: &Remote) -> Result<(), Failure> {
    let status: Status = Client::new(remote)?.read("/v1/status")?;
    if remote.json { show::json(&status) } else { show::line(&text(&status)) }
}

fn text(s: &Status) -> String {
    let inbox = s.inbox.as_ref().map(|dir| dir.display().to_string());
    let inbox = inbox.unwrap_or_else(|| "none; files sent to this node are refused".into());
    let mut lines = vec![
        format!("node       {} (id {}), ncmesh {}", s.name, s.id, s.version),
        format!("up         {}", show::duration(s.uptime_s)),
        format!("radio      {}, frames up to {} bytes", s.radio, s.mtu),
        format!("mesh       {} neighbours, {} other nodes", s.neighbors, s.nodes),
        format!("inbox      {inbox}"),
        format!("transfers  {} under way", s.transfers_open),
        format!("sent       {}", traffic(&s.sent)),
        format!("heard      {}", traffic(&s.heard)),
    ];
    if !s.drops.is_empty() {
        let drops: Vec<String> = s.drops.iter().map(|(why, n)| format!("{n} {why}")).collect();
        lines.push(format!("dropped    {}", drops.join(", ")));
    }
    lines.extend(s.hints.iter().map(|hint| format!("hint       {hint}")));
    lines.join("\n")
}

fn traffic(all: &[Traffic]) -> String {
    let frames: u64 = all.iter().map(|t| t.frames).sum();
    let bytes = all.iter().map(|t| t.bytes).sum();
    format!("{frames} frames, {}", show::bytes(bytes))
}
