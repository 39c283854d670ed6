//! Places on the Earth as metres on a plane.

/// Mean radius of the Earth, m (IUGG).
const EARTH_M: f64 = 6_371_008.8;

/// Plane that touches the Earth at the first place that it is asked for.
#[derive(Default)]
pub(super) struct Plane {
    origin: Option<Degrees>,
}

/// A place on the Earth.
#[derive(Clone, Copy)]
pub(super) struct Degrees {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
}

impl Plane {
    /// Returns the metres east and north of the first place.
    ///
    /// # Errors
    /// One line, if the place is none on the Earth.
    pub(super) fn metres(&mut self, place: Degrees) -> Result<[f64; 2], String> {
        let Degrees { latitude, longitude } = place;
        if !(latitude.abs() <= 90.0 && longitude.abs() <= 180.0) {
            return Err("latitude must be -90 to 90, longitude -180 to 180".into());
        }
        let origin = *self.origin.get_or_insert(place);
        // The shorter way round the Earth, for meshes at 180 degrees.
        let east = (longitude - origin.longitude + 540.0).rem_euclid(360.0) - 180.0;
        let x = EARTH_M * east.to_radians() * libm::cos(origin.latitude.to_radians());
        Ok([x, EARTH_M * (latitude - origin.latitude).to_radians()])
    }
}
