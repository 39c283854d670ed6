//! The hello at the front of a hello frame.

use crate::link::{Hello, MAX_ASKED, MAX_LATE};
use crate::peers::{LEAST_LEN, Proofs};
use ncmesh_engine::Malformed;
use ncmesh_engine::time::Duration;
use ncmesh_wire::{RadioAddress, Reader, Writer};

/// Length of a hello that asks nobody and tells no address, bytes.
pub(super) const HELLO_LEN: usize = 2 + 2 + 2 + 2 + 8 + 2 + LEAST_LEN;
/// Length of an address, bytes.
pub(super) const ADDRESS_LEN: usize = 4;
/// Place, in the number of nodes asked, of the number of newer versions that the sender
/// understands.
const NEWER_SHIFT: u32 = 6;
/// Bit of the number of nodes asked that says that the sender understands the version before.
const KNOWS_OLDER: u8 = 0x20;
/// Bit of the number of nodes missed that says that an address follows.
const HAS_ADDRESS: u8 = 0x80;

/// Appends a hello, with proofs of presence.
pub(super) fn write_hello(hello: &Hello, proofs: &Proofs, out: &mut Vec<u8>) {
    let millis = u16::try_from(hello.interval.as_millis()).unwrap_or(u16::MAX);
    let mut w = Writer::new(out);
    w.u16(millis)
        .u16(hello.short_sent)
        .u16(hello.long_sent)
        .u16(hello.neighbors)
        .u64(hello.digest)
        .u8(hello.asks.len() as u8
            | if hello.knows_older { KNOWS_OLDER } else { 0 }
            | hello.newer << NEWER_SHIFT);
    let flag = if hello.address.is_some() { HAS_ADDRESS } else { 0 };
    w.u8(hello.late.len() as u8 | flag);
    for node in hello.asks.iter().chain(&hello.late) {
        w.node(*node);
    }
    if let Some(RadioAddress(address)) = hello.address {
        w.bytes(&address);
    }
    proofs.write(&mut w);
}

/// Reads a hello with its proofs. States follow it.
pub(super) fn read_hello(r: &mut Reader<'_>) -> Result<(Hello, Proofs), Malformed> {
    let interval = Duration::from_millis(u64::from(r.u16()?.max(1)));
    let (short_sent, long_sent, neighbors, digest) = (r.u16()?, r.u16()?, r.u16()?, r.u64()?);
    let (asked, late) = (r.u8()?, r.u8()?);
    let (newer, knows_older) = (asked >> NEWER_SHIFT, asked & KNOWS_OLDER != 0);
    let asked = usize::from(asked & (KNOWS_OLDER - 1));
    let (late, has_address) = (usize::from(late & !HAS_ADDRESS), late & HAS_ADDRESS != 0);
    if asked > MAX_ASKED || late > MAX_LATE {
        return Err(Malformed);
    }
    let mut nodes = |count| (0..count).map(|_| r.node()).collect::<Result<Vec<_>, _>>();
    let (asks, late) = (nodes(asked)?, nodes(late)?);
    let address = if has_address { Some(RadioAddress(r.array()?)) } else { None };
    let hello = Hello {
        interval,
        short_sent,
        long_sent,
        neighbors,
        digest,
        asks,
        late,
        knows_older,
        newer,
        address,
    };
    Ok((hello, Proofs::read(r)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Heard;
    use ncmesh_wire::{NodeId, StartId};

    /// The golden vector of the wire format.
    #[test]
    fn golden_hello() {
        let interval = Duration::from_millis(1000);
        let asks = vec![NodeId(7)];
        let late = vec![NodeId(8)];
        let hello = Hello {
            interval,
            short_sent: 3,
            long_sent: 258,
            neighbors: 9,
            digest: 0xDEAD_BEEF_0102_0304,
            asks,
            late,
            knows_older: true,
            newer: 1,
            address: Some(RadioAddress([10, 1, 0, 9])),
        };
        let heard = |node, counter| Heard {
            node: NodeId(node),
            start: StartId(0x0102_0304_0506_0708),
            counter,
        };
        let proofs = Proofs {
            asked: vec![NodeId(7)],
            doubted: vec![NodeId(5)],
            echoes: vec![heard(7, 259)],
            vouches: vec![heard(6, 9)],
        };
        let mut out = Vec::new();
        write_hello(&hello, &proofs, &mut out);
        let counts = [3, 232, 0, 3, 1, 2, 0, 9];
        let rest = [0xDE, 0xAD, 0xBE, 0xEF, 1, 2, 3, 4, 0x61, 0x81, 0, 7, 0, 8, 10, 1, 0, 9];
        let lists = [0x11, 0x11, 0, 7, 0, 5];
        let echo = [0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 1, 3];
        let vouch = [0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9];
        assert_eq!(out, [&counts[..], &rest, &lists, &echo, &vouch].concat());
        assert_eq!(read_hello(&mut Reader::new(&out)), Ok((hello, proofs)));
        for cut in 0..out.len() {
            assert_eq!(read_hello(&mut Reader::new(&out[..cut])), Err(Malformed));
        }
    }

    #[test]
    fn a_hello_that_asks_too_many_is_malformed_and_an_interval_of_0_is_read_as_1() {
        let mut out = vec![0; 16];
        out.push(MAX_ASKED as u8 + 1);
        out.extend([0; 100]);
        assert_eq!(read_hello(&mut Reader::new(&out)), Err(Malformed));
        out[16] = 0;
        out[17] = 0;
        let (hello, _) = read_hello(&mut Reader::new(&out)).unwrap();
        assert_eq!(hello.interval, Duration::from_millis(1));
    }
}
