//! Connections of a server, and what each may take.
//!
//! A client that leaks connections or sends nothing must not take the descriptors and the memory
//! that the rest of the program needs. So connections are few, each must send its request within
//! some seconds, and bodies are short. A connection beyond the limit waits in the kernel's queue
//! until another one ends.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Limits of the clients of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Name of the server in the log, such as "the console".
    pub server: &'static str,
    /// Most connections that are served at once.
    pub connections: usize,
    /// Most connections of one client at once. Further ones are closed.
    pub per_client: usize,
    /// Longest time for the header of a request, counted from the connection or the answer before.
    pub header_time: Duration,
    /// Longest time for the body of a request.
    pub body_time: Duration,
    /// Length of the largest body, bytes.
    pub body: usize,
}

/// A connection that was accepted.
#[derive(Debug)]
pub struct Accepted<S> {
    /// The connection.
    pub stream: S,
    /// Address of the client.
    pub from: Option<IpAddr>,
}

/// How many connections each client has. As many entries as there are connections.
#[derive(Clone, Default)]
struct Clients(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// Place of a connection, which is free again when it is dropped.
struct Place {
    clients: Clients,
    client: Option<IpAddr>,
}

impl Clients {
    /// Returns a place for a connection, unless its client has `most`.
    fn admit(&self, from: Option<IpAddr>, most: usize) -> Option<Place> {
        let client = from.map(client);
        if let Some(client) = client {
            // The map has an entry only for clients with a connection, so it is as bounded as
            // those.
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(client).or_default();
            if *count >= most {
                return None;
            }
            *count += 1;
        }

        Some(Place { clients: self.clone(), client })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        let mut counts = self.clients.0.lock().unwrap_or_else(PoisonError::into_inner);

        // Entries without connections go, or each address that was ever seen would keep one.
        if let Some(count) = counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&client);
            }
        }
    }
}

/// Returns the first address of those that one client has: a /64 of IPv6, this machine's loopback.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Limits {
    /// Serves each connection that `accept` polls from a listener, until the runtime ends. `accept`
    /// returns the address of the client with it, where clients have one.
    pub async fn serve<S>(
        self,
        mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Accepted<S>>>,
        router: Router,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // A permit is taken before a connection is, so the rest wait in the kernel's queue.
        let free = Arc::new(Semaphore::new(self.connections));
        let clients = Clients::default();
        let mut refuses = false;
        loop {
            // The semaphore is never closed.
            let Ok(permit) = free.clone().acquire_owned().await else { return };

            match poll_fn(&mut accept).await {
                Ok(Accepted { stream, from }) => {
                    refuses = false;
                    // Dropping the stream closes it: the client gets no answer, and the others keep
                    // their places.
                    let Some(place) = clients.admit(from, self.per_client) else { continue };
                    let router = router.clone();
                    tokio::spawn(async move {
                        // Both end with the task, in whatever way the connection ends.
                        let _permit = permit;
                        let _place = place;
                        self.serve_connection(stream, router).await;
                    });
                }
                // For instance, no descriptor is left. One line is enough until it works again.
                Err(e) => {
                    if !std::mem::replace(&mut refuses, true) {
                        tracing::warn!("{} accepts no connections for now: {e}", self.server);
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Answers the requests of one connection.
    pub async fn serve_connection(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        router: Router,
    ) {
        // The time for headers is bounded here, that for the body in `read_body`.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_time)
            // A client may close its side after the request, as `nc -N` does.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        // A client that sends nonsense, too slowly, or goes away concerns nobody else.
        if let Err(e) = connection.await {
            tracing::debug!("a connection of {} ended: {e}", self.server);
        }
    }

    /// Reads the whole body, so that a handler never waits for it.
    ///
    /// # Errors
    /// The status to answer with: the body is too long or cut off, or did not arrive in time.
    pub async fn read_body(self, request: Request) -> Result<Request, StatusCode> {
        let (head, body) = request.into_parts();
        match timeout(self.body_time, to_bytes(body, self.body)).await {
            Ok(Ok(body)) => Ok(Request::from_parts(head, Body::from(body))),
            Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE),
            Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_takes_no_more_than_its_part() {
        let clients = Clients::default();
        let admit = |from: &str| clients.admit(Some(from.parse().unwrap()), 2);
        let held = [admit("127.0.0.1"), admit("127.9.9.9")];
        assert!(held.iter().all(Option::is_some));
        assert!(admit("127.0.0.2").is_none() && admit("::ffff:127.0.0.1").is_none());
        let other = [admit("192.0.2.1"), admit("192.0.2.1"), admit("192.0.2.2")];
        assert!(other.iter().all(Option::is_some) && admit("192.0.2.1").is_none());
        let v6 = [admit("2001:db8::1"), admit("2001:db8::2"), admit("2001:db8:0:1::1")];
        assert!(v6.iter().all(Option::is_some) && admit("2001:db8::3").is_none());
        assert!((0..9).all(|_| clients.admit(None, 2).is_some()), "a Unix socket has no clients");
        drop(held);
        assert!(admit("127.0.0.1").is_some());
        drop((other, v6));
        assert!(clients.0.lock().unwrap().is_empty());
    }
}
