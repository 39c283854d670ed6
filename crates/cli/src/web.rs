//! The console's server beside a command, and pages that are one file.

use crate::failure::{Failure, Kind};
use crate::lab_args::{ListenArgs, SimulateArgs};
use crate::{show, traces};
use ncmesh_console::recording::Writer;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Console, Observer, Schemes, SimulationConfig};
use ncmesh_web::{BindError, Hub, Recording, Server, Site, page};
use std::cell::RefCell;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Bytes of a file in memory, shared with who writes it.
#[derive(Clone, Default)]
pub(crate) struct Memory(Rc<RefCell<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    /// Takes what was written.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

/// Recording of a simulation for `--web` and `--html`.
pub(crate) struct Shown {
    recorded: Memory,
    hub: Hub,
    served: Option<(Site, Background)>,
    html: Option<PathBuf>,
}

impl Shown {
    /// Begins to serve, if that is asked for: a port in use is reported before the run.
    pub(crate) fn begin(args: &SimulateArgs) -> Result<Self, Failure> {
        let hub = Hub::new();
        let served = if args.web {
            let site = Site::live(hub.clone());
            let background = Background::start(site.clone(), &args.listen)?;
            background.announce();
            Some((site, background))
        } else {
            None
        };
        Ok(Self { recorded: Memory::default(), hub, served, html: args.html.clone() })
    }

    /// Returns the observer of the run; `None` if nothing is shown.
    pub(crate) fn observer(
        &self,
        scenario: &Scenario,
        config: &SimulationConfig,
        schemes: &Schemes,
    ) -> Option<Box<dyn Observer>> {
        if self.served.is_none() && self.html.is_none() {
            return None;
        }
        let live = self.served.as_ref().map(|_| self.hub.clone());
        let sink = (live, Writer::new(self.recorded.clone()));
        Some(Box::new(Console::new(scenario, config, schemes, sink)))
    }

    /// Writes the page and, if the run is served, goes on serving until the user interrupts it.
    pub(crate) fn finish(self, scenario: &str, schemes: &Schemes) -> Result<(), Failure> {
        let bytes = self.recorded.take();
        if let Some(path) = &self.html {
            write_page(path, &[&bytes])?;
        }
        if let Some((site, background)) = self.served {
            site.offer(Recording { name: format!("{scenario}, {schemes}"), bytes: bytes.into() });
            background.announce();
            background.wait()?;
        }

        Ok(())
    }
}

/// A server on a thread of its own.
pub(crate) struct Background {
    address: SocketAddr,
    thread: JoinHandle<()>,
    /// Tells the thread that an interrupt shall end it from now on. Before, it ends the process.
    interruptible: oneshot::Sender<()>,
}

impl Background {
    /// Starts to serve.
    pub(crate) fn start(site: Site, args: &ListenArgs) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = runtime.block_on(Server::bind(args.listen))?;
        let address = server.address();
        let (interruptible, wanted) = oneshot::channel();
        let (started, starts) = mpsc::channel();
        let thread = std::thread::Builder::new().name("console".to_owned()).spawn(move || {
            let _ = started.send(());
            runtime.block_on(async {
                let interrupted = async {
                    // Without the sender the command has failed, and the process ends anyway.
                    match wanted.await {
                        Ok(()) => drop(tokio::signal::ctrl_c().await),
                        Err(_) => std::future::pending().await,
                    }
                };

                tokio::select! {
                    () = server.serve(site, &[]) => {}
                    () = interrupted => {}
                }
            });
        })?;

        let _ = starts.recv();
        Ok(Self { address, thread, interruptible })
    }

    /// Returns the address that browsers open.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Says where the console is, on standard error: results may be piped.
    pub(crate) fn announce(&self) {
        show::note(&format!("the console is at {}; Ctrl-C ends it", self.url()));
    }

    /// Serves until the user interrupts it.
    pub(crate) fn wait(self) -> Result<(), Failure> {
        let _ = self.interruptible.send(());
        let failed = |_| Failure::new(Kind::Other, "the console's server has failed");
        self.thread.join().map_err(failed)
    }
}

/// Writes the console with recordings in it as one page.
pub(crate) fn write_page(path: &Path, recordings: &[&[u8]]) -> Result<(), Failure> {
    let page = page::with(recordings)
        .ok_or_else(|| Failure::new(Kind::Other, "this build has no console for a page"))?;
    let failed = |e: io::Error| Failure::new(Kind::File, e.to_string());
    let mut file = traces::create(path)?;
    file.write_all(page.as_bytes()).and_then(|()| file.flush()).map_err(failed)
}

impl From<BindError> for Failure {
    fn from(e: BindError) -> Self {
        let kind = match e {
            BindError::InUse(_) => Kind::InUse,
            BindError::Other(..) => Kind::Other,
        };
        Self::new(kind, format!("{e} (--listen)"))
    }
}
