//! The server: paths and answers.

use crate::connections::{Accepted, Limits};
use crate::files;
use crate::guard::{self, Guard};
use crate::hub::{Hub, Listener, Wanted};
use crate::site::{DemoError, DemoRequest, Link, Offered, Site};
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use socket2::SockRef;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;
use tokio::net::TcpListener;

/// A hundred consoles, each with one connection for messages and one more while it loads.
const LIMITS: Limits = Limits {
    server: "the console",
    connections: 256,
    per_client: 128,
    header_time: Duration::from_secs(10),
    body_time: Duration::from_secs(5),
    body: 64 << 10,
};
/// Pause between comments to a listener to whom nothing is told, which show that it is gone.
const ALIVE: Duration = Duration::from_secs(15);
/// Time after which a browser that takes nothing is given up.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program listens there.
    #[error("{0} is in use by another program: choose another port, or 0 for any that is free")]
    InUse(SocketAddr),
    /// Something else.
    #[error("cannot listen on {0}: {1}")]
    Other(SocketAddr, io::Error),
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens on `address`. Port 0 is any that is free.
    ///
    /// # Errors
    /// [`BindError`].
    pub async fn bind(address: SocketAddr) -> Result<Self, BindError> {
        // A port in use is the common mistake, so it has an error of its own.
        let listener = TcpListener::bind(address).await.map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse(address),
            _ => BindError::Other(address, e),
        })?;

        // Port 0 became a port, which the user has to know.
        let address = listener.local_addr().map_err(|e| BindError::Other(address, e))?;
        Ok(Self { listener, address })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows `site` to the browsers that reach this server by its address or one of `names`, until
    /// the runtime ends.
    pub async fn serve(self, site: Site, names: &[String]) {
        let cookie = format!("ncmesh_{}", self.address.port());
        let router = router(site, Guard::new(self.address, names), cookie);
        let accept = |cx: &mut Context<'_>| {
            self.listener.poll_accept(cx).map_ok(|(stream, from)| {
                // A browser that has vanished must not keep its place for the quarter of an hour
                // that the kernel would try. Where the option is missing, it does.
                let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(GIVE_UP));
                Accepted { stream, from: Some(from.ip()) }
            })
        };

        LIMITS.serve(accept, router).await;
    }
}

/// Token that lets a browser look, and the cookie that keeps it. The cookie's name has the port:
/// browsers send a host's cookies to all of its ports.
struct Readers {
    token: Arc<str>,
    commands: Option<Arc<str>>,
    cookie: String,
}

impl Readers {
    /// Answers a request by `next` if it has a token.
    async fn check(State(readers): State<Arc<Self>>, request: Request, next: Next) -> Response {
        // The token of commands opens everything, so it reads as well.
        let headers = request.headers();
        let bearer = |token: &Arc<str>| guard::has_token(headers, token);
        let may_read = guard::has_cookie(headers, &readers.cookie, &readers.token)
            || bearer(&readers.token)
            || readers.commands.as_ref().is_some_and(bearer);
        if may_read {
            return next.run(request).await;
        }
        // The address that was told has the token. The page goes on without it, by the cookie.
        let query = request.uri().query().unwrap_or_default();
        let given = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        if request.uri().path() == "/" && guard::is_token(given.unwrap_or_default(), &readers.token)
        {
            // The redirect takes the token out of the address bar and the browser's history.
            let Readers { token, cookie, .. } = &*readers;
            let cookie = format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Strict");
            let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/".to_owned())];
            return (StatusCode::SEE_OTHER, headers).into_response();
        }

        let why = "this needs a token: open the address that the daemon's log tells, or send \
                   Authorization: Bearer TOKEN\n";
        (StatusCode::UNAUTHORIZED, why).into_response()
    }
}

/// Returns the paths of a site, which keeps the token of a reader in the cookie of this name.
fn router(site: Site, guard: Guard, cookie: String) -> Router {
    let api = site.api.clone();
    let pages = site.pages.clone();
    let readers = site.read_token.clone().map(|token| {
        let commands = api.as_ref().map(|api| api.token.clone());
        Arc::new(Readers { token, commands, cookie })
    });

    // The token of readers guards the routes so far; those of commands have their own below.
    let mut router: Router = Router::new()
        .route("/", get(file))
        .route("/console.json", get(offered))
        .route("/messages", get(messages))
        .route("/recordings/{number}", get(recording))
        .route("/demo/run", post(run_demo))
        .route("/demo/recordings/{number}", get(demo_recording))
        .with_state(site)
        .merge(pages);
    if let Some(readers) = readers {
        router = router.layer(from_fn_with_state(readers, Readers::check));
    }

    // Commands need their token even where reading is free.
    if let Some(api) = api {
        let token = api.token;
        let check = move |request: Request, next: Next| {
            let has_token = guard::has_token(request.headers(), &token);
            async move {
                if has_token {
                    return next.run(request).await;
                }
                let why = "this needs the token: Authorization: Bearer TOKEN\n";
                (StatusCode::UNAUTHORIZED, why).into_response()
            }
        };
        router = router.merge(api.router.layer(from_fn(check)));
    } else {
        let read_only = async || (StatusCode::FORBIDDEN, "this console is for looking only\n");
        router = router.route("/v1/{*path}", any(read_only));
    }

    // Outermost, so that no route is reached without the checks, and no answer lacks the headers.
    router.fallback(get(file)).layer(from_fn_with_state(Arc::new(guard), check))
}

/// Checks a request, reads its body, and adds the headers of every answer.
async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    // The body is read here for all routes, so that its length and its time are bounded once.
    let answer = match guard.check(request.method(), request.headers()) {
        Err(refused) => Err(refused.into_response()),
        Ok(()) => LIMITS.read_body(request).await.map_err(IntoResponse::into_response),
    };

    let mut response = match answer {
        Ok(request) => next.run(request).await,
        Err(refused) => refused,
    };

    // Refusals carry the headers, too. The page may not be cached, unless the handler says so.
    response.headers_mut().extend(guard::HEADERS);
    let unsaved = header::HeaderValue::from_static("no-cache");
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(unsaved);
    response
}

async fn offered(State(site): State<Site>) -> Json<Offered> {
    Json(site.offered())
}

async fn messages(State(site): State<Site>, RawQuery(query): RawQuery) -> Response {
    match &site.hub {
        Some(hub) => live(hub, wanted(hub, query.as_deref().unwrap_or_default())),
        None => (StatusCode::NOT_FOUND, "nothing is live here\n").into_response(),
    }
}

/// Returns what a page wants: all of the past, or what it lacks if it was told the same run before.
fn wanted(hub: &Hub, query: &str) -> Wanted {
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name));
    let after = value("after=").filter(|_| value("run=") == Some(hub.run()));
    Wanted::After(after.and_then(|time| time.parse().ok()).unwrap_or(f64::MIN))
}

/// Answers with the messages of a hub, as server-sent events. Their id names the run.
#[must_use]
pub fn live(hub: &Hub, wanted: Wanted) -> Response {
    let keep_alive = KeepAlive::new().interval(ALIVE);
    let events = events(hub.listen(wanted), hub.run().to_owned());
    Sse::new(events).keep_alive(keep_alive).into_response()
}

/// Returns the messages of a listener as server-sent events.
fn events(listener: Listener, run: String) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold((listener, Some(run)), async |(mut listener, mut run)| {
        let json = listener.next().await?;
        // Browsers take it as the id of all that follow.
        let named = run.take().map_or_else(Event::default, |run| Event::default().id(run));
        Some((Ok(named.data(&*json)), (listener, run)))
    })
}

/// Answers with a recording.
fn gzip(bytes: Option<Bytes>) -> Response {
    match bytes {
        Some(bytes) => ([(header::CONTENT_TYPE, "application/gzip")], bytes).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such recording\n").into_response(),
    }
}

async fn recording(State(site): State<Site>, Path(number): Path<usize>) -> Response {
    gzip(site.recording(number))
}

async fn demo_recording(State(site): State<Site>, Path(number): Path<u64>) -> Response {
    gzip(site.demo_recording(number))
}

/// Recordings of a demonstration: the run without coding, and the one with it.
#[derive(Serialize)]
struct DemoAnswer {
    runs: [Link; 2],
}

async fn run_demo(State(site): State<Site>, body: Bytes) -> Response {
    // The status says whose fault it is; a page that is busy may ask again.
    let request = serde_json::from_slice::<DemoRequest>(&body)
        .map_err(|e| DemoError::Request(format!("the request is wrong: {e}")));
    let answer = match request {
        Ok(request) => site.run_demo(request).await,
        Err(e) => Err(e),
    };
    let status = match &answer {
        Ok(_) => StatusCode::OK,
        Err(DemoError::Request(_)) => StatusCode::BAD_REQUEST,
        Err(DemoError::Run(_)) => StatusCode::INTERNAL_SERVER_ERROR,
        Err(DemoError::Busy) => StatusCode::SERVICE_UNAVAILABLE,
    };

    match answer {
        Ok(runs) => Json(DemoAnswer { runs }).into_response(),
        Err(e) => (status, format!("{e}\n")).into_response(),
    }
}

/// Answers with a file of the console.
async fn file(request: Request) -> Response {
    let name = match request.uri().path().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    match files::find(name) {
        Some(bytes) => ([(header::CONTENT_TYPE, files::media_type(name))], bytes).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such page\n").into_response(),
    }
}
