//! The console of a daemon, section `[web]`: what this node knows, for browsers.
//!
//! While nobody looks, the node is asked every 10 s for what the console shows as its past.

use crate::api;
use crate::config::{NodeConfig, Readers, WebConfig};
use crate::error::NodeError;
use crate::node::{Handle, View};
use axum::Router;
use axum::routing::get;
use ncmesh_console::schema::TICK_S;
use ncmesh_console::{Sampler, Sink};
use ncmesh_web::{Hub, Server, Site, Wanted};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use zeroize::Zeroizing;

/// Length of the token of readers, bytes.
const READ_TOKEN_LEN: usize = 16;

/// Serves the console until the runtime ends. Returns the address that it listens on.
///
/// # Errors
/// The configuration's error, if the token cannot be read or the address not be listened on.
pub async fn serve(
    config: &NodeConfig,
    web: &WebConfig,
    handle: Handle,
    hub: Hub,
) -> Result<SocketAddr, NodeError> {
    // The port is bound before anything is read, so that a mistake in the address shows at the
    // start.
    let server = Server::bind(web.listen).await.map_err(NodeError::Web)?;
    let pages = api::routes::metrics(handle.clone());
    let mut site = Site::live(hub).with_pages(pages);

    // Without a token there are no commands: the console is for looking only.
    if let Some(file) = &web.token_file {
        let token = config.token(file)?;
        site = site.with_api(api::routes::commands(handle.clone()), &token);
    }

    let address = server.address();
    match web.read {
        Readers::Anyone => tracing::info!("the console is at http://{address}/"),
        Readers::Token => {
            let token = readers_token(config);
            tracing::info!("the console is at http://{address}/?token={token}");
            site = site.for_readers_with(&token);
        }
    }

    let names = web.names.clone();
    tokio::spawn(async move { server.serve(site, &names).await });
    Ok(address)
}

/// Returns the token with which one may look at a node's console. It is the same after a restart,
/// so that bookmarks stay, and tells nothing of the network's key that it is made of.
pub fn readers_token(config: &NodeConfig) -> String {
    let key = Zeroizing::new(format!("{} {}", config.key.to_hex(), config.id));
    let token =
        blake3::derive_key("ncmesh 2026-11-27 token of the console's readers", key.as_bytes());
    token[..READ_TOKEN_LEN].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns what tells everybody what this node knows, browsers and clients of the API's socket.
/// Only a console shows the past.
pub fn hub(handle: Handle, has_console: bool) -> Hub {
    let hub = if has_console { Hub::with_past() } else { Hub::new() };
    tokio::spawn(tell(handle, hub.clone()));
    hub
}

/// Returns the path of the messages, for clients of the API's socket.
pub fn messages(hub: Hub) -> Router {
    Router::new().route("/v1/messages", get(async move || ncmesh_web::live(&hub, Wanted::Now)))
}

/// Tells the hub what the node knows, as often as ticks come, while anybody listens.
async fn tell(handle: Handle, mut hub: Hub) {
    let mut ticks = interval(Duration::from_secs_f64(TICK_S));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);

    let mut sampler = Sampler::new();
    let Ok(mut view) = handle.call(|node| View::of(node)).await else { return };
    loop {
        // A first look without listeners, so that the first of them has a state at once.
        if sampler.meta().is_some() {
            hub.wait_for_listener().await;
        }

        ticks.tick().await;
        view.tell_every(hub.step_s());
        let look = move |node: &mut crate::node::Node| {
            // The view goes to the node's loop and back, so that no lock is needed.
            view.look(node);
            view
        };

        let Ok(looked) = handle.call(look).await else { return };
        view = looked;
        if tell_view(&mut sampler, &mut view, &mut hub).is_err() {
            return;
        }
    }
}

/// Tells the hub what changed in a view.
fn tell_view(sampler: &mut Sampler, view: &mut View, hub: &mut Hub) -> std::io::Result<()> {
    let events = view.take_events();
    sampler.sample(view.meta(), view.state().clone(), events, |message| hub.tell(&message))
}
