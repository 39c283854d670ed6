//! The server over real sockets: pages, recordings, live messages, foreign pages, many browsers.

use axum::Router;
use axum::routing::delete;
use ncmesh_console::Sink;
use ncmesh_console::schema::{Key, Message, Tick};
use ncmesh_web::{BindError, DemoError, DemoRequest, Hub, Recording, Server, Site};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Serves a site on a free port, and returns the address.
async fn serve(site: Site) -> SocketAddr {
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
    let address = server.address();
    tokio::spawn(async move { server.serve(site, &[]).await });
    address
}

/// Sends a request with these headers, and returns the whole answer.
async fn ask(address: SocketAddr, line: &str, headers: &[&str], body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it answers");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asks as a page of the server itself does.
async fn own(address: SocketAddr, line: &str, body: &str) -> String {
    let host = format!("host: {address}");
    ask(address, line, &[&host, &format!("origin: http://{address}")], body).await
}

fn key(time_s: f64) -> Message {
    Message::Key(Key { time_s, ..Key::default() })
}

/// A listener over a socket.
struct Browser(BufReader<TcpStream>);

impl Browser {
    async fn open(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = format!("GET /messages HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        Self(BufReader::new(stream))
    }

    /// Returns the next message.
    async fn next(&mut self) -> Message {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).await.expect("it tells") > 0, "the server hung up");
            if let Some(json) = line.strip_prefix("data: ") {
                return serde_json::from_str(json).expect("a message");
            }
        }
    }
}

#[tokio::test]
async fn the_page_comes_with_its_headers_and_nothing_else_is_served() {
    let address = serve(Site::default()).await;
    let page = own(address, "GET /", "").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/html"), "{page}");
    for header in ["content-security-policy: default-src 'none'", "nosniff", "no-referrer"] {
        assert!(page.contains(header), "{header}: {page}");
    }
    for path in ["/nothing", "/../Cargo.toml", "/%2e%2e/Cargo.toml"] {
        assert!(own(address, &format!("GET {path}"), "").await.starts_with("HTTP/1.1 404"));
    }
    // The page puts recordings into it and saves it.
    assert!(own(address, "GET /standalone.html", "").await.contains("NCMESH_RECORDINGS"));
    assert!(own(address, "GET /console.json", "").await.ends_with(r#"{"kind":"nothing"}"#));
    assert!(own(address, "GET /messages", "").await.starts_with("HTTP/1.1 404"));
    assert!(own(address, "GET /v1/status", "").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn other_pages_and_other_names_are_refused() {
    let address = serve(Site::default()).await;
    let own_host = format!("host: {address}");
    let evil = ["host: evil.example", "host: evil.example:80", "x: y"];
    for host in evil {
        let answer = ask(address, "GET /console.json", &[host], "").await;
        assert!(!answer.starts_with("HTTP/1.1 200") && !answer.contains("kind"), "{answer}");
    }
    let foreign = [own_host.as_str(), "origin: http://evil.example"];
    for line in ["GET /console.json", "POST /demo/run"] {
        let answer = ask(address, line, &foreign, "{}").await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(!answer.contains("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn a_recording_is_offered_under_its_name_and_given_as_it_is() {
    let site = Site::default();
    let name = "<b>\"run\"</b>".to_owned();
    site.offer(Recording { name, bytes: b"not read by the server".as_slice().into() });
    let address = serve(site).await;
    let offered = own(address, "GET /console.json", "").await;
    let (_, json) = offered.split_once("\r\n\r\n").expect("a body");
    let offered: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(offered["runs"][0]["name"], "<b>\"run\"</b>");
    let url = offered["runs"][0]["url"].as_str().expect("an address").to_owned();
    let answer = own(address, &format!("GET /{url}"), "").await;
    assert!(answer.contains("application/gzip") && answer.ends_with("not read by the server"));
    assert!(own(address, "GET /recordings/1", "").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_hundred_consoles_listen_and_half_of_them_vanish() {
    let mut hub = Hub::new();
    hub.tell(&key(0.0)).expect("memory");
    let address = serve(Site::live(hub.clone())).await;
    let mut browsers = Vec::new();
    for _ in 0..100 {
        let mut browser = Browser::open(address).await;
        assert_eq!(browser.next().await, key(0.0));
        browsers.push(browser);
    }
    assert_eq!(hub.listeners(), 100);

    // The others still get each message, and the places of the others become free.
    browsers.truncate(50);
    let mut time_s = 0.0;
    while hub.listeners() > 50 {
        time_s += 1.0;
        hub.tell(&key(time_s)).expect("memory");
        for browser in &mut browsers {
            assert_eq!(browser.next().await, key(time_s));
        }
    }
}

#[tokio::test]
async fn a_browser_that_reads_nothing_costs_no_memory_and_goes_on_at_a_key() {
    let mut hub = Hub::new();
    hub.tell(&key(0.0)).expect("memory");
    let address = serve(Site::live(hub.clone())).await;
    let mut browser = Browser::open(address).await;
    assert_eq!(browser.next().await, key(0.0));

    // More than the sockets' buffers and the queue hold.
    let long = "x".repeat(2000);
    for n in 0..20_000 {
        let what = ncmesh_console::schema::EventKind::Hint { text: long.clone() };
        let event = ncmesh_console::schema::Event { time_s: f64::from(n), node: None, what };
        hub.tell(&Message::Event(event)).expect("memory");
        if n % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let tick = Message::Tick(Tick { time_s: 20_000.1, ..Tick::default() });
    hub.tell(&key(20_000.0)).expect("memory");
    hub.tell(&tick).expect("memory");
    let mut previous = browser.next().await;
    loop {
        let message = browser.next().await;
        if message == key(20_000.0) {
            break;
        }
        // Up to a gap they are in order.
        assert!(matches!((&previous, &message), (Message::Event(a), Message::Event(b))
            if (b.time_s - a.time_s - 1.0).abs() < 1e-9));
        previous = message;
    }
    assert_eq!(browser.next().await, tick);
}

#[tokio::test]
async fn demonstrations_run_one_at_a_time_and_wrong_requests_are_refused() {
    let run = |request: &DemoRequest| {
        if request.demonstration != "cross" {
            return Err(DemoError::Request(format!("no {:?}", request.demonstration)));
        }
        let one = |name: &str| Recording {
            name: name.to_owned(),
            bytes: format!("{name} {:?} {}", request.loss, request.seed).into(),
        };
        Ok([one("forward"), one("braid")])
    };
    let address = serve(Site::demo(Arc::new(run))).await;
    assert!(own(address, "GET /console.json", "").await.ends_with(r#"{"kind":"demo"}"#));
    for seed in 1..=9 {
        let body = format!(r#"{{"demonstration":"cross","loss":0.25,"seed":{seed}}}"#);
        let answer = own(address, "POST /demo/run", &body).await;
        let (_, json) = answer.split_once("\r\n\r\n").expect("a body");
        let runs: serde_json::Value = serde_json::from_str(json).expect(&answer);
        let url = runs["runs"][1]["url"].as_str().expect("an address");
        let recording = own(address, &format!("GET /{url}"), "").await;
        assert!(recording.ends_with(&format!("braid Some(0.25) {seed}")), "{recording}");
    }
    assert!(own(address, "GET /demo/recordings/0", "").await.starts_with("HTTP/1.1 404"));
    let long = format!("{{\"demonstration\":\"{}\"}}", "x".repeat(70_000));
    for (body, status) in [
        (r#"{"demonstration":"<img>","loss":null,"seed":1}"#, 400),
        (r#"{"demonstration":"cross","loss":null,"seed":-1}"#, 400),
        (r#"{"demonstration":"cross"}"#, 400),
        ("", 400),
        (long.as_str(), 413),
    ] {
        let answer = own(address, "POST /demo/run", body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{body:.60}: {answer}");
        assert!(!answer.contains("text/html"), "{answer}");
    }
}

#[tokio::test]
async fn commands_need_the_token() {
    let router = Router::new().route("/v1/transfers/{id}", delete(async || "cancelled"));
    let address = serve(Site::default().with_api(router, "s3cret")).await;
    // The page asks for the token only where there is something to command.
    let looking = serve(Site::live(Hub::new())).await;
    let live = serve(Site::live(Hub::new()).with_api(Router::new(), "s3cret")).await;
    for (address, commands) in [(looking, false), (live, true)] {
        let offered = own(address, "GET /console.json", "").await;
        let expected = format!(r#"{{"kind":"live","commands":{commands}}}"#);
        assert!(offered.ends_with(&expected), "{offered}");
    }

    let host = format!("host: {address}");
    let origin = format!("origin: http://{address}");
    let with = |token: &str| format!("authorization: Bearer {token}");
    for (token, status) in [("s3cret", 200), ("s3cre", 401), ("wrong!", 401)] {
        let headers = [host.as_str(), &origin, &with(token)];
        let answer = ask(address, "DELETE /v1/transfers/1", &headers, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let answer = ask(address, "DELETE /v1/transfers/1", &[&host, &origin], "").await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let evil = [host.as_str(), "origin: http://evil.example", &with("s3cret")];
    let answer = ask(address, "DELETE /v1/transfers/1", &evil, "").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn looking_needs_the_token_where_the_site_wants_it() {
    let pages = Router::new().route("/metrics", axum::routing::get(async || "numbers"));
    let site = Site::live(Hub::new()).with_pages(pages).for_readers_with("readers0");
    let address = serve(site.with_api(Router::new(), "s3cret")).await;
    let host = format!("host: {address}");
    let status = async |line: &str, header: &str| {
        let answer = ask(address, line, &[&host, header], "").await;
        answer[9..12].parse::<u16>().expect("a status")
    };
    let port = address.port();
    for path in ["/", "/console.json", "/metrics", "/recordings/0", "/?token=wrong", "/?token="] {
        for header in
            ["x: y", "authorization: Bearer wrong", &format!("cookie: ncmesh_{port}=wrong")]
        {
            assert_eq!(status(&format!("GET {path}"), header).await, 401, "{path} {header}");
        }
    }
    assert_eq!(status("GET /metrics?token=readers0", "x: y").await, 401, "only the page's address");
    let answer = ask(address, "GET /?token=readers0", &[&host], "").await;
    let cookie = format!("set-cookie: ncmesh_{port}=readers0; Path=/; HttpOnly; SameSite=Strict");
    assert!(answer.contains(&cookie) && answer.contains("location: /\r\n"), "{answer}");
    for header in [
        format!("cookie: other=1; ncmesh_{port}=readers0"),
        "authorization: Bearer readers0".into(),
        "authorization: Bearer s3cret".into(),
    ] {
        for path in ["/", "/console.json", "/metrics"] {
            assert_eq!(status(&format!("GET {path}"), &header).await, 200, "{path} {header}");
        }
    }
    // The page's own files say nothing of the mesh.
    assert_eq!(status("GET /app.js", "x: y").await, 200);
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let address = serve(Site::default()).await;
    let error = Server::bind(address).await.expect_err("it is in use");
    assert!(matches!(error, BindError::InUse(_)));
    assert!(error.to_string().starts_with(&format!("{address} is in use")), "{error}");
}
