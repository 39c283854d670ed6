//! Contents of a server.

use crate::Hub;
use axum::Router;
use axum::body::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Most recordings of demonstrations that are kept: those of the four latest. A page fetches both
/// of its own at once.
const KEPT: usize = 8;

/// Most requests for demonstrations that wait for the one that runs.
const WAITING: usize = 4;

/// A recording, as [`ncmesh_console::recording`] writes it.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Name that the console shows. Any text.
    pub name: String,
    /// The file.
    pub bytes: Bytes,
}

/// Abilities of a page, as it asks for them first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Offered {
    /// A mesh that lives: messages come as they happen.
    Live {
        /// Whether commands are taken, from who has the token.
        commands: bool,
    },
    /// Finished runs.
    Recording {
        /// Their recordings.
        runs: Vec<Link>,
    },
    /// Demonstrations, which the page starts.
    Demo,
    /// Nothing.
    Nothing,
}

/// Where a recording is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its address, relative to the page.
    pub url: String,
}

/// A demonstration that a page asks for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemoRequest {
    /// Its name.
    pub demonstration: String,
    /// Loss of every link, 0 to 1; `None` for the links as they are.
    pub loss: Option<f64>,
    /// Seed of all random draws.
    pub seed: u32,
}

/// Why a demonstration does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    /// The request names something that there is not, or a value that is not allowed.
    #[error("{0}")]
    Request(String),
    /// The simulation ended early.
    #[error("{0}")]
    Run(String),
    /// Too many are waiting.
    #[error("too many demonstrations are asked for at once: wait for those that run")]
    Busy,
}

/// Runs a demonstration, and returns the run without coding and the one with it. It may block.
pub type Demonstration =
    dyn Fn(&DemoRequest) -> Result<[Recording; 2], DemoError> + Send + Sync + 'static;

/// Contents of a server. Clones share them.
#[derive(Clone, Default)]
pub struct Site {
    pub(crate) hub: Option<Hub>,
    recordings: Arc<Mutex<Vec<Recording>>>,
    demo: Option<Demo>,
    pub(crate) api: Option<Api>,
    /// Paths beside those of the console, which change nothing.
    pub(crate) pages: Router,
    /// Token without which nothing is shown; `None` if everybody may look.
    pub(crate) read_token: Option<Arc<str>>,
}

/// Commands, for who has the token.
#[derive(Clone)]
pub(crate) struct Api {
    pub router: Router,
    pub token: Arc<str>,
}

#[derive(Clone)]
struct Demo {
    run: Arc<Demonstration>,
    /// One runs at a time.
    free: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Recordings of the latest, with their numbers.
    latest: Arc<Mutex<VecDeque<(u64, Recording)>>>,
}

impl Site {
    /// Returns a site that shows a live mesh.
    #[must_use]
    pub fn live(hub: Hub) -> Self {
        Self { hub: Some(hub), ..Self::default() }
    }

    /// Returns a site that runs demonstrations.
    #[must_use]
    pub fn demo(run: Arc<Demonstration>) -> Self {
        let demo = Demo {
            run,
            free: Arc::new(Semaphore::new(1)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            latest: Arc::default(),
        };
        Self { demo: Some(demo), ..Self::default() }
    }

    /// Shows what there is only to who has this token, or that of the commands. Letters and digits.
    #[must_use]
    pub fn for_readers_with(self, token: &str) -> Self {
        Self { read_token: Some(token.into()), ..self }
    }

    /// Offers the paths of `router`, which change nothing, to who may look.
    #[must_use]
    pub fn with_pages(self, router: Router) -> Self {
        Self { pages: router, ..self }
    }

    /// Offers commands, the paths of `router` below `/v1`, to who has the token.
    #[must_use]
    pub fn with_api(self, router: Router, token: &str) -> Self {
        Self { api: Some(Api { router, token: token.into() }), ..self }
    }

    /// Offers a recording from now on. A mesh that was live is over.
    pub fn offer(&self, recording: Recording) {
        lock(&self.recordings).push(recording);
    }

    /// Returns what a page can show.
    #[must_use]
    pub fn offered(&self) -> Offered {
        // Recordings come first: a mesh that was live is over when one is offered.
        let recordings = lock(&self.recordings);
        if !recordings.is_empty() {
            let link = |(number, recording): (usize, &Recording)| Link {
                name: recording.name.clone(),
                url: format!("recordings/{number}"),
            };
            return Offered::Recording { runs: recordings.iter().enumerate().map(link).collect() };
        }

        match (&self.hub, &self.demo) {
            (Some(_), _) => Offered::Live { commands: self.api.is_some() },
            (None, Some(_)) => Offered::Demo,
            (None, None) => Offered::Nothing,
        }
    }

    /// Returns a recording by its number.
    pub(crate) fn recording(&self, number: usize) -> Option<Bytes> {
        lock(&self.recordings).get(number).map(|recording| recording.bytes.clone())
    }

    /// Returns a recording of a demonstration by its number, if it is still kept.
    pub(crate) fn demo_recording(&self, number: u64) -> Option<Bytes> {
        let latest = lock(&self.demo.as_ref()?.latest);
        let found = latest.iter().find(|(kept, _)| *kept == number);
        found.map(|(_, recording)| recording.bytes.clone())
    }

    /// Runs a demonstration and keeps its recordings. Returns where they are.
    pub(crate) async fn run_demo(&self, request: DemoRequest) -> Result<[Link; 2], DemoError> {
        let unknown = || DemoError::Request("this server has no demonstrations".to_owned());
        let demo = self.demo.clone().ok_or_else(unknown)?;
        let waits = demo.waiting.clone().try_acquire_owned().map_err(|_| DemoError::Busy)?;
        let runs = demo.free.clone().acquire_owned().await.map_err(|_| DemoError::Busy)?;
        drop(waits);

        // The run goes on if the page has left meanwhile, and another one waits for its end.
        let work = tokio::task::spawn_blocking(move || {
            let _runs = runs;
            (demo.run)(&request).map(|recordings| keep(&demo.latest, recordings))
        });
        work.await.map_err(|_| DemoError::Run("the simulation has failed".to_owned()))?
    }
}

/// Keeps the recordings of a demonstration, in the place of the oldest.
fn keep(latest: &Mutex<VecDeque<(u64, Recording)>>, recordings: [Recording; 2]) -> [Link; 2] {
    let mut latest = lock(latest);
    recordings.map(|recording| {
        let number = latest.back().map_or(0, |(number, _)| number + 1);
        if latest.len() == KEPT {
            latest.pop_front();
        }
        let name = recording.name.clone();
        latest.push_back((number, recording));
        Link { name, url: format!("demo/recordings/{number}") }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is complete before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
