//! A host of one's own: two nodes over a channel in memory that loses a fifth of the frames.
//!
//! A stack has no clock, no socket and no thread. A host tells it the time, gives it what was heard
//! and asks it what to send. Here time is a number that the loop moves to the next deadline.
//!
//! `cargo run -p ncmesh-tests --example host`

use ncmesh_engine::file::FileLimits;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Event, TxReport, TxResult};
use ncmesh_engines::registry;
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, NodeId, Salt, Versions};
use std::error::Error;

/// Longest frame, bytes.
const MTU: usize = 1472;

fn stack(id: u16) -> Result<Stack, Box<dyn Error>> {
    let config = StackConfig {
        node: NodeId(id),
        name: format!("n{id}"),
        profile: Default::default(),
        // Drawn anew at each start of a real node: nonces differ by it.
        salt: Salt([id as u8; 16]),
        epoch: 1,
        seed: u64::from(id),
        mtu: MTU,
        versions: Versions::OWN,
        cipher: Cipher::Null,
        trust: Default::default(),
        link: Default::default(),
        route: Default::default(),
        share: Default::default(),
        engines: toml::Table::new(),
        file: FileLimits::default(),
    };
    Ok(Stack::new(config, registry(), Instant::default())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut nodes = [stack(1)?, stack(2)?];
    let mut storage = [MemoryStorage::default(), MemoryStorage::default()];
    let mut now = Instant::default();
    let mut frames = 0_u32;
    let mut lost = 0_u32;
    let mut frame = Vec::new();
    let mut give_at = Instant::default();
    let forward = nodes[0].scheme("forward").ok_or("no scheme is called forward")?;

    loop {
        for own in 0..2 {
            nodes[own].at(now, &mut storage[own]).handle_timeout();
            // As soon as node 1 knows a path, it gets a packet for node 2. The channel may lose it,
            // so it gets the same one each second.
            let can_send = nodes[0].can_send(forward, NodeId(2)) == Some(true);
            if own == 0 && can_send && now >= give_at {
                let mut node = nodes[0].at(now, &mut storage[0]);
                if node.send_packet(forward, NodeId(2), b"over the mesh").is_ok() {
                    give_at = now + Duration::from_secs(1);
                }
            }
            // A radio grants one transmission at a time; this one is free at once.
            while nodes[own].at(now, &mut storage[own]).fill(&mut frame).is_some() {
                frames += 1;
                let airtime = Duration::from_micros(192 + frame.len() as u64 * 8 / 11);
                now = now + airtime;
                let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
                nodes[own].at(now, &mut storage[own]).handle_tx_report(report);
                if frames.is_multiple_of(5) {
                    lost += 1;
                } else {
                    let other = 1 - own;
                    nodes[other].at(now, &mut storage[other]).handle_datagram(&frame);
                }
            }
            while let Some(event) = nodes[own].poll_event() {
                if let Event::Packet { from, packet } = event {
                    println!("{} from node {}", String::from_utf8(packet)?, from.0);
                    println!("after {:.2} s, {frames} frames, {lost} lost", now.as_secs_f64());
                    return Ok(());
                }
            }
        }
        let deadlines = nodes.iter().filter_map(Stack::poll_timeout);
        let next = deadlines.min().ok_or("no node waits for anything")?;
        now = now.max(next);
        if now > Instant::default() + Duration::from_secs(60) {
            return Err("nothing arrived within a minute".into());
        }
    }
}

#[test]
fn it_runs() {
    main().unwrap();
}
