//! `ncmesh schemes`: lists the schemes that this program knows.

use crate::failure::Failure;
use crate::show::{self, Table};
use ncmesh_engine::registry::{Entry, ServiceKind};
use ncmesh_engines::registry;
use serde::Serialize;

/// A scheme as the command shows it.
#[derive(Serialize)]
struct Scheme {
    name: &'static str,
    service: &'static str,
    /// Whether it is the one that `auto` means.
    default: bool,
    summary: &'static str,
    paper: &'static str,
}

/// Runs the command.
pub(crate) fn run(is_json: bool) -> Result<(), Failure> {
    let of = |service: ServiceKind| {
        let shown = move |(at, entry): (usize, &Entry)| Scheme {
            name: entry.name,
            service: service.name(),
            default: at == 0,
            summary: entry.summary,
            paper: entry.paper,
        };

        registry().of(service).enumerate().map(shown)
    };

    let schemes: Vec<Scheme> = ServiceKind::ALL.into_iter().flat_map(of).collect();
    if is_json {
        return show::json(&schemes);
    }

    let mut table = Table::new(["SCHEME", "SERVICE", "DEFAULT", "WHAT IT DOES"]);
    for Scheme { name, service, default, summary, .. } in schemes {
        let default = if default { "yes" } else { "" };
        table.row([name, service, default, summary].map(str::to_owned));
    }
    show::line(&table.to_string())
}
