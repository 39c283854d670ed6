//! This node as a NetJSON DeviceMonitoring object (draft-interop-netjson).

use super::ports::Slots;
use super::tunnel::Tunnel;
use ncmesh_console::schema::PortValues;
use ncmesh_stack::Stack;
use serde_json::{Value, json};
use std::time::SystemTime;

/// Returns the node as a NetJSON DeviceMonitoring object. Its interfaces are the ports, and the
/// tunnel's device if there is one. `uptime` is in seconds.
pub(super) fn device(
    uptime: u64,
    mtu: usize,
    ports: &Slots,
    tunnel: Option<&Tunnel>,
    stack: &Stack,
) -> Value {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ports = ports.states(stack).into_iter().map(|port| {
        let PortValues { sent, sent_bytes, heard, heard_bytes, dropped, .. } = port.values;
        json!({
            "name": port.radio,
            "uptime": uptime,
            "mtu": mtu,
            "statistics": {
                "tx_packets": sent, "tx_bytes": sent_bytes,
                "rx_packets": heard, "rx_bytes": heard_bytes, "rx_dropped": dropped,
            },
        })
    });

    let tunnel = tunnel.map(|own| {
        let tunnel = own.status(stack);
        let addresses = own.config.address.iter().map(|own| {
            let family = if own.addr().is_ipv4() { "ipv4" } else { "ipv6" };
            json!({
                "address": own.addr().to_string(), "mask": own.prefix_len(), "family": family,
            })
        });

        json!({
            "name": tunnel.device,
            "uptime": uptime,
            "mtu": tunnel.mtu,
            "addresses": addresses.collect::<Vec<_>>(),
            "statistics": {
                "tx_packets": tunnel.packets_out, "tx_bytes": tunnel.bytes_out,
                "rx_packets": tunnel.packets_in, "rx_bytes": tunnel.bytes_in,
            },
        })
    });

    let interfaces: Vec<Value> = ports.chain(tunnel).collect();
    json!({
        "type": "DeviceMonitoring",
        "general": {
            "hostname": stack.name(),
            "local_time": now.map_or(0, |now| now.as_secs()),
            "uptime": uptime,
        },
        "interfaces": interfaces,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use ncmesh_engine::Port;

    #[tokio::test]
    async fn a_node_without_a_tunnel_has_its_radio() {
        let (mut node, _calls, _dir) = node();
        while node.fill(Port::FIRST, &mut Vec::new()).is_none() {
            tokio::time::sleep_until(node.poll_timeout().unwrap().into()).await;
            node.handle_timeout();
        }
        let device = node.device_monitoring();
        assert_eq!(
            (&device["type"], &device["general"]["hostname"]),
            (&"DeviceMonitoring".into(), &"n03".into())
        );
        let interfaces = device["interfaces"].as_array().unwrap();
        assert_eq!((interfaces.len(), interfaces[0]["name"].as_str()), (1, Some("none")));
        let statistics = &interfaces[0]["statistics"];
        assert_eq!((&statistics["tx_packets"], &statistics["rx_packets"]), (&1.into(), &0.into()));
        assert!(statistics["tx_bytes"].as_u64().unwrap() >= 41);
    }
}
