//! The hello at the front of a hello frame.

use crate::link::{Hello, MAX_ASKED};
use ncmesh_engine::Malformed;
use ncmesh_engine::time::Duration;
use ncmesh_wire::{Reader, Writer};

/// Length of a hello that asks nobody, bytes.
pub(super) const HELLO_LEN: usize = 2 + 2 + 8 + 1;

/// Appends a hello.
pub(super) fn write_hello(hello: &Hello, out: &mut Vec<u8>) {
    let millis = u16::try_from(hello.interval.as_millis()).unwrap_or(u16::MAX);
    let mut w = Writer::new(out);
    w.u16(millis).u16(hello.long_sent).u64(hello.digest).u8(hello.asks.len() as u8);
    for node in &hello.asks {
        w.node(*node);
    }
}

/// Reads a hello. A reader of states follows it.
pub(super) fn read_hello(r: &mut Reader<'_>) -> Result<Hello, Malformed> {
    let interval = Duration::from_millis(u64::from(r.u16()?.max(1)));
    let (long_sent, digest, count) = (r.u16()?, r.u64()?, usize::from(r.u8()?));
    if count > MAX_ASKED {
        return Err(Malformed);
    }
    let mut asks = Vec::with_capacity(count);
    for _ in 0..count {
        asks.push(r.node()?);
    }
    Ok(Hello { interval, long_sent, digest, asks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    /// The golden vector of the wire format.
    #[test]
    fn golden_hello() {
        let interval = Duration::from_millis(1000);
        let asks = vec![NodeId(7)];
        let hello = Hello { interval, long_sent: 258, digest: 0xDEAD_BEEF_0102_0304, asks };
        let mut out = Vec::new();
        write_hello(&hello, &mut out);
        assert_eq!(out, [3, 232, 1, 2, 0xDE, 0xAD, 0xBE, 0xEF, 1, 2, 3, 4, 1, 0, 7]);
        assert_eq!(read_hello(&mut Reader::new(&out)), Ok(hello));
        for cut in 0..out.len() {
            assert_eq!(read_hello(&mut Reader::new(&out[..cut])), Err(Malformed));
        }
    }

    #[test]
    fn a_hello_that_asks_too_many_is_malformed_and_an_interval_of_0_is_read_as_1() {
        let mut out = vec![0; 12];
        out.push(MAX_ASKED as u8 + 1);
        out.extend([0; 100]);
        assert_eq!(read_hello(&mut Reader::new(&out)), Err(Malformed));
        out[12] = 0;
        let hello = read_hello(&mut Reader::new(&out)).unwrap();
        assert_eq!(hello.interval, Duration::from_millis(1));
    }
}
