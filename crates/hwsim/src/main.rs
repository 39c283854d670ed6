//! `ncmesh-medium`: the medium of a scenario behind the radios of `mac80211_hwsim`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use ncmesh_hwsim::message::{FAMILY, registration};
use ncmesh_hwsim::{Air, Counts};
use ncmesh_medium::MediumError;
use ncmesh_node::alarm::Alarm;
use ncmesh_node::generic_netlink::{family, messages, outcome};
use ncmesh_sim::scenario::{Scenario, ScenarioError};
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_GENERIC;
use serde::Serialize;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

/// Room for frames that the kernel hands over at once, bytes.
const SOCKET_BYTES: usize = 4 << 20;
/// Most datagrams that are read before time is looked at again.
const MOST_DATAGRAMS: usize = 32;

/// Puts the medium of a scenario behind the radios of mac80211_hwsim.
///
/// Radio 0 of the module is the scenario's first node, and so on. Load the module first: `modprobe
/// mac80211_hwsim radios=3`. Ends at an interrupt, and prints its counters.
#[derive(Parser, Debug)]
#[command(name = "ncmesh-medium", version)]
struct Arguments {
    /// Scenario file. Its medium is used, not its traffic.
    scenario: PathBuf,
    /// Change a value of the scenario: KEY=VALUE, as `ncmesh simulate` takes it.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all draws of the medium.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Why the program ended.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Medium(#[from] MediumError),
    #[error("the kernel has no simulated radios: modprobe mac80211_hwsim ({0})")]
    NoRadios(io::Error),
    #[error("no frames of the radios: this needs CAP_NET_ADMIN ({0})")]
    Refused(io::Error),
    #[error("netlink: {0}")]
    Socket(#[from] io::Error),
}

/// Counters that are printed at the end.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    counts: Counts,
    /// Most time by which an event came too late, ns.
    lag_most_ns: u64,
    /// Messages that the kernel refused: of radios that are off, or frames that it has given up.
    refused: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done =
        runtime.map_err(Failure::Socket).and_then(|runtime| runtime.block_on(run(&arguments)));
    match done.map(|report| serde_json::to_string(&report)) {
        Ok(report) => {
            println!("{}", report.unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("ncmesh-medium: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<Report, Failure> {
    let mut scenario = Scenario::load(&arguments.scenario)?;
    for assignment in &arguments.set {
        scenario.set(assignment)?;
    }
    let mut config = scenario.medium_config();
    config.seed = arguments.seed;

    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.set_rx_buf_sz(SOCKET_BYTES)?;
    let family = family(&socket, FAMILY).map_err(Failure::NoRadios)?;
    socket.send(&registration(family, NLM_F_REQUEST | NLM_F_ACK), 0)?;
    outcome(&socket.recv_from_full()?.0).map_err(Failure::Refused)?;
    socket.set_non_blocking(true)?;

    #[expect(deprecated, reason = "its successor is unsafe; the socket closes what it owns")]
    let socket = AsyncFd::new(socket)?;
    let mut driver = Driver {
        air: Air::new(config, family)?,
        start: Instant::now(),
        answers: Vec::new(),
        lag_most_ns: 0,
        refused: 0,
    };
    let mut alarm = Alarm::new()?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    eprintln!("ncmesh-medium: {} radios", scenario.nodes.len());

    loop {
        let due = driver.air.next_ns().map(|ns| driver.start + Duration::from_nanos(ns));
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            ready = socket.readable() => {
                let mut ready = ready?;
                for _ in 0..MOST_DATAGRAMS {
                    match ready.try_io(|socket| socket.get_ref().recv_from_full()) {
                        Ok(datagram) => driver.handle_datagram(&datagram?.0),
                        Err(_) => break,
                    }
                }
            }
            () = alarm.wait_until(due) => driver.handle_timeout(),
        }
        // An answer that the kernel has no room for is lost, as on a bad driver.
        for answer in driver.answers.drain(..) {
            let _ = socket.get_ref().send(&answer, 0);
        }
    }
    let Driver { air, lag_most_ns, refused, .. } = driver;
    Ok(Report { counts: air.counts(), lag_most_ns, refused })
}

/// The channel on the clock.
struct Driver {
    air: Air,
    start: Instant,
    answers: Vec<Vec<u8>>,
    lag_most_ns: u64,
    refused: u64,
}

impl Driver {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn handle_datagram(&mut self, datagram: &[u8]) {
        let now_ns = self.now_ns();
        for message in messages(datagram) {
            if outcome(message).is_err_and(|error| error.kind() != io::ErrorKind::InvalidData) {
                self.refused += 1;
            } else {
                self.air.handle_message(now_ns, message, &mut self.answers);
            }
        }
    }

    fn handle_timeout(&mut self) {
        let now_ns = self.now_ns();
        let lag_ns = self.air.next_ns().map_or(0, |due_ns| now_ns.saturating_sub(due_ns));
        self.lag_most_ns = self.lag_most_ns.max(lag_ns);
        self.air.handle_timeout(now_ns, &mut self.answers);
    }
}
