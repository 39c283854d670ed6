//! How services that ran side by side shared the channel.

use ncmesh_engine::registry::ServiceKind;
use ncmesh_stack::Usage;
use ncmesh_stack::share::ShareConfig;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// How services shared the channel until the first of them ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SharingOutcome {
    /// Time from the start of all until then, s.
    pub seconds: f64,
    /// Time for which frames of each service were on the air, of all nodes, divided by that time.
    /// Nodes that do not hear each other send at the same time, so the sum may exceed 1.
    pub airtime: BTreeMap<String, f64>,
    /// Jain's index of these, each divided by the service's weight: 1 if all have airtime by their
    /// weights, 1/n if one of n has all. A service that has little to send lowers it.
    pub fairness: f64,
}

impl SharingOutcome {
    /// Returns how `services` shared the channel within `seconds`, from the use of it by all nodes
    /// before and after.
    #[must_use]
    pub fn new(
        services: &[ServiceKind],
        config: &ShareConfig,
        before: &BTreeMap<String, Usage>,
        after: &BTreeMap<String, Usage>,
        seconds: f64,
    ) -> Self {
        let total = |usage: &BTreeMap<String, Usage>, service: ServiceKind| {
            let of = |node: &Usage| node.service_airtime_s.get(service.name()).copied();
            usage.values().filter_map(of).sum::<f64>()
        };
        let share = |service| (total(after, service) - total(before, service)) / seconds;
        let by_weight = services.iter().map(|service| share(*service) / config.weight(*service));
        Self {
            seconds,
            airtime: services.iter().map(|s| (s.name().to_owned(), share(*s))).collect(),
            fairness: jain(&by_weight.collect::<Vec<_>>()),
        }
    }
}

/// Returns Jain's index of fairness; 1 if nothing was shared out.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_1_by_weight_and_less_where_one_has_more() {
        let usage = |file: f64, tunnel: f64| {
            let named = [("file", file), ("tunnel", tunnel)];
            let service_airtime_s = named.map(|(name, s)| (name.to_owned(), s)).into();
            BTreeMap::from([("a".to_owned(), Usage { service_airtime_s, ..Usage::default() })])
        };
        let config = ShareConfig { file: 2.0, tunnel: 1.0, ..ShareConfig::default() };
        let sharing = |before, after| {
            let services = [ServiceKind::File, ServiceKind::Tunnel];
            SharingOutcome::new(&services, &config, &before, &after, 10.0)
        };
        let fair = sharing(usage(1.0, 5.0), usage(7.0, 8.0));
        assert_eq!(fair.airtime, [("file".to_owned(), 0.6), ("tunnel".to_owned(), 0.3)].into());
        assert!((fair.fairness - 1.0).abs() < 1e-9, "{fair:?}");
        let unfair = sharing(usage(0.0, 0.0), usage(8.0, 0.0));
        assert!((unfair.fairness - 0.5).abs() < 1e-9, "{unfair:?}");
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
    }
}
