//! Plain relay between a TUN device and a UDP socket, to which `bench/gateway` compares the daemon.
//!
//! Two threads copy packets, one in each direction, and do nothing else. Usage: `tun_relay DEVICE
//! ADDRESS/PREFIX LISTEN PEER`, for instance `tun_relay tun0 10.9.0.1/24 10.0.0.1:7000
//! 10.0.0.2:7000`.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::{env, thread};
use tun_rs::DeviceBuilder;

/// Length of the longest packet that is relayed, bytes.
const MTU: u16 = 1424;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [device, address, listen, peer] = words.as_slice() else {
        return Err("say DEVICE ADDRESS/PREFIX LISTEN PEER".into());
    };
    let (address, prefix) = address.split_once('/').ok_or("ADDRESS/PREFIX")?;
    let device = DeviceBuilder::new().name(device).mtu(MTU);
    let device = Arc::new(device.ipv4(address, prefix.parse::<u8>()?, None).build_sync()?);
    let socket = Arc::new(UdpSocket::bind(listen)?);
    socket.connect(peer)?;
    let from_device = Arc::clone(&device);
    let to_socket = Arc::clone(&socket);
    thread::spawn(move || {
        let mut packet = [0; MTU as usize];
        while let Ok(length) = from_device.recv(&mut packet) {
            // If the peer is not there yet, the packet is lost.
            let _ = to_socket.send(&packet[..length]);
        }
    });
    let mut packet = [0; MTU as usize];
    loop {
        // The error reports that the peer is not there yet.
        let Ok(length) = socket.recv(&mut packet) else { continue };
        device.send(&packet[..length])?;
    }
}
