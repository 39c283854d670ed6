//! Round-trip times without load, measured by the program `ping`.

use std::io;
use std::net::Ipv4Addr;
use std::process::Stdio;
use tokio::process::Command;

/// Number of pings, and the time between two of them in s: 3 s in all.
const COUNT: &str = "30";
const INTERVAL_S: &str = "0.1";

/// Returns the median round-trip time from a namespace to an address, s. Returns `None` without the
/// program or an answer.
pub(crate) async fn median_rtt_s(namespace: &str, to: Ipv4Addr) -> io::Result<Option<f64>> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "ping", "-n", "-c", COUNT, "-i", INTERVAL_S]);
    command.arg(to.to_string()).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = command.output().await?;
    Ok(median(rtts_s(&String::from_utf8_lossy(&output.stdout))))
}

/// Parses the values behind `time=`, which are in ms.
fn rtts_s(output: &str) -> Vec<f64> {
    let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse::<f64>().ok();
    output.lines().filter_map(time).map(|ms| ms / 1e3).collect()
}

/// Returns the median; `None` without any value.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_ping_is_read() {
        let output = "PING 10.200.0.3 (10.200.0.3) 56(84) bytes of data.\n\
            64 bytes from 10.200.0.3: icmp_seq=1 ttl=64 time=4.50 ms\n\
            64 bytes from 10.200.0.3: icmp_seq=2 ttl=64 time=12 ms\n\
            64 bytes from 10.200.0.3: icmp_seq=3 ttl=64 time=5.25 ms\n\
            3 packets transmitted, 3 received, 0% packet loss, time 402ms\n";
        assert_eq!(rtts_s(output), [0.0045, 0.012, 0.00525]);
        assert_eq!(median(rtts_s(output)), Some(0.00525));
        assert_eq!(median(rtts_s("ip: no such program")), None);
    }
}
