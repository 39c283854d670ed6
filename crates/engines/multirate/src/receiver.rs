//! A receiver's virtual queue, its pressure and its congestion control (IV-B, IV-C).
//!
//! The virtual queue Z takes in the packets received, and gives off as many as the receiver would
//! like to receive at the present pressure. If more arrive than that, Z and with it the pressure
//! Y rise, and the network sends less; if fewer arrive, Y falls, and the network sends more. Rates
//! settle where the slope of the utility is the price of capacity.

use crate::parameters::Parameters;
use crate::utility::Utility;

/// A receiver of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Receiver {
    utility: Utility,
    /// The virtual queue (Z), packets: a surplus above zeta, a deficit below.
    z: f64,
    /// Packets per slot that are one unit of the utility's rate.
    unit: f64,
}

impl Receiver {
    /// Returns a receiver that begins with pressure V theta (IV-C).
    #[must_use]
    pub fn new(utility: Utility, parameters: &Parameters) -> Self {
        Self { utility, z: parameters.first_z(), unit: 1.0 }
    }

    /// Returns a receiver that begins with the lowest pressure at which it asks for no more,
    /// V (theta - g'(0)), or with one packet if that is more. It is served at once, as well as
    /// others of its utility.
    #[must_use]
    pub fn eager(utility: Utility, parameters: &Parameters) -> Self {
        let Parameters { v, theta, w, zeta, .. } = *parameters;
        let pressure = (v * (theta - utility.steepest())).max(1.0);
        // The inverse of (22), above zeta.
        let z = zeta + libm::log(pressure / w) / w;
        Self { z: z.max(zeta), ..Self::new(utility, parameters) }
    }

    /// Sets how many packets per slot are one unit of the utility's rate, above 0. It is 1 until
    /// then.
    pub fn set_unit(&mut self, packets_per_slot: f64) {
        self.unit = packets_per_slot;
    }

    /// Returns its virtual queue (Z), packets.
    #[must_use]
    pub fn z(&self) -> f64 {
        self.z
    }

    /// Limits its virtual queue to `most` packets, whatever comes in.
    pub fn hold_below(&mut self, most: f64) {
        self.z = self.z.min(most);
    }

    /// Returns its virtual pressure (Y, eq. 22): the higher, the less it asks for packets.
    #[must_use]
    pub fn pressure(&self, parameters: &Parameters) -> f64 {
        let Parameters { w, zeta, .. } = *parameters;
        if self.z >= zeta {
            w * libm::exp(w * (self.z - zeta))
        } else {
            -w * libm::exp(w * (zeta - self.z))
        }
    }

    /// Runs a slot in which `received` packets arrived; `pressure` is that at its beginning. The
    /// virtual queue gives off as many packets as maximize V h(x) + Y x (eqs. 26, 27).
    pub fn advance(&mut self, pressure: f64, received: u32, parameters: &Parameters) {
        // With h(x) = g(x) - theta x, the maximum is where the slope of g is theta - Y / V.
        let slope = parameters.theta - pressure / parameters.v;
        let most = parameters.nu_max / self.unit;
        let departures = self.utility.rate_at(slope, most) * self.unit;
        // The queue serves first: packets of this slot are given off in the next.
        self.z = (self.z - departures).max(0.0) + f64::from(received);
    }
}
