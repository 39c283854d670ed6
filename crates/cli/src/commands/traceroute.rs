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

    let mut table = Table::new(["HOP", "NAME", "ID", "OUT", "BACK", "ETX", "RTT"]);
    let share = |delivery: f64| format!("{:.0} %", delivery * 100.0);
    for (n, hop) in (1..).zip(&path.hops) {
        table.row([
            n.to_string(),
            hop.name.clone(),
            hop.id.to_string(),
            share(hop.delivery),
            share(hop.delivery_back),
            format!("{:.2}", hop.etx),
            show::or_dash(hop.rtt_s.map(|s| format!("{:.1} ms", s * 1e3))),
        ]);
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
