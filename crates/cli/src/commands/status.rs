//! `ncmesh status`: shows the node's state.

use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::{Remote, WatchArgs};
use crate::show;
use crate::watch::watch;
use ncmesh_console::schema::Values;
use ncmesh_node::api::types::{
    Coding, Flow, Identity, KeptParts, PortState, Status, Stream, Traffic, Tunnel, TunnelRoute,
};
use ncmesh_node::identity::unix_s;
use std::collections::BTreeMap;

/// Resource of the daemon that the command shows.
const PATH: &str = "/v1/status";
/// Longest rest of a certificate that is shown, seconds: a thousand years.
const MOST_LEFT_S: f64 = 3.2e10;
/// Most routes of the tunnel that are shown as text.
const MOST_ROUTES: usize = 8;

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: &WatchArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    if args.watch {
        return watch(&client, remote.json, PATH, text);
    }
    let status: Status = client.read(PATH)?;
    if remote.json { show::json(&status) } else { show::line(&text(&status)) }
}

/// Returns the status as lines. Parts that a node does not have are left out.
fn text(s: &Status) -> String {
    let inbox = s.inbox.as_ref().map(|dir| dir.display().to_string());
    let kept = match s.kept {
        KeptParts { files: 0, .. } => String::new(),
        KeptParts { files, bytes } => {
            format!(", {files} kept whose source is gone ({})", show::bytes(bytes))
        }
    };

    let inbox = inbox.unwrap_or_else(|| "none; files sent to this node are refused".into());
    let shown = s.display_name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));

    let mut lines = vec![
        format!("node       {}{shown} (id {}), ncmesh {}", s.name, s.id, s.version),
        format!("up         {}", show::duration(s.values.uptime_s)),
        radio(s),
        format!("mesh       {} neighbours, {} other nodes", s.values.neighbors, s.values.nodes),
        format!("inbox      {inbox}"),
        format!("transfers  {} under way{kept}", s.values.transfers_open),
        format!("sent       {}", traffic(&s.sent)),
        format!(
            "airtime    {:.1} s; {} data packets sent",
            s.usage.airtime_s, s.usage.transmissions
        ),
        format!("control    {}", control(s)),
        format!("heard      {}", traffic(&s.heard)),
    ];
    lines.extend(s.identity.iter().map(|own| format!("identity   {}", identity(own))));
    if !s.drops.is_empty() {
        lines.push(format!("dropped    {}", drops(&s.drops)));
    }

    // One paragraph for each service, and hints at the end, where they are seen.
    lines.extend(s.tunnel.iter().flat_map(tunnel));
    lines.extend(s.flows.iter().map(flow));
    lines.extend(s.streams.iter().map(stream));
    lines.extend(s.coding.iter().filter(|c| c.values.sent + c.values.decoded > 0).flat_map(coding));
    lines.extend(s.hints.iter().map(|hint| format!("hint       {hint}")));
    lines.join("\n")
}

/// Returns the only port, or a line for each.
fn radio(s: &Status) -> String {
    let mtu = s.mtu;
    if s.ports.len() < 2 {
        return format!("radio      {}, frames up to {mtu} bytes", s.radio);
    }
    let port = |PortState { name, radio, up, values }: &PortState| {
        let state = if *up { "up" } else { "down" };
        format!("port       {name}, {state}: {radio}\n           {}", known(values))
    };
    let mut lines: Vec<String> = s.ports.iter().map(port).collect();
    lines.push(format!("           frames up to {mtu} bytes on all ports"));
    lines.join("\n")
}

/// Returns a node's key, the end of its certificate, and what it knows of others.
fn identity(identity: &Identity) -> String {
    let Identity { fingerprint, serial, expires, known, revoked, conflicts } = identity;
    let mut text = format!("key {fingerprint}");

    // A node of a network without certificates has a key all the same.
    if let Some((serial, expires)) = serial.zip(*expires) {
        let left = (expires.saturating_sub(unix_s()) as f64).min(MOST_LEFT_S);
        text += &format!(", certificate {serial} for {}", show::duration(left));
    }

    text += &format!("; {known} other keys known, {revoked} certificates revoked");
    if !conflicts.is_empty() {
        let nodes: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
        text += &format!("; conflicts about {}", nodes.join(", "));
    }
    text
}

/// Returns the control traffic of each kind.
fn control(s: &Status) -> String {
    let kinds = s.usage.control.iter().filter(|(_, of)| of.frames > 0);
    let kinds: Vec<String> = kinds
        .map(|(kind, of)| {
            format!("{kind} {:.1} kB in {:.2} s", of.bytes as f64 / 1e3, of.airtime_s)
        })
        .collect();
    if kinds.is_empty() { "none".into() } else { kinds.join(", ") }
}

/// Returns lines about the tunnel.
fn tunnel(t: &Tunnel) -> Vec<String> {
    let namespace = t.namespace.as_ref().map(|name| format!(" in namespace {name}"));
    let out = show::bytes(t.bytes_out);
    let into = show::bytes(t.bytes_in);
    let mut lines = vec![
        format!(
            "tunnel     {} by {} ({}){}: {}, packets up to {} bytes",
            t.device,
            t.scheme,
            t.scheme_reason,
            namespace.unwrap_or_default(),
            t.addresses.join(", "),
            t.mtu
        ),
        format!(
            "           {} packets out, {out}; {} in, {into}; {} wait",
            t.packets_out, t.packets_in, t.waiting
        ),
    ];

    lines.extend(routes(&t.routes));
    if !t.groups.is_empty() {
        lines.push(format!("           multicast groups {}", t.groups.join(", ")));
    }
    if !t.drops.is_empty() {
        lines.push(format!("           dropped {}", drops(&t.drops)));
    }
    lines
}

/// Returns lines about where the tunnel leads: the first addresses, and how many there are.
fn routes(routes: &[TunnelRoute]) -> impl Iterator<Item = String> + '_ {
    let node = |route: &TunnelRoute| match &route.node {
        Some(node) => format!("to {node}"),
        None => "nowhere now".into(),
    };

    let line = move |route: &TunnelRoute| {
        let kind = if route.announced_by.is_empty() { "" } else { ", as announced" };
        format!("           {} leads {}{kind}", route.prefix, node(route))
    };

    let more = routes.len().saturating_sub(MOST_ROUTES);
    let rest = (more > 0).then(|| format!("           {more} more routes: --json"));
    routes.iter().take(MOST_ROUTES).map(line).chain(rest)
}

/// Returns a line about a flow: all that is known of it.
fn flow(f: &Flow) -> String {
    let Flow { scheme, source, destination, .. } = f;
    format!("flow       {source} to {destination} by {scheme}: {}", known(&f.values))
}

/// Returns the values of a state that are known, each with its name.
fn known(values: &impl Values) -> String {
    let known: Vec<String> = values.numbers().map(|(field, value)| field.show(value)).collect();
    known.join(", ")
}

/// Returns a line about a stream.
fn stream(s: &Stream) -> String {
    let held: u64 = s.queues.iter().flat_map(|queue| &queue.values.held).sum();
    let dropped: u64 = s.queues.iter().flat_map(|queue| &queue.values.dropped).sum();
    format!(
        "stream     {} to group {} from {}: {} receivers through here, \
         {held} packets held, {dropped} dropped",
        s.id, s.group, s.source, s.receivers
    )
}

/// Returns lines about a scheme that combines packets.
fn coding(c: &Coding) -> Vec<String> {
    let mut lines = vec![format!("coding     by {}: {}", c.scheme, known(&c.values))];

    // Only core_nc has relay modes, and only cope and core_nc can be told to combine nothing.
    let relay = c.relay.map(|relay| format!("a {} relay", relay.name()));
    let apart = (c.combines == Some(false)).then(|| "which combines nothing".to_owned());
    let relay: Vec<_> = relay.into_iter().chain(apart).collect();
    if !relay.is_empty() {
        lines.push(format!("           {}", relay.join(", ")));
    }
    if let Some(gain) = c.gain {
        lines.push(format!("           forwarding would send {gain:.2} times as many frames"));
    }
    lines.extend(c.why_not.iter().map(|why| format!("           {why}")));
    lines.extend(c.holds.iter().map(|hold| {
        let ms = hold.hold_s * 1e3;
        format!("           from {} to {} held for {ms:.2} ms", hold.previous, hold.next)
    }));
    lines
}

/// Returns the counts of dropped frames or packets, each with its reason.
fn drops(all: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> = all.iter().map(|(why, n)| format!("{n} {why}")).collect();
    each.join(", ")
}

/// Returns the sum of frames and bytes over all services.
fn traffic(all: &[Traffic]) -> String {
    let frames: u64 = all.iter().map(|t| t.frames).sum();
    let bytes = all.iter().map(|t| t.bytes).sum();
    format!("{frames} frames, {}", show::bytes(bytes))
}
