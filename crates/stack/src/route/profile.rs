//! What a node tells of itself besides its links, on the wire: a byte that says what there is, and
//! each part of it.

use ncmesh_engine::Malformed;
use ncmesh_engine::topology::{Position, Profile};
use ncmesh_wire::{Reader, Writer};

/// Bits of the first byte: a position on a plan, and one on the Earth.
const PLAN: u8 = 0x01;
const EARTH: u8 = 0x02;
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
    1 + position
}

/// Appends a profile.
pub(super) fn write(w: &mut Writer<'_>, profile: &Profile) {
    let above = |number: i32, zero: u32| zero.wrapping_add_signed(number);
    match profile.position {
        None => drop(w.u8(0)),
        Some(Position::Plan { x_mm, y_mm, z_mm }) => {
            w.u8(PLAN);
            w.u32(above(x_mm, ORIGIN)).u32(above(y_mm, ORIGIN)).u32(above(z_mm, ORIGIN));
        }
        Some(Position::Earth { latitude_e7, longitude_e7 }) => {
            w.u8(EARTH).u32(above(latitude_e7, EQUATOR)).u32(above(longitude_e7, GREENWICH));
        }
    }
}

/// Reads a profile.
pub(super) fn read(r: &mut Reader<'_>) -> Result<Profile, Malformed> {
    let position = match r.u8()? {
        PLAN => {
            let mut mm = || Ok::<_, Malformed>(r.u32()?.wrapping_sub(ORIGIN) as i32);
            Position::Plan { x_mm: mm()?, y_mm: mm()?, z_mm: mm()? }
        }
        EARTH => {
            let mut e7 = |zero: u32| match r.u32()? {
                above if above <= 2 * zero => Ok(above.wrapping_sub(zero) as i32),
                _ => Err(Malformed),
            };
            Position::Earth { latitude_e7: e7(EQUATOR)?, longitude_e7: e7(GREENWICH)? }
        }
        _ => return Err(Malformed),
    };
    Ok(Profile { position: Some(position) })
}
