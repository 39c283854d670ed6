//! `ncmesh stream`: sends, receives, lists and stops live streams.

use crate::client::Client;
use crate::failure::{Failure, Kind};
use crate::remote_args::Remote;
use crate::show::{self, Table};
use crate::stream_args::{StreamCommand, StreamReceiveArgs, StreamSendArgs};
use crate::watch::Interrupts;
use ncmesh_console::schema::{QueueValues, Values};
use ncmesh_engine::text::decode;
use ncmesh_node::api::types::{JoinedGroup, Stream, StreamReceiving};
use ncmesh_node::stream::{MAX_SDP, ReceiveStream, SendStream};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Time between two requests for the streams.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(before: Remote, command: StreamCommand) -> Result<(), Failure> {
    let json = before.json;
    let client = |remote: Remote| Client::new(&remote.or(before));
    match command {
        StreamCommand::Send(c) => send(&client(c.remote)?, json, c.args),
        StreamCommand::Watch(c) => super::stream_watch::run(&client(c.remote)?, c.args),
        StreamCommand::Receive(c) => receive(&client(c.remote)?, json, c.args),
        StreamCommand::List(c) => list(&client(c.remote)?, json),
        StreamCommand::Stop(c) => stop(&client(c.remote)?, json, &c.args.group),
    }
}

/// Begins a stream. Unless told otherwise, shows it until it is interrupted, and ends it.
fn send(client: &Client, json: bool, args: StreamSendArgs) -> Result<(), Failure> {
    let StreamSendArgs { group, layers, rtp, sdp, deadline, no_wait } = args;
    let sdp = sdp.map(|file| read_sdp(&file)).transpose()?;
    let request = SendStream { group: group.clone(), layers, rtp, sdp, deadline_ms: deadline };
    let begun: SendStream = client.put("/v1/streams/sent", &request)?;
    if no_wait {
        return if json { show::json(&begun) } else { Ok(()) };
    }

    // The stream ends even if watching it failed.
    show::note(&format!("sending to group {group}; Ctrl-C ends the stream"));
    let watched = watch(client, json, &group, sending);
    client.delete::<Vec<Stream>>(&format!("/v1/streams/sent/{group}"))?;
    watched
}

/// Reads a session description. Longer files are not read to their end, which some do not have.
fn read_sdp(file: &Path) -> Result<String, Failure> {
    let fail = |problem: &str| Failure::new(Kind::File, format!("{}: {problem}", file.display()));
    let mut bytes = Vec::new();
    let opened = File::open(file).map(|open| open.take(MAX_SDP as u64 + 1));
    opened.and_then(|mut open| open.read_to_end(&mut bytes)).map_err(|e| fail(&e.to_string()))?;
    if bytes.len() > MAX_SDP {
        let problem = format!("a session description has up to {MAX_SDP} bytes; this has more");
        return Err(fail(&problem));
    }

    decode(bytes).map_err(|problem| fail(&problem.to_string()))
}

/// Joins a group. Unless told otherwise, shows its streams until interrupted, and leaves it.
fn receive(client: &Client, json: bool, args: StreamReceiveArgs) -> Result<(), Failure> {
    let StreamReceiveArgs {
        group,
        layers,
        rtp,
        utility,
        weight,
        xi,
        alpha,
        min_rate: min_rate_bps,
        penalty,
        no_wait,
    } = args;
    let group_name = group.clone();
    let request =
        ReceiveStream { group, layers, rtp, utility, weight, xi, alpha, min_rate_bps, penalty };
    let joined: ReceiveStream = client.put("/v1/streams/received", &request)?;
    if no_wait {
        return if json { show::json(&joined) } else { Ok(()) };
    }

    show::note(&format!("joined group {group_name}; Ctrl-C leaves it"));
    // The group is left even if watching it failed.
    let watched = watch(client, json, &group_name, receiving);
    client.delete::<Vec<Stream>>(&format!("/v1/streams/received/{group_name}"))?;
    watched
}

/// Shows the streams of a group once each interval until interrupted.
fn watch(
    client: &Client,
    json: bool,
    group: &str,
    line: fn(&Stream, Option<&Stream>) -> Option<String>,
) -> Result<(), Failure> {
    let mut before: Vec<Stream> = Vec::new();
    let mut waiting = false;
    let mut interrupts = Interrupts::new(client)?;
    while !interrupts.come_within(client, POLL_INTERVAL) {
        let all: Vec<Stream> = client.read("/v1/streams")?;
        let of_group: Vec<Stream> = all.into_iter().filter(|s| s.group == group).collect();

        // A group may have no stream yet. That is said once.
        if of_group.is_empty() && !waiting {
            show::note(&format!("waiting: nobody sends to group {group}"));
        }
        waiting = of_group.is_empty();

        // A line for each stream, with rates since the line before.
        for stream in &of_group {
            let last = before.iter().find(|last| last.id == stream.id);
            let read_on = match line(stream, last) {
                Some(_) if json => show::json_line(stream)?,
                Some(text) => show::endless_line(&text)?,
                None => true,
            };

            if !read_on {
                return Ok(());
            }
        }

        before = of_group;
    }

    Ok(())
}

/// Returns a line about a stream that this node sends. `last` is its state at the line before.
fn sending(stream: &Stream, last: Option<&Stream>) -> Option<String> {
    // A stream that was begun again counts from 0, which must not underflow.
    let now = stream.sending.as_ref()?;
    let before = last.and_then(|last| last.sending.as_ref());
    let packets = |i: usize| now.taken[i] - before.map_or(0, |b| b.taken[i].min(now.taken[i]));
    let layers = stream.layers.iter().enumerate().map(|(i, name)| format!("{name} {}", packets(i)));
    let layers: Vec<String> = layers.collect();
    Some(format!(
        "{}: packets a second {}; {} receivers, {} refused",
        stream.id,
        layers.join(", "),
        stream.receivers,
        now.refused
    ))
}

/// Returns a line about a stream that this node receives. `last` is its state at the line before.
fn receiving(stream: &Stream, last: Option<&Stream>) -> Option<String> {
    let now = stream.receiving.as_ref()?;
    let before = last.and_then(|last| last.receiving.as_ref());
    // Counters begin at zero again when a receiver joins again: the rate is then 0, not negative.
    let bytes = |i: usize| {
        let now = now.values.bytes[i];
        now - before.map_or(0, |before| before.values.bytes[i].min(now))
    };

    let rate = |i: usize| bytes(i) as f64 * 8.0 / POLL_INTERVAL.as_secs_f64() / 1e3;
    let layers = stream.layers.iter().enumerate();
    let layers: Vec<String> =
        layers.map(|(i, name)| format!("{name} {:.0} kbit/s", rate(i))).collect();

    // A problem is printed when it begins, not each second.
    let last = before.and_then(|before| before.problem.as_ref()).map(|last| &last.code);
    let begun = now.problem.as_ref().filter(|problem| last != Some(&problem.code));
    let problem = begun.map_or(String::new(), |problem| format!("; {}", problem.text));
    Some(format!("{} from {}: {}{problem}", stream.id, stream.source, layers.join(", ")))
}

/// Prints the streams that the node knows, the groups that it waits for, and its queues.
fn list(client: &Client, json: bool) -> Result<(), Failure> {
    let streams: Vec<Stream> = client.read("/v1/streams")?;
    if json {
        return show::json(&streams);
    }
    let columns = ["STREAM", "GROUP", "FROM", "LAYERS", "HERE", "RECEIVERS", "BY"];
    let mut table = Table::new(columns);
    for stream in &streams {
        table.row([
            stream.id.clone(),
            stream.group.clone(),
            stream.source.clone(),
            stream.layers.join(","),
            part(stream).into(),
            stream.receivers.to_string(),
            show::or_dash(stream.parent.clone()),
        ]);
    }

    // Groups that the node has joined and to which nobody sends have a row too.
    let joined: Vec<JoinedGroup> = client.read("/v1/streams/received")?;
    for JoinedGroup { group, .. } in joined.into_iter().filter(|joined| joined.streams.is_empty()) {
        let row = ["-", &group, "-", "-", "waits", "-", "-"].map(str::to_owned);
        table.row(row);
    }

    show::line(&table.to_string())?;
    if streams.iter().any(|stream| !stream.queues.is_empty()) {
        show::line("")?;
        show::line(&queues(&streams))?;
    }

    if streams.iter().any(|stream| stream.receiving.is_some()) {
        show::line("")?;
        show::line(&receptions(&streams))?;
    }

    problems(&streams).iter().try_for_each(|problem| show::line(problem))
}

/// Returns a table of what came of each layer that this node receives.
fn receptions(streams: &[Stream]) -> String {
    let columns = ["RECEPTION OF", "LAYER", "OFFERED", "CAME", "MISSING"];
    let when = ["DISORDERED", "DELAY MS", "99 % MS", "WHOLE S"];
    let mut table = Table::new(columns.into_iter().chain(when));
    for stream in streams {
        let Some(StreamReceiving { values, .. }) = &stream.receiving else { continue };
        for (at, layer) in stream.layers.iter().enumerate() {
            let count = |of: &[u64]| show::or_dash(of.get(at).map(u64::to_string));
            let ms = |of: &[f64]| show::or_dash(of.get(at).map(|s| format!("{:.0}", 1e3 * s)));
            let whole = values.whole_base_s.zip(values.base_s).filter(|_| at == 0);
            table.row([
                stream.group.clone(),
                layer.clone(),
                count(&values.offered),
                count(&values.packets),
                count(&values.missing),
                count(&values.out_of_order),
                ms(&values.delay_p50_s),
                ms(&values.delay_p99_s),
                show::or_dash(whole.map(|(whole, all)| format!("{whole} of {all}"))),
            ]);
        }
    }

    table.to_string()
}

/// Returns the problems that keep this node from the rates it asks for.
fn problems(streams: &[Stream]) -> Vec<String> {
    let of = |stream: &Stream| {
        let problem = stream.receiving.as_ref()?.problem.as_ref()?;
        let Stream { id, group, source, .. } = stream;
        Some(format!("stream {id} to group {group} from {source}: {}", problem.text))
    };
    streams.iter().filter_map(of).collect()
}

/// Returns this node's part in a stream.
fn part(stream: &Stream) -> &'static str {
    match (&stream.sending, &stream.receiving) {
        (Some(_), _) => "sends",
        (_, Some(_)) => "receives",
        _ if stream.queues.is_empty() => "-",
        _ => "forwards",
    }
}

/// Returns a table of the node's queues. M, D, W and MU are the paper's symbols; Q is what is held
/// and the place-holders.
fn queues(streams: &[Stream]) -> String {
    let mut table = Table::new(["QUEUE OF", "TO"]);
    table.columns(QueueValues::FIELDS);
    for (stream, queue) in streams.iter().flat_map(|s| s.queues.iter().map(move |q| (s, q))) {
        let which = [stream.group.clone(), queue.to.clone()];
        table.row(which.into_iter().chain(show::cells(&queue.values)));
    }
    table.to_string()
}

/// Ends the node's own stream to a group and leaves the group.
fn stop(client: &Client, json: bool, group: &str) -> Result<(), Failure> {
    // The node may send, receive, or both. It is an error only if it did neither.
    let sent = client.delete::<Vec<Stream>>(&format!("/v1/streams/sent/{group}"));
    let received = client.delete::<Vec<Stream>>(&format!("/v1/streams/received/{group}"));
    match (sent, received) {
        (Ok(streams), _) | (_, Ok(streams)) if json => show::json(&streams),
        (Ok(_), _) | (_, Ok(_)) => Ok(()),
        (Err(failure), Err(_)) => Err(failure),
    }
}
