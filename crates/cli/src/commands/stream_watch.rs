//! `ncmesh stream watch`: joins a group and shows its video in a player.

use crate::client::Client;
use crate::failure::{Failure, Kind};
use crate::show;
use crate::stream_args::StreamWatchArgs;
use crate::watch::Interrupts;
use ncmesh_node::api::types::{JoinedGroup, Stream};
use ncmesh_node::stream::{Layer, MAX_TRACKS, PORTS_PER_TRACK, ReceiveStream};
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time between two looks at the description, the player and the user's interrupts.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two looks at whether the node is still in the group.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Tries to find ports for a player.
const TRIES: u32 = 20;

/// Players, with the options that let them take RTP in the order in which it comes: the daemon has
/// put it in order.
const PLAYERS: [(&str, &[&str]); 2] = [
    ("ffplay", &["-v", "error", "-protocol_whitelist", "file,udp,rtp", "-reorder_queue_size", "0"]),
    ("mpv", &["--demuxer-lavf-o=protocol_whitelist=[file,udp,rtp],reorder_queue_size=0"]),
];

/// Runs the command.
pub(crate) fn run(client: &Client, args: StreamWatchArgs) -> Result<(), Failure> {
    let StreamWatchArgs { group, sdp } = args;
    let mut interrupts = Interrupts::new(client)?;

    // Before the group is joined, so that a missing player costs nothing.
    let player = if sdp.is_none() { Some(find_player()?) } else { None };
    let watched = Watched { group, port: free_ports()? };
    let request = ReceiveStream::rtp(&watched.group, watched.port);
    let _: ReceiveStream = client.put("/v1/streams/received", &request)?;

    let shown = watch(client, &mut interrupts, &watched, player, sdp);

    // Another command may have joined the group for itself, or the daemon may be gone.
    if joined(client, &watched).is_ok() {
        let path = format!("/v1/streams/received/{}", watched.group);
        client.delete::<Vec<Stream>>(&path)?;
    }

    shown
}

/// A group that this command joined.
struct Watched {
    group: String,
    /// First port of its player.
    port: u16,
}

/// Shows the group until the player is closed or the user interrupts the command.
fn watch(
    client: &Client,
    interrupts: &mut Interrupts,
    group: &Watched,
    player: Option<Command>,
    file: Option<PathBuf>,
) -> Result<(), Failure> {
    // Until a source sends, nothing tells the formats, and a player could not be started.
    let Some(sdp) = description(client, interrupts, group)? else { return Ok(()) };
    let Some(mut player) = player else {
        let Some(file) = file else { return Ok(()) };

        let written = std::fs::write(&file, sdp);
        written.map_err(|e| Failure::new(Kind::File, format!("{}: {e}", file.display())))?;
        let shown = file.display();
        show::note(&format!("wrote {shown}; open it in a player. Ctrl-C leaves the group"));
        while !interrupts.come_within(client, LOOK_INTERVAL) {
            joined(client, group)?;
        }
        return Ok(());
    };

    // The file is removed at the end. A player may open it late, so it stays as long as the player.
    let file = SdpFile::new(&sdp)?;
    let mut child = player.arg(&file.0).stdin(Stdio::null()).spawn()?;

    let mut looked = Instant::now();
    while !interrupts.come_within(client, POLL_INTERVAL) {
        if let Some(status) = child.try_wait()? {
            let failed = format!("the player ended with {status}; see what it said above");
            return if status.success() { Ok(()) } else { Err(Failure::new(Kind::Other, failed)) };
        }

        // A player shows its last picture for ever.
        if looked.elapsed() < LOOK_INTERVAL {
            continue;
        }
        looked = Instant::now();
        if let Err(failure) = joined(client, group) {
            end(&mut child)?;
            return Err(failure);
        }
    }

    Ok(end(&mut child)?)
}

/// Returns the group as the node has joined it, if it plays it for this command.
fn joined(client: &Client, watched: &Watched) -> Result<JoinedGroup, Failure> {
    let Watched { group, port } = watched;
    let joined: Vec<JoinedGroup> = client.read("/v1/streams/received")?;
    let own = joined.into_iter().find(|joined| joined.group == *group);
    let own =
        own.ok_or_else(|| Failure::new(Kind::NoTransfer, format!("the node left group {group}")))?;
    // The group may be joined again for another port while this command waits.
    let is_here = |layer: &String| layer.parse::<Layer>().is_ok_and(|layer| layer.port == *port);
    if !own.playing.iter().any(is_here) {
        let text = format!("another command plays group {group} now; a node plays it once");
        return Err(Failure::new(Kind::InUse, text));
    }

    Ok(own)
}

/// Waits for the session description of a group. Returns `None` if the user interrupts it.
fn description(
    client: &Client,
    interrupts: &mut Interrupts,
    watched: &Watched,
) -> Result<Option<String>, Failure> {
    let group = &watched.group;
    let mut waiting = false;
    loop {
        let own = joined(client, watched)?;
        if own.sdp.is_some() {
            return Ok(own.sdp);
        }

        // Neither a node's own stream nor one of plain layers has a description, ever.
        let mut of_group: Vec<Stream> = client.read("/v1/streams")?;
        of_group.retain(|stream| stream.group == *group);
        let is_plain = |stream: &Stream| {
            let problem = stream.receiving.as_ref().and_then(|of| of.problem.as_ref());
            problem.is_some_and(|problem| problem.code == "no_such_layer")
        };

        if let Some(Stream { source, layers, .. }) = of_group.first() {
            let problem = if of_group.iter().all(|stream| stream.sending.is_some()) {
                Some(format!("this node sends to group {group} itself; watch it at another one"))
            } else if of_group.iter().all(is_plain) {
                let layers = layers.join(", ");
                Some(format!(
                    "{source} sends no RTP to group {group}, but layers of its own ({layers}); \
                     see `ncmesh stream receive`"
                ))
            } else {
                None
            };
            if let Some(text) = problem {
                return Err(Failure::new(Kind::Usage, text));
            }
        }

        if !waiting {
            show::note(&format!("waiting for video of group {group}"));
        }
        waiting = true;
        if interrupts.come_within(client, POLL_INTERVAL) {
            return Ok(None);
        }
    }
}

/// Returns the command of the first player that is installed.
fn find_player() -> Result<Command, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let found = PLAYERS.iter().find(|(name, _)| is_there(name));
    let Some((name, options)) = found else {
        let text = "neither ffplay nor mpv is installed; install one (Debian: apt install ffmpeg), \
                    or let --sdp FILE write what another player opens";
        return Err(Failure::new(Kind::Other, text));
    };

    let mut player = Command::new(name);
    player.args(*options);
    Ok(player)
}

/// Returns the first of as many ports in a row as a player may need, all free now.
fn free_ports() -> Result<u16, Failure> {
    let count = MAX_TRACKS as u16 * PORTS_PER_TRACK;
    let bind = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
    for _ in 0..TRIES {
        // Players expect RTP at an even port.
        let first = bind(0)?.local_addr()?.port() & !1;
        let Some(last) = first.checked_add(count) else { continue };
        let open: io::Result<Vec<UdpSocket>> = (first..last).map(bind).collect();
        if open.is_ok() {
            return Ok(first);
        }
    }

    Err(Failure::new(Kind::InUse, "there are no free UDP ports for a player"))
}

/// Ends the player as a user would.
fn end(child: &mut Child) -> io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}

/// File of a session description, which is removed on drop.
struct SdpFile(PathBuf);

impl SdpFile {
    fn new(sdp: &str) -> Result<Self, Failure> {
        let random = getrandom::u64().map_err(io::Error::from)?;
        let place = std::env::temp_dir().join(format!("ncmesh-{random:016x}.sdp"));
        let written = write_new(&place, sdp);
        written.map_err(|e| Failure::new(Kind::File, format!("{}: {e}", place.display())))?;
        Ok(Self(place))
    }
}

/// Writes a file that does not exist yet, since others may write to the same directory.
fn write_new(place: &Path, text: &str) -> io::Result<()> {
    File::create_new(place)?.write_all(text.as_bytes())
}

impl Drop for SdpFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
