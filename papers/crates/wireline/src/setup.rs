//! Policy and parameters of a run.

use crate::error::WirelineError;
use crate::network::Network;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine_multirate::{Given, Parameters, Policy, Utility};

/// Limit of the sessions: random streams are named by a node id of 16 bits.
const MOST_SESSIONS: usize = 65_535;

/// Policy, parameters and length of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The policy.
    pub policy: Policy,
    /// The weight of utility against backlog.
    pub v: f64,
    /// Packets dropped at once. Default: the least allowed value with room for all bursts.
    pub d_max: Option<u32>,
    /// Distance from the optimum. Default: as [`Given::epsilon`].
    pub epsilon: Option<f64>,
    /// Value around which virtual queues are held. Default: the least allowed value.
    pub zeta: Option<f64>,
    /// Utilities of each session's receivers. Default: the rate itself.
    pub utilities: Vec<Vec<UtilityConfig>>,
    /// Length of the run, in slots.
    pub slots: u64,
    /// Slots at the beginning that rates and means leave out.
    pub warm_up: u64,
    /// Seed of all random draws.
    pub seed: u64,
    /// Slots between the samples of a series. Default: no series.
    pub series: Option<u64>,
}

impl Setup {
    /// Checks the setup against the network.
    pub(crate) fn check(&self, network: &Network) -> Result<(), WirelineError> {
        let Self { policy, slots, warm_up, .. } = self;
        if warm_up >= slots {
            return Err(WirelineError::NoSlots { slots: *slots, warm_up: *warm_up });
        }
        if network.sessions.len() > MOST_SESSIONS {
            return Err(WirelineError::ManySessions { most: MOST_SESSIONS });
        }
        if !policy.has_utilities() && !self.utilities.is_empty() {
            return Err(WirelineError::NoUtilities);
        }

        // A policy without radios would serve all links of a node at once.
        match network.links.iter().position(|link| link.wireless) {
            Some(link) if !policy.has_radios() => Err(WirelineError::Wireless { link }),
            _ => Ok(()),
        }
    }

    /// Returns the utilities of all receivers, session by session.
    pub(crate) fn receivers_utilities(
        &self,
        network: &Network,
    ) -> Result<Vec<Utility>, WirelineError> {
        let receivers = |session: usize| network.sessions[session].receivers.len();

        // Without any, a rate is worth itself.
        if self.utilities.is_empty() {
            let all = (0..network.sessions.len()).map(receivers).sum();
            return Ok(vec![Utility::default(); all]);
        }

        // Each session has as many as it has receivers.
        if self.utilities.len() != network.sessions.len() {
            return Err(WirelineError::UtilitySessions {
                given: self.utilities.len(),
                sessions: network.sessions.len(),
            });
        }

        let mut all = Vec::new();
        for (session, given) in self.utilities.iter().enumerate() {
            if given.len() != receivers(session) {
                let given = given.len();
                let receivers = receivers(session);
                return Err(WirelineError::Utilities { session, given, receivers });
            }

            for (config, receiver) in given.iter().zip(&network.sessions[session].receivers) {
                let fault = |error| WirelineError::Utility {
                    session,
                    receiver: receiver.to_string(),
                    error,
                };
                all.push(Utility::try_from(config.clone()).map_err(fault)?);
            }
        }

        Ok(all)
    }

    /// Derives all parameters. As many packets enter at once as `d_max` leaves room for.
    pub(crate) fn parameters(
        &self,
        network: &Network,
        utilities: &[Utility],
    ) -> Result<Parameters, WirelineError> {
        // The network's own limits decide what a policy may choose.
        let mu_max = network.mu_max();
        let theta = utilities.iter().map(Utility::steepest).fold(0.0, f64::max);
        let a_max = match self.d_max {
            Some(d_max) => arrivals_within(network, d_max, mu_max)?,
            None => network.burst()?,
        };

        // Every other parameter follows from these.
        let Self { v, d_max, epsilon, zeta, .. } = *self;
        let given = Given { v, d_max, epsilon, zeta, a_max, mu_max, theta };
        Ok(Parameters::derive(&given)?)
    }
}

/// Returns the packets per slot that `d_max` leaves for arrivals, if that suffices for every
/// stream.
fn arrivals_within(network: &Network, d_max: u32, mu_max: u32) -> Result<u32, WirelineError> {
    let a_max = d_max.saturating_sub(mu_max);
    for (session, described) in network.sessions.iter().enumerate() {
        let rate = described.total_rate(session)?;
        if rate > 0.0 && !described.arrivals.fits(rate, a_max) {
            return Err(WirelineError::Burst { session, d_max, mu_max, a_max, rate });
        }
    }
    Ok(a_max)
}
