//! What a node tells of itself besides its links, on the wire: a byte that says what there is, and
//! each part of it.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use ncmesh_engine::Malformed;
use ncmesh_engine::topology::{MAX_PREFIXES, Position, Profile};
use ncmesh_wire::{Reader, Writer};
use std::net::IpAddr;

/// Bits of the first byte: a position on a plan, one on the Earth, and prefixes.
const PLAN: u8 = 0x01;
const EARTH: u8 = 0x02;
const PREFIXES: u8 = 0x04;
/// Numbers of both signs are told as their difference from the smallest: of a plan...
const ORIGIN: u32 = 1 << 31;
/// ... of latitudes, and of longitudes.
pub(crate) const EQUATOR: u32 = 900_000_000;
pub(crate) const GREENWICH: u32 = 1_800_000_000;

/// Returns the length of a profile in a frame, bytes.
pub(super) fn len(profile: &Profile) -> usize {
    let position = match profile.position {
        None => 0,
        Some(Position::Plan { .. }) => 12,
        Some(Position::Earth { .. }) => 8,
    };
    let prefix = |prefix: &IpNet| 1 + usize::from(prefix.max_prefix_len() / 8);
    let prefixes: usize = profile.prefixes.iter().map(prefix).sum();
    1 + position + if profile.prefixes.is_empty() { 0 } else { 2 + prefixes }
}

/// Appends a profile.
pub(super) fn write(w: &mut Writer<'_>, profile: &Profile) {
    let above = |number: i32, zero: u32| zero.wrapping_add_signed(number);
    let position = match profile.position {
        None => 0,
        Some(Position::Plan { .. }) => PLAN,
        Some(Position::Earth { .. }) => EARTH,
    };
    w.u8(position | if profile.prefixes.is_empty() { 0 } else { PREFIXES });
    match profile.position {
        None => {}
        Some(Position::Plan { x_mm, y_mm, z_mm }) => {
            w.u32(above(x_mm, ORIGIN)).u32(above(y_mm, ORIGIN)).u32(above(z_mm, ORIGIN));
        }
        Some(Position::Earth { latitude_e7, longitude_e7 }) => {
            w.u32(above(latitude_e7, EQUATOR)).u32(above(longitude_e7, GREENWICH));
        }
    }
    if profile.prefixes.is_empty() {
        return;
    }
    let (v4, v6): (Vec<&IpNet>, Vec<&IpNet>) =
        profile.prefixes.iter().partition(|p| p.addr().is_ipv4());
    w.u8(v4.len() as u8).u8(v6.len() as u8);
    for prefix in v4.into_iter().chain(v6) {
        w.u8(prefix.prefix_len());
        match prefix.addr() {
            IpAddr::V4(address) => w.bytes(&address.octets()),
            IpAddr::V6(address) => w.bytes(&address.octets()),
        };
    }
}

/// Reads a profile.
pub(super) fn read(r: &mut Reader<'_>) -> Result<Profile, Malformed> {
    let parts = r.u8()?;
    let position = match parts & (PLAN | EARTH) {
        0 => None,
        PLAN => {
            let mut mm = || Ok::<_, Malformed>(r.u32()?.wrapping_sub(ORIGIN) as i32);
            Some(Position::Plan { x_mm: mm()?, y_mm: mm()?, z_mm: mm()? })
        }
        EARTH => {
            let mut e7 = |zero: u32| match r.u32()? {
                above if above <= 2 * zero => Ok(above.wrapping_sub(zero) as i32),
                _ => Err(Malformed),
            };
            Some(Position::Earth { latitude_e7: e7(EQUATOR)?, longitude_e7: e7(GREENWICH)? })
        }
        _ => return Err(Malformed),
    };
    if parts & !(PLAN | EARTH | PREFIXES) != 0 {
        return Err(Malformed);
    }
    let mut prefixes = Vec::new();
    if parts & PREFIXES != 0 {
        let (v4, v6) = (r.u8()?, r.u8()?);
        if usize::from(v4) > MAX_PREFIXES || usize::from(v6) > MAX_PREFIXES {
            return Err(Malformed);
        }
        for _ in 0..v4 {
            let (length, octets) = (r.u8()?, r.array::<4>()?);
            let prefix = Ipv4Net::new(octets.into(), length).map_err(|_| Malformed)?;
            prefixes.push(IpNet::from(prefix.trunc()));
        }
        for _ in 0..v6 {
            let (length, octets) = (r.u8()?, r.array::<16>()?);
            let prefix = Ipv6Net::new(octets.into(), length).map_err(|_| Malformed)?;
            prefixes.push(IpNet::from(prefix.trunc()));
        }
    }
    Ok(Profile { position, prefixes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(profile: &Profile) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), profile);
        out
    }

    proptest! {
        #[test]
        fn prefixes_are_read_as_they_were_written(
            v4 in prop::collection::vec((any::<u32>(), 0u8..=32), 0..16),
            v6 in prop::collection::vec((any::<u128>(), 0u8..=128), 1..16),
        ) {
            let v4 = v4.into_iter().map(|(a, len)| Ipv4Net::new(a.into(), len).unwrap().into());
            let v6 = v6.into_iter().map(|(a, len)| Ipv6Net::new(a.into(), len).unwrap().into());
            let prefixes = v4.chain(v6).map(|prefix: IpNet| prefix.trunc()).collect();
            let profile = Profile { position: Position::earth(1.0, 2.0), prefixes };
            let out = written(&profile);
            prop_assert_eq!(out.len(), len(&profile));
            prop_assert_eq!(read(&mut Reader::new(&out)), Ok(profile));
            for cut in 0..out.len() {
                prop_assert!(read(&mut Reader::new(&out[..cut])).is_err());
            }
        }
    }

    #[test]
    fn prefixes_that_cannot_be_are_malformed() {
        let seven = Profile { prefixes: vec!["10.0.0.0/7".parse().unwrap()], position: None };
        assert_eq!(written(&seven), [PREFIXES, 1, 0, 7, 10, 0, 0, 0]);
        // Bits beyond the length say nothing.
        let more = [PREFIXES, 1, 0, 7, 11, 0, 0, 9];
        assert_eq!(read(&mut Reader::new(&more)), Ok(seven));
        let many = [&[PREFIXES, 33, 0][..], &[0; 33 * 5]].concat();
        for bad in [&many[..], &[PREFIXES, 1, 0, 33, 10, 0, 0, 0], &[0x08], &[PLAN | EARTH]] {
            assert_eq!(read(&mut Reader::new(bad)), Err(Malformed), "{bad:?}");
        }
    }
}
