//! The channel emulator on a thread of its own, so that nothing else in this process delays it.

use crate::LabError;
use ncmesh_medium::{MediumConfig, RadioId};
use ncmesh_node::etherd::datagram::Token;
use ncmesh_node::etherd::{EtherConfig, EtherControl, EtherError, EtherStatistics, Etherd};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Thread of the emulator, with what it returns.
type Ending = JoinHandle<Result<EtherStatistics, EtherError>>;

/// Handle of the emulator's thread.
pub(crate) struct EtherThread {
    address: SocketAddr,
    control: EtherControl,
    /// `None` when its end was noticed.
    thread: Mutex<Option<Ending>>,
}

impl EtherThread {
    /// Starts the emulator with a lag of at most `max_lag`.
    pub(crate) fn start(
        medium: MediumConfig,
        token: Token,
        max_lag: Duration,
    ) -> Result<Self, LabError> {
        // The medium waits for the answer to a grant, and this wait counts as lag. So a daemon must
        // answer well within the largest lag.
        let mut config = EtherConfig::new(token);
        config.lag_limit = max_lag;
        config.grant_limit = max_lag / 5;

        // The socket is opened here, so that an error is returned before a thread is started.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let etherd = {
            let _inside = runtime.enter();
            Etherd::bind(medium, config)?
        };

        let address = etherd.addr();
        let control = etherd.control();
        let run = move || runtime.block_on(etherd.run(std::future::pending()));
        let thread = std::thread::Builder::new().name("ether".into()).spawn(run)?;
        Ok(Self { address, control, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the address that daemons attach to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Checks that the emulator still runs. Returns its error if it has ended.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = thread.take_if(|thread| thread.is_finished()) {
            join(ended)?;
        }
        Ok(())
    }

    /// Switches the radio of a node on or off.
    pub(crate) async fn set_up(&self, node: usize, up: bool) -> Result<(), LabError> {
        Ok(self.control.set_up(RadioId(node), up).await?)
    }

    /// Stops the emulator and returns its counters.
    pub(crate) async fn stop(self) -> Result<EtherStatistics, LabError> {
        self.control.stop().await;
        // The emulator finishes the frame it is working on and then ends.
        let thread = self.thread.into_inner().unwrap_or_else(PoisonError::into_inner);
        thread.map_or_else(|| Ok(EtherStatistics::default()), join)
    }
}

/// Waits for the emulator's thread and returns its result.
fn join(thread: Ending) -> Result<EtherStatistics, LabError> {
    let ended = thread.join();
    Ok(ended.map_err(|_| std::io::Error::other("the ether's thread panicked"))??)
}
