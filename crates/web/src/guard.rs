//! Which requests are answered.
//!
//! Any page in the browser can send requests to a server on this machine. Three checks keep other
//! pages out:
//!
//! - `Host` must name this server. Otherwise a foreign name that resolves to this machine (DNS
//!   rebinding) would make a foreign page one of ours.
//! - `Origin`, which browsers send with every request that is not a plain `GET` of the page itself,
//!   must be one of this server's.
//! - What changes something needs a token, unless the server has nothing to change.
//!
//! A server may keep what it shows for who has a token, too: other users of this machine reach its
//! port. The page cannot send one with every request, so the address that the server tells has it,
//! and is answered with a cookie.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::net::SocketAddr;

/// Headers of every answer. Nothing is loaded from elsewhere, no script runs that is not a file of
/// the console, and no other page may frame it.
pub const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Rule by which a server lets requests in.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Values of `Host` that name this server.
    hosts: Vec<String>,
}

impl Guard {
    /// Returns the guard of a server that listens on `address`, and that `names` lead to as well.
    #[must_use]
    pub fn new(address: SocketAddr, names: &[String]) -> Self {
        // A server on all interfaces is reached by the loopback addresses too.
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() || address.ip().is_unspecified() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{host}:{port}")));
        }

        hosts.extend(names.iter().map(|name| format!("{}:{port}", name.to_ascii_lowercase())));
        // Browsers leave the port of http out.
        if port == 80 {
            let bare = |host: &String| host.strip_suffix(":80").map(str::to_owned);
            hosts.extend(hosts.iter().filter_map(bare).collect::<Vec<_>>());
        }

        Self { hosts }
    }

    /// Checks a request.
    ///
    /// # Errors
    /// Status and one line why it is not answered.
    pub fn check(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), (StatusCode, &'static str)> {
        let is_ours = |host: &str| self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or(""));

        // DNS rebinding: the browser treats a foreign name as this server's, but sends it.
        if !text(header::HOST).is_some_and(is_ours) {
            let why = "this server has another name; open it by the address it printed\n";
            return Err((StatusCode::MISDIRECTED_REQUEST, why));
        }

        // A page of another site sends its own origin, which scripts cannot change.
        let origin = text(header::ORIGIN);
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(is_ours);
        if origin.is_some_and(|origin| !is_own(origin)) {
            return Err((StatusCode::FORBIDDEN, "another page may not ask this\n"));
        }
        // Pages send their origin with what is no plain request. Programs may send a token instead,
        // which browsers add to no request of a foreign page.
        let has_token = headers.contains_key(header::AUTHORIZATION);
        let is_plain = method == Method::GET || method == Method::HEAD;
        if origin.is_none() && !is_plain && !has_token {
            return Err((StatusCode::FORBIDDEN, "this needs an Origin, as browsers send it\n"));
        }

        Ok(())
    }
}

/// Returns whether a request has the token.
#[must_use]
pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    is_token(given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default(), token)
}

/// Returns whether a request has the token in the cookie of this name.
#[must_use]
pub fn has_cookie(headers: &HeaderMap, name: &str, token: &str) -> bool {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|c| c.split_once('='));
    pairs.into_iter().any(|(given, value)| given.trim() == name && is_token(value.trim(), token))
}

/// Returns whether `given` is the token, compared in constant time.
#[must_use]
pub fn is_token(given: &str, token: &str) -> bool {
    let differing = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    !token.is_empty() && given.len() == token.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs =
            pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn only_own_hosts_and_origins_pass() {
        use header::{HOST, ORIGIN};
        let address = SocketAddr::from(([127, 0, 0, 1], 7180));
        let guard = Guard::new(address, &["Gate.lan".to_owned()]);
        let check = |method: Method, pairs: &[(HeaderName, &'static str)]| {
            guard.check(&method, &headers(pairs)).map_err(|(status, _)| status.as_u16())
        };
        for host in ["127.0.0.1:7180", "localhost:7180", "[::1]:7180", "gate.lan:7180"] {
            let pairs: [(HeaderName, &'static str); 1] = [(HOST, host)];
            assert_eq!(check(Method::GET, &pairs), Ok(()), "{host}");
        }
        for host in ["127.0.0.1", "127.0.0.1:7181", "evil.example:7180", ""] {
            assert_eq!(check(Method::GET, &[(HOST, host)]), Err(421), "{host}");
        }
        assert_eq!(check(Method::GET, &[]), Err(421));

        let ours = (HOST, "localhost:7180");
        let from = |origin| [ours.clone(), (ORIGIN, origin)];
        assert_eq!(check(Method::POST, &from("http://localhost:7180")), Ok(()));
        for origin in ["http://evil.example", "null", "https://localhost:7180", ""] {
            assert_eq!(check(Method::POST, &from(origin)), Err(403), "{origin}");
            assert_eq!(check(Method::GET, &from(origin)), Err(403), "{origin}");
        }
        assert_eq!(check(Method::POST, std::slice::from_ref(&ours)), Err(403));
    }

    #[test]
    fn a_token_is_given_as_a_whole() {
        let given = |value| has_token(&headers(&[(header::AUTHORIZATION, value)]), "s3cret");
        assert!(given("Bearer s3cret"));
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Bearer S3cret", "s3cret", "Bearer "] {
            assert!(!given(wrong), "{wrong}");
        }
        assert!(!has_token(&HeaderMap::new(), "s3cret"));
        assert!(!has_token(&headers(&[(header::AUTHORIZATION, "Bearer ")]), ""));
    }
}
