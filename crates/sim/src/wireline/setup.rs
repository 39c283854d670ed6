//! How a network is controlled.

use super::error::WirelineError;
use super::network::Network;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine_multirate::{Given, Parameters, Policy, Utility};

/// The most sessions that random streams are named for.
const MOST_SESSIONS: usize = 65_535;

/// How a network is controlled, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The policy.
    pub policy: Policy,
    /// The weight of utility against backlog.
    pub v: f64,
    /// Packets dropped at once; left out, the least allowed, with room for the bursts of all streams.
    pub d_max: Option<u32>,
    /// How near the optimum; left out, as [`Given::epsilon`].
    pub epsilon: Option<f64>,
    /// The value that virtual queues are held around; left out, the least allowed.
    pub zeta: Option<f64>,
    /// Of each session's receivers; empty, the rate itself for all.
    pub utilities: Vec<Vec<UtilityConfig>>,
    /// How long.
    pub slots: u64,
    /// Slots that rates and means leave out.
    pub warm_up: u64,
    /// Names all random draws.
    pub seed: u64,
    /// Slots between the samples of a series, if there is to be one.
    pub series: Option<u64>,
}

impl Setup {
    /// What is wrong with a setup of this network.
    pub(super) fn check(&self, network: &Network) -> Result<(), WirelineError> {
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
        match network.links.iter().position(|link| link.wireless) {
            Some(link) if !policy.has_radios() => Err(WirelineError::Wireless { link }),
            _ => Ok(()),
        }
    }

    /// The utilities of all receivers, session by session.
    pub(super) fn receivers_utilities(
        &self,
        network: &Network,
    ) -> Result<Vec<Utility>, WirelineError> {
        let receivers = |session: usize| network.sessions[session].receivers.len();
        if self.utilities.is_empty() {
            let all = (0..network.sessions.len()).map(receivers).sum();
            return Ok(vec![Utility::default(); all]);
        }
        if self.utilities.len() != network.sessions.len() {
            return Err(WirelineError::UtilitySessions {
                given: self.utilities.len(),
                sessions: network.sessions.len(),
            });
        }
        let mut all = Vec::new();
        for (session, given) in self.utilities.iter().enumerate() {
            if given.len() != receivers(session) {
                let (given, receivers) = (given.len(), receivers(session));
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

    /// All parameters; as many packets enter at once as d_max leaves room for.
    pub(super) fn parameters(
        &self,
        network: &Network,
        utilities: &[Utility],
    ) -> Result<Parameters, WirelineError> {
        let mu_max = network.mu_max();
        let theta = utilities.iter().map(Utility::steepest).fold(0.0, f64::max);
        let a_max = match self.d_max {
            Some(d_max) => room(network, d_max, mu_max)?,
            None => network.burst()?,
        };
        let Self { v, d_max, epsilon, zeta, .. } = *self;
        let given = Given { v, d_max, epsilon, zeta, a_max, mu_max, theta };
        Ok(Parameters::derive(&given)?)
    }
}

/// What d_max leaves for arrivals, if every stream gets in through it.
fn room(network: &Network, d_max: u32, mu_max: u32) -> Result<u32, WirelineError> {
    let a_max = d_max.saturating_sub(mu_max);
    for (session, described) in network.sessions.iter().enumerate() {
        let rate = described.total_rate(session)?;
        if rate > 0.0 && !described.arrivals.fits(rate, a_max) {
            return Err(WirelineError::Burst { session, d_max, mu_max, a_max, rate });
        }
    }
    Ok(a_max)
}
