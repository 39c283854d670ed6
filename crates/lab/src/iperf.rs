//! iperf3, the load generator of flows: its command line and its JSON report.

use ncmesh_sim::scenario::{Flow, Tcp, Transport};
use serde::Deserialize;
use std::io;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

const PROGRAM: &str = "iperf3";
/// Port of the first flow. Each further flow uses the next port.
const FIRST_PORT: u16 = 5201;
/// Length of the headers of IPv4 and UDP, bytes.
const UDP_HEADERS: usize = 28;
/// Length of the headers of IPv4 and TCP without options, bytes.
const TCP_HEADERS: usize = 40;
/// Timeout for connecting to the server, ms.
const CONNECT_MS: &str = "20000";

/// Message of a UDP client whose first datagram was not answered.
const UNOPENED: &str = "unable to read from stream socket";

/// Time that a flow may take in addition to its load, to connect and to report.
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two attempts to connect while the server is not up yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Checks that iperf3 can be started.
pub(crate) fn check() -> io::Result<()> {
    let mut version = std::process::Command::new(PROGRAM);
    version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().map(drop)
}

/// Load of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) flow: Flow,
    /// Index of the flow in the scenario.
    pub(crate) number: usize,
    /// Address of the destination.
    pub(crate) to: Ipv4Addr,
    /// Network namespaces of the source and the destination.
    pub(crate) namespaces: [String; 2],
    /// Length of the IP packets, bytes.
    pub(crate) packet: usize,
    /// Rate offered by UDP flows that name none, bit/s.
    pub(crate) most_bps: u64,
}

/// Reason why a load failed.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// iperf3 cannot be started.
    Program(io::Error),
    /// The first datagram of a UDP flow, or the answer to it, was lost. iperf3 does not repeat it
    /// and gives up after 30 s with this error.
    Unopened(String),
    /// iperf3 reported this error.
    Failed(String),
}

impl LoadError {
    /// Converts what iperf3 reported.
    fn of(problem: String) -> Self {
        if problem.contains(UNOPENED) { Self::Unopened(problem) } else { Self::Failed(problem) }
    }
}

impl Load {
    /// Generates the load, at the flow's start time after `begin`.
    pub(crate) async fn run(&self, begin: Instant) -> Result<Measured, LoadError> {
        // The server is there before the flow starts, and is killed when this returns.
        let _receiver = self.server().spawn().map_err(LoadError::Program)?;
        let start = begin + self.flow.start;
        tokio::time::sleep_until(start).await;

        // Over a bad path, connecting and reporting may take far longer than the load itself.
        let end = start + self.flow.warm_up + self.flow.duration + FINISH_TIMEOUT;
        let late = |_| LoadError::Failed("it did not end in time".into());
        timeout_at(end, self.send()).await.map_err(late)?
    }

    /// Runs the client. Tries again while the server is not up yet.
    async fn send(&self) -> Result<Measured, LoadError> {
        loop {
            let output = self.client().output().await.map_err(LoadError::Program)?;
            match read(&output.stdout) {
                Err(why) if why.contains("Connection refused") => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                measured => return measured.map_err(LoadError::of),
            }
        }
    }

    /// Returns the port of the flow's server.
    fn port(&self) -> String {
        (usize::from(FIRST_PORT) + self.number).to_string()
    }

    /// Returns the payload of a packet, bytes.
    pub(crate) fn payload(&self) -> usize {
        let headers = match self.flow.transport {
            Transport::Udp => UDP_HEADERS,
            Transport::Tcp(_) => TCP_HEADERS,
        };
        self.packet.saturating_sub(headers).max(1)
    }

    /// Returns the command of the server, which ends after one test.
    fn server(&self) -> Command {
        let mut command = inside(&self.namespaces[1]);
        command.args(["--server", "--one-off", "--port", &self.port()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns the command of the client, which reports in JSON.
    fn client(&self) -> Command {
        let mut command = inside(&self.namespaces[0]);
        let to = self.to.to_string();
        let port = self.port();
        command.args(["--client", &to, "--port", &port, "--json", "--connect-timeout", CONNECT_MS]);

        // A transfer of a given size ends by itself; everything else runs for a given time.
        let seconds = whole_seconds(self.flow.duration.as_secs_f64());
        let warm_up = whole_seconds(self.flow.warm_up.as_secs_f64());
        match &self.flow.transport {
            Transport::Tcp(Tcp { size: Some(size), .. }) => {
                command.args(["--bytes", &size.to_string()]);
            }
            _ => {
                command.args(["--time", &seconds, "--omit", &warm_up]);
            }
        }

        if self.flow.dscp != 0 {
            command.args(["--dscp", &self.flow.dscp.to_string()]);
        }

        // iperf3 counts payload, scenarios count IP packets: convert length and rate.
        let payload = self.payload().to_string();
        match &self.flow.transport {
            Transport::Udp => {
                let rate = self.flow.rate_bps.unwrap_or(self.most_bps) as f64;
                let rate = (rate * self.payload() as f64 / self.packet as f64).ceil();
                command.args(["--udp", "--length", &payload, "--bitrate", &format!("{rate:.0}")]);
            }
            Transport::Tcp(tcp) => {
                command.args(["--set-mss", &payload]);
                command.args(tcp.congestion.iter().flat_map(|name| ["--congestion", name]));
                let window = tcp.window.map(|window| window.to_string());
                command.args(window.iter().flat_map(|window| ["--window", window]));
                let rate = self.flow.rate_bps.map(|rate| rate.to_string());
                command.args(rate.iter().flat_map(|rate| ["--bitrate", rate]));
            }
        }

        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }
}

/// Rounds up to whole seconds, the only ones that iperf3 knows.
fn whole_seconds(seconds: f64) -> String {
    format!("{:.0}", seconds.ceil())
}

/// Returns a command that runs iperf3 in a network namespace.
fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, PROGRAM]).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Measurements of a flow's load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Measured {
    /// Length of the measurement, s.
    pub(crate) seconds: f64,
    /// Payload bytes received.
    pub(crate) bytes: u64,
    /// Payload bytes sent.
    pub(crate) sent: u64,
    pub(crate) jitter_s: Option<f64>,
    pub(crate) retransmits: Option<u64>,
    pub(crate) mean_rtt_s: Option<f64>,
}

/// Parses the client's report. The error is iperf3's message.
fn read(report: &[u8]) -> Result<Measured, String> {
    // After an error iperf3 still reports the parts that it measured, which are of no use.
    let report: Report = serde_json::from_slice(report).map_err(|e| format!("iperf3: {e}"))?;
    if let Some(error) = report.error {
        return Err(format!("iperf3: {}", error.trim_start_matches("error - ")));
    }
    let end = report.end;
    let received = end.sum_received.ok_or("iperf3 measured nothing")?;
    let sender = end.streams.first().and_then(|stream| stream.sender.as_ref());
    let sent = end.sum_sent.ok_or("iperf3 measured nothing")?;
    Ok(Measured {
        seconds: received.seconds,
        bytes: received.bytes,
        // Losses are computed from bytes: iperf3's own count includes parts of the warm-up.
        sent: sent.bytes,
        jitter_s: received.jitter_ms.map(|ms| ms / 1e3),
        retransmits: sent.retransmits,
        mean_rtt_s: sender.and_then(|sender| sender.mean_rtt).map(|us| us / 1e6),
    })
}

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    end: End,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
struct End {
    #[serde(default)]
    streams: Vec<Stream>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct Stream {
    sender: Option<Sender>,
}

#[derive(Deserialize)]
struct Sender {
    /// Microseconds.
    mean_rtt: Option<f64>,
}

#[derive(Deserialize)]
struct Sum {
    seconds: f64,
    bytes: u64,
    jitter_ms: Option<f64>,
    retransmits: Option<u64>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

    use super::*;

    fn words(command: &Command) -> String {
        let args = command.as_std().get_args().map(|word| word.to_string_lossy().into_owned());
        args.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands_ask_for_the_length_and_rate_of_the_flow() {
        let mut flow = Flow {
            from: 0,
            to: 2,
            rate_bps: Some(500_000),
            packet: Some(1000),
            dscp: 0,
            transport: Transport::Udp,
            start: Duration::ZERO,
            warm_up: Duration::from_millis(500),
            duration: Duration::from_secs(9),
        };
        let load = |flow: &Flow| Load {
            flow: flow.clone(),
            number: 1,
            namespaces: ["n", "m"].map(Into::into),
            to: Ipv4Addr::new(10, 200, 0, 3),
            packet: 1000,
            most_bps: 11_000_000,
        };
        assert_eq!(
            words(&load(&flow).client()),
            "netns exec n iperf3 --client 10.200.0.3 --port 5202 --json --connect-timeout 20000 \
             --time 9 --omit 1 --udp --length 972 --bitrate 486000"
        );
        assert_eq!(
            words(&load(&flow).server()),
            "netns exec m iperf3 --server --one-off --port 5202"
        );
        let tcp = Tcp { congestion: Some("reno".into()), window: Some(9000), ..Tcp::default() };
        flow.transport = Transport::Tcp(tcp.clone());
        flow.rate_bps = None;
        flow.dscp = 46;
        let asked = words(&load(&flow).client());
        assert!(
            asked.ends_with(
                "--time 9 --omit 1 --dscp 46 --set-mss 960 --congestion reno --window 9000"
            ),
            "{asked}"
        );
        flow.transport = Transport::Tcp(Tcp { size: Some(800_000), ..tcp });
        let asked = words(&load(&flow).client());
        assert!(asked.contains("20000 --bytes 800000 --dscp 46 --set-mss"), "{asked}");
    }

    #[test]
    fn reports_are_read() {
        let udp = r#"{"start": {}, "end": {"streams": [{"udp": {}}],
            "sum_sent": {"seconds": 2.0, "bytes": 9720, "packets": 10, "lost_packets": 1},
            "sum_received": {"seconds": 2.5, "bytes": 8748, "packets": 10, "lost_packets": 1,
                "jitter_ms": 5}}}"#;
        let measured = read(udp.as_bytes()).unwrap();
        assert_eq!((measured.seconds, measured.bytes), (2.5, 8748));
        assert_eq!((measured.sent, measured.jitter_s), (9720, Some(0.005)));
        assert_eq!((measured.retransmits, measured.mean_rtt_s), (None, None));
        let tcp = r#"{"end": {"streams": [{"sender": {"mean_rtt": 3400}, "receiver": {}}],
            "sum_sent": {"seconds": 2.0, "bytes": 9720, "retransmits": 3},
            "sum_received": {"seconds": 2.5, "bytes": 8748}}}"#;
        let measured = read(tcp.as_bytes()).unwrap();
        assert_eq!((measured.retransmits, measured.mean_rtt_s), (Some(3), Some(0.0034)));
        assert_eq!(measured.jitter_s, None);
    }

    #[test]
    fn errors_are_passed_on() {
        let refused = r#"{"start": {}, "end": {}, "error": "error - unable to connect"}"#;
        assert_eq!(read(refused.as_bytes()).unwrap_err(), "iperf3: unable to connect");
        assert_eq!(read(br#"{"end": {}}"#).unwrap_err(), "iperf3 measured nothing");
        assert!(read(b"").unwrap_err().starts_with("iperf3: "));
        let lost = r#"{"error": "unable to read from stream socket: Resource unavailable"}"#;
        let lost = LoadError::of(read(lost.as_bytes()).unwrap_err());
        assert!(matches!(lost, LoadError::Unopened(_)), "{lost:?}");
    }
}
