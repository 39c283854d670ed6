//! A receiver's virtual queue, its pressure and its congestion control (IV-B, IV-C).

use super::{Parameters, Utility};

/// A receiver of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Receiver {
    utility: Utility,
    /// Surplus or deficit of packets (Z), around zeta.
    z: f64,
    /// Packets per slot in the utility's unit of rate.
    unit: f64,
}

impl Receiver {
    /// One that has received nothing: its pressure is V theta (IV-C).
    #[must_use]
    pub fn new(utility: Utility, parameters: &Parameters) -> Self {
        Self { utility, z: parameters.first_z(), unit: 1.0 }
    }

    /// One that begins with the least pressure at which it ceases to ask for more, V (theta - g'(0)), or with one packet:
    /// served at once, and no less than others of its utility.
    #[must_use]
    pub fn eager(utility: Utility, parameters: &Parameters) -> Self {
        let Parameters { v, theta, w, zeta, .. } = *parameters;
        let pressure = (v * (theta - utility.steepest())).max(1.0);
        let z = zeta + libm::log(pressure / w) / w;
        Self { z: z.max(zeta), ..Self::new(utility, parameters) }
    }

    /// From now on the utility's rates are in units of so many packets per slot, above 0; one until then.
    pub fn set_unit(&mut self, packets_per_slot: f64) {
        self.unit = packets_per_slot;
    }

    /// Its virtual queue (Z), packets.
    #[must_use]
    pub fn z(&self) -> f64 {
        self.z
    }

    /// Holds its virtual queue at `most` at most, whatever comes in.
    pub fn hold_below(&mut self, most: f64) {
        self.z = self.z.min(most);
    }

    /// Its virtual pressure (Y, eq. 22): the higher, the less it urges to get packets.
    #[must_use]
    pub fn pressure(&self, parameters: &Parameters) -> f64 {
        let Parameters { w, zeta, .. } = *parameters;
        if self.z >= zeta {
            w * libm::exp(w * (self.z - zeta))
        } else {
            -w * libm::exp(w * (zeta - self.z))
        }
    }

    /// A slot in which `received` packets arrived, under the [`pressure`](Self::pressure) at its beginning: the
    /// virtual queue gives as many as maximize V h(x) + Y x (eqs. 26, 27).
    pub fn advance(&mut self, pressure: f64, received: u32, parameters: &Parameters) {
        let slope = parameters.theta - pressure / parameters.v;
        let most = parameters.nu_max / self.unit;
        let departures = self.utility.rate_at(slope, most) * self.unit;
        self.z = (self.z - departures).max(0.0) + f64::from(received);
    }
}
