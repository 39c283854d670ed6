//! Serves the console to browsers.
//!
//! | path | answer |
//! | --- | --- |
//! | `/` and the files of the console | the built front end, from the binary |
//! | `console.json` | what there is: a live mesh, recordings, demonstrations ([`Offered`]) |
//! | `messages` | the messages of a live mesh, as server-sent events |
//! | `recordings/N` | a recording, compressed with gzip |
//! | `demo/run` | runs a demonstration and says where its recordings are |
//!
//! [`Hub`] has the messages of a live mesh, for any number of browsers. [`Server`] answers them.
//! [`guard`] says which requests are answered at all: those of pages that this server gave.
//! [`page`] makes a page that is one file. This crate knows no simulator and no daemon; what it
//! does for connections, [`Limits`], serves a daemon's API too.

mod connections;
mod files;
pub mod guard;
mod hub;
pub mod page;
mod past;
mod server;
mod site;

pub use connections::{Accepted, Limits};
pub use hub::{Hub, Listener, Wanted};
pub use server::{BindError, Server, live};
pub use site::{DemoError, DemoRequest, Demonstration, Offered, Recording, Site};
