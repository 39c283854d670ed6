//! Time of a packet to the next hop and of the word of it back.

use crate::time::Duration;

/// Share of a trip that is learned at once if it is shorter than those before.
const FALLS: f64 = 0.5;
/// Factor by which the time grows at most with one trip. A single one that was late is chance; ten
/// of them make ten times as much.
const GROWS: f64 = 1.25;

/// Typical time of a trip, rather a short one: sometimes a frame waits for long, but over a radio
/// never each one.
#[derive(Clone, Copy, Debug, Default)]
pub struct TripTime(Option<Duration>);

impl TripTime {
    /// Takes the time of a trip.
    pub fn add(&mut self, took: Duration) {
        let known = self.0.unwrap_or(took);
        self.0 = Some(if took < known {
            known - (known - took).mul_f64(FALLS)
        } else {
            took.min(known.mul_f64(GROWS))
        });
    }

    /// Returns the typical time; zero if none is known.
    #[must_use]
    pub fn value(self) -> Duration {
        self.0.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn one_late_trip_counts_for_little_and_many_for_what_they_take() {
        let mut trips = TripTime::default();
        assert_eq!(trips.value(), Duration::ZERO);
        trips.add(ms(8));
        trips.add(ms(500));
        assert_eq!(trips.value(), ms(10));
        trips.add(ms(6));
        assert_eq!(trips.value(), ms(8));
        (0..20).for_each(|_| trips.add(ms(100)));
        assert_eq!(trips.value(), ms(100));
    }
}
