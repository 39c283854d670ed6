//! `ncmesh traceroute`: shows the path to another node and measures round trips.

use crate::args::TracerouteArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::Remote;
use crate::show::{self, Table};
use ncmesh_node::api::answers::{EchoRequest, Path};

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: &TracerouteArgs) -> Result<(), Failure> {
    let request = EchoRequest { count: args.count };
    let path = format!("/v1/paths/{}", encoded(&args.node));
    let path: Path = Client::new(remote)?.post(&path, &request)?;
    if remote.json {
        return show::json(&path);
    }

    // Only the first hop has a port that is known, and only of a node with several.
    let has_ports = path.hops.iter().any(|hop| hop.port.is_some());
    let mut columns = vec!["HOP", "NAME", "ID", "OUT", "BACK", "ETX", "RTT"];
    columns.extend(has_ports.then_some("PORT"));
    let mut table = Table::new(columns);
    let share = |delivery: f64| format!("{:.0} %", delivery * 100.0);
    for (n, hop) in (1..).zip(&path.hops) {
        let mut row = vec![
            n.to_string(),
            hop.name.clone(),
            hop.id.to_string(),
            share(hop.delivery),
            share(hop.delivery_back),
            format!("{:.2}", hop.etx),
            show::or_dash(hop.rtt_s.map(|s| format!("{:.1} ms", s * 1e3))),
        ];
        row.extend(has_ports.then(|| show::or_dash(hop.port.clone())));
        table.row(row);
    }

    show::line(&table.to_string())?;
    show::line(&format!("expected transmissions in all: {:.2}", path.etx))
}

/// Returns a name as a part of a URL: names from the network may have any character.
fn encoded(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    name.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn any_name_is_one_part_of_a_path() {
        assert_eq!(encoded("roof-east.2"), "roof-east.2");
        assert_eq!(encoded("a/b ü?"), "a%2Fb%20%C3%BC%3F");
    }
}
