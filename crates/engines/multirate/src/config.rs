//! Settings of the engine.

use super::{Given, Parameters, Policy};
use ncmesh_engine::time::Duration;
use serde::Deserialize;

/// `[multirate]` in configuration files. `policy`, `v`, `theta`, `slot_ms` and `report_ms` must be alike on all nodes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MultirateConfig {
    /// `mmu_w`, `mmu`, `mmu_q`, `mmt`.
    pub policy: Policy,
    /// V, packets: utility against backlog. A queue holds about V theta packets where a link is full.
    pub v: f64,
    /// The steepest slope at which any receiver may value its rate, per Mbit/s.
    pub theta: f64,
    /// Packets that the fastest link carries in a slot (mu_max), 1 to 100,000.
    pub mu_max: u32,
    /// Packets that enter a source in a slot at most (A_max), 1 to 100,000; others wait there.
    pub a_max: u32,
    /// Packets dropped at once (d_max); the least allowed, `a_max + mu_max`, if absent.
    pub d_max: Option<u32>,
    /// How near the optimum, packets per slot (epsilon); 0.05 `mu_max` if absent.
    pub epsilon: Option<f64>,
    /// Length of a virtual slot, ms, 1 to 10,000.
    pub slot_ms: u32,
    /// Time between reports of backlog, ms, 10 to 60,000.
    pub report_ms: u32,
    /// An empty queue goes after so long without a packet, s, 1 to 3,600.
    pub idle_s: u32,
    /// Neighbours, by name or id, whose links share no radio with others.
    pub wired: Vec<String>,
}

impl Default for MultirateConfig {
    fn default() -> Self {
        Self {
            policy: Policy::MmuW,
            // Three times d_max: below that queues that should not drop do.
            v: 60.0,
            theta: 4.0,
            // 27 and 18 Mbit/s in packets of 1,400 bytes.
            mu_max: 12,
            a_max: 8,
            d_max: None,
            epsilon: None,
            slot_ms: 5,
            report_ms: 100,
            idle_s: 10,
            wired: Vec::new(),
        }
    }
}

/// Epsilon in mu_max where none is given: pressure then settles within some tens of seconds.
const EPSILON: f64 = 0.05;

impl MultirateConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let whole = |name: &str, value: u32, least: u32, most: u32, unit: &str| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(format!("{name} = {value}: allowed is {least} to {most} {unit}"))
        };
        whole("mu_max", self.mu_max, 1, 100_000, "packets")?;
        whole("a_max", self.a_max, 1, 100_000, "packets")?;
        whole("slot_ms", self.slot_ms, 1, 10_000, "ms")?;
        whole("report_ms", self.report_ms, 10, 60_000, "ms")?;
        whole("idle_s", self.idle_s, 1, 3600, "s")?;
        self.parameters().map(drop)
    }

    /// The policy's parameters (Table I).
    pub(super) fn parameters(&self) -> Result<Parameters, String> {
        let given = Given {
            v: self.v,
            d_max: self.d_max,
            epsilon: Some(self.epsilon.unwrap_or(EPSILON * f64::from(self.mu_max))),
            zeta: None,
            a_max: self.a_max,
            mu_max: self.mu_max,
            theta: if self.policy.has_utilities() { self.theta } else { 1.0 },
        };
        Parameters::derive(&given).map_err(|e| e.to_string())
    }

    pub(super) fn slot(&self) -> Duration {
        Duration::from_millis(self.slot_ms.into())
    }

    pub(super) fn report_period(&self) -> Duration {
        Duration::from_millis(self.report_ms.into())
    }

    pub(super) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s.into())
    }
}
