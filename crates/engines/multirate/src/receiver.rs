//! A receiver's virtual queue, its pressure and its congestion control (IV-B, IV-C).
//!
//! Received packets enter the virtual queue Z. As many leave it as the receiver would like to
//! receive at the present pressure Y. If more packets arrive than that, Z and Y rise and the
//! network sends less. If fewer arrive, Y falls and the network sends more. Rates settle where the
//! slope of the utility equals the price of capacity.

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

    /// Returns a receiver that begins with the lowest pressure at which it asks for nothing,
    /// V (theta - g'(0)), but with at least one packet. The network serves it at once, as well as
    /// older receivers with the same utility. From V theta, as in the paper, a slow stream would
    /// reach nobody for its first seconds.
    #[must_use]
    pub fn eager(utility: Utility, parameters: &Parameters) -> Self {
        let Parameters { v, theta, w, zeta, .. } = *parameters;
        let pressure = (v * (theta - utility.steepest())).max(1.0);
        // Z that has this pressure: the inverse of the upper branch of (22).
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

    /// Limits its virtual queue to `most` packets, however many arrive.
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

    /// Runs the congestion control of one slot, in which `received` packets arrived and which began
    /// with `pressure`. The number of packets that leave the virtual queue maximizes V h(x) + Y x
    /// (eqs. 26, 27).
    pub fn advance(&mut self, pressure: f64, received: u32, parameters: &Parameters) {
        // With h(x) = g(x) - theta x, the derivative of (26) is zero where g'(x) = theta - Y / V.
        // Since g is concave, the largest rate with at least this slope is the maximum. (27) bounds
        // it by nu_max.
        let slope = parameters.theta - pressure / parameters.v;
        let most = parameters.nu_max / self.unit;
        let departures = self.utility.rate_at(slope, most) * self.unit;

        // Departures come before arrivals, as in the recursion of IV-B: a packet of this slot can
        // leave in the next one at the earliest.
        self.z = (self.z - departures).max(0.0) + f64::from(received);
    }
}
