//! The channel emulator over loopback. Tests wait for events; the clock matters only when one
//! fails.

#![allow(clippy::unwrap_used)] // Tests may.

use std::time::Duration;

use ncmesh_medium::{LossMatrix, MediumConfig, RadioId};
use ncmesh_node::etherd::client::{EtherClient, EtherClientError, EtherEvent};
use ncmesh_node::etherd::datagram::{Access, Datagram, Outcome, Token};
use ncmesh_node::etherd::{EtherConfig, EtherControl, EtherError, EtherStatistics, Etherd};
use tokio::task::JoinHandle;

const TOKEN: Token = Token([7; 16]);

/// Running emulator.
struct Lab {
    addr: std::net::SocketAddr,
    control: EtherControl,
    task: JoinHandle<Result<EtherStatistics, EtherError>>,
}

impl Lab {
    /// Starts `n` radios that hear each other without loss, 802.11b at 11 Mbit/s. Lag does not end
    /// the run, so that slow machines pass the tests, unless `change` sets a limit.
    fn start(n: usize, change: impl FnOnce(&mut EtherConfig)) -> Self {
        let rows: Vec<_> = (0..n).map(|_| vec![0.0; n]).collect();
        let medium = MediumConfig::dot11b(LossMatrix::from_rows(&rows).unwrap(), 11_000_000);
        let mut config = EtherConfig::new(TOKEN);
        config.grant_limit = Duration::from_secs(10);
        config.lag_limit = Duration::from_secs(60);
        change(&mut config);
        let etherd = Etherd::bind(medium, config).unwrap();
        let addr = etherd.addr();
        let control = etherd.control();
        Self { addr, control, task: tokio::spawn(etherd.run(std::future::pending())) }
    }

    async fn attach(&self, radio: u32) -> EtherClient {
        EtherClient::attach(self.addr, TOKEN, radio).await.unwrap()
    }

    async fn stop(self) -> EtherStatistics {
        self.control.stop().await;
        self.task.await.unwrap().unwrap()
    }
}

/// Fails a test that would hang.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("must not hang")
}

fn received(from: u32, bytes: &[u8]) -> EtherEvent {
    EtherEvent::Received { from, bytes: bytes.to_vec() }
}

#[tokio::test]
async fn a_frame_is_pulled_heard_and_reported() {
    soon(async {
        let lab = Lab::start(3, |_| {});
        let mut a = lab.attach(0).await;
        let mut b = lab.attach(1).await;
        let mut c = lab.attach(2).await;
        assert_eq!((a.radio(), a.radios()), (0, 3));
        a.request().await.unwrap();
        assert_eq!(a.event().await.unwrap(), EtherEvent::Grant);
        a.answer(Access::Broadcast, b"hello").await.unwrap();
        assert_eq!(b.event().await.unwrap(), received(0, b"hello"));
        assert_eq!(c.event().await.unwrap(), received(0, b"hello"));
        // 192 us of preamble and 41 bytes at 11 Mbit/s, which are rounded up to 30 us.
        let report =
            EtherEvent::Report { outcome: Outcome::Sent, attempts: 1, airtime_ns: 222_000 };
        assert_eq!(a.event().await.unwrap(), report);

        b.request().await.unwrap();
        assert_eq!(b.event().await.unwrap(), EtherEvent::Grant);
        b.answer(Access::Unicast(0), b"you").await.unwrap();
        assert_eq!(a.event().await.unwrap(), received(1, b"you"));
        let EtherEvent::Report { outcome: Outcome::Acked, attempts: 1, .. } =
            b.event().await.unwrap()
        else {
            panic!("not acknowledged");
        };
        assert!(matches!(a.decline().await, Err(EtherClientError::NoGrant)));
        let statistics = lab.stop().await;
        assert_eq!(statistics.faults, Default::default());
        assert_eq!(statistics.medium.radios[2].deliveries, 1);
    })
    .await;
}

#[tokio::test]
async fn a_saturated_sender_gets_what_the_medium_gives() {
    soon(async {
        let lab = Lab::start(2, |_| {});
        let mut a = lab.attach(0).await;
        let mut b = lab.attach(1).await;
        let sender = tokio::spawn(async move {
            a.request().await.unwrap();
            loop {
                if a.event().await.unwrap() == EtherEvent::Grant {
                    // The next request comes first, so that it takes part in the next backoff.
                    a.request().await.unwrap();
                    a.answer(Access::Broadcast, &[0; 1_500]).await.unwrap();
                }
            }
        });
        b.event().await.unwrap();
        let first = lab.control.statistics().await.unwrap();
        for _ in 0..400 {
            assert!(matches!(b.event().await.unwrap(), EtherEvent::Received { from: 0, .. }));
        }
        let last = lab.control.statistics().await.unwrap();
        sender.abort();
        let frames = (last.medium.radios[1].deliveries - first.medium.radios[1].deliveries) as f64;
        let mean_ns = (last.medium_ns - first.medium_ns) as f64 / frames;
        // 192 + 1118 us on the air, DIFS, and 15.5 slots of 20 us. The mean of 400 backoffs has a
        // standard deviation of about 10 us.
        assert!((mean_ns / 1_670_000.0 - 1.0).abs() < 0.03, "{mean_ns} ns a frame");
        lab.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_request_during_a_grant_does_not_collide_with_the_granted_frame() {
    soon(async {
        let lab = Lab::start(2, |_| {});
        let mut a = lab.attach(0).await;
        let mut b = lab.attach(1).await;
        for _ in 0..20 {
            a.request().await.unwrap();
            while a.event().await.unwrap() != EtherEvent::Grant {}

            // The channel was free for long. The counters are answered after the request was read.
            b.request().await.unwrap();
            lab.control.statistics().await.unwrap();
            a.answer(Access::Broadcast, &[0; 1_500]).await.unwrap();

            while b.event().await.unwrap() != EtherEvent::Grant {}
            b.answer(Access::Broadcast, b"next").await.unwrap();
            while !matches!(a.event().await.unwrap(), EtherEvent::Received { .. }) {}
        }
        let statistics = lab.stop().await;
        assert_eq!(statistics.medium.radios[0].collisions, 0);
        assert_eq!(statistics.medium.radios[1].deliveries, 20);
    })
    .await;
}

#[tokio::test]
async fn a_new_process_takes_the_radio_and_the_old_one_learns_of_it() {
    soon(async {
        let lab = Lab::start(2, |_| {});
        let mut old = lab.attach(0).await;
        let mut b = lab.attach(1).await;
        old.request().await.unwrap();
        assert_eq!(old.event().await.unwrap(), EtherEvent::Grant);
        // The medium waits for the old process's answer; its grant is void when it is replaced.
        let mut new = lab.attach(0).await;
        assert!(matches!(old.event().await, Err(EtherClientError::Detached { radio: 0, .. })));
        // It is told again when it asks again, since the datagram may have been lost.
        old.request().await.unwrap();
        assert!(matches!(old.event().await, Err(EtherClientError::Detached { radio: 0, .. })));
        new.request().await.unwrap();
        assert_eq!(new.event().await.unwrap(), EtherEvent::Grant);
        old.answer(Access::Broadcast, b"late").await.unwrap();
        new.answer(Access::Broadcast, b"new").await.unwrap();
        assert_eq!(b.event().await.unwrap(), received(0, b"new"));
        assert_eq!(lab.stop().await.faults.strangers, 2);
    })
    .await;
}

#[tokio::test]
async fn a_process_that_falls_silent_is_given_up_and_the_rest_goes_on() {
    soon(async {
        let lab = Lab::start(3, |config| config.grant_limit = Duration::from_millis(5));
        let mut dead = lab.attach(0).await;
        let mut a = lab.attach(1).await;
        let mut b = lab.attach(2).await;
        for _ in 0..3 {
            dead.request().await.unwrap();
            assert_eq!(dead.event().await.unwrap(), EtherEvent::Grant);
        }
        assert!(matches!(dead.event().await, Err(EtherClientError::Detached { .. })));
        a.request().await.unwrap();
        loop {
            tokio::select! {
                event = b.event() => break assert_eq!(event.unwrap(), received(1, b"on")),
                // On a slow machine this process may be late too; it continues until it hears a
                // frame.
                event = a.event() => if event.unwrap() == EtherEvent::Grant {
                    a.request().await.unwrap();
                    a.answer(Access::Broadcast, b"on").await.unwrap();
                },
            }
        }
        let faults = lab.stop().await.faults;
        assert!(faults.given_up == 1 && faults.expired_grants >= 3, "{faults:?}");
    })
    .await;
}

#[tokio::test]
async fn garbage_and_strangers_are_counted_and_harm_nothing() {
    soon(async {
        let lab = Lab::start(2, |_| {});
        let stranger = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut request = Vec::new();
        Datagram::Request.write(&mut request);
        for datagram in [&b""[..], b"x", &[0xff; 2_000], b"NE\x01\x05short", &request] {
            stranger.send_to(datagram, lab.addr).await.unwrap();
        }
        assert!(matches!(
            EtherClient::attach(lab.addr, Token([8; 16]), 0).await,
            Err(EtherClientError::WrongToken { .. })
        ));
        assert!(matches!(
            EtherClient::attach(lab.addr, TOKEN, 2).await,
            Err(EtherClientError::NoSuchRadio { radio: 2, .. })
        ));
        let mut a = lab.attach(0).await;
        a.request().await.unwrap();
        assert_eq!(a.event().await.unwrap(), EtherEvent::Grant);
        assert!(matches!(
            a.answer(Access::Broadcast, &[0; 3_000]).await,
            Err(EtherClientError::TooLong { .. })
        ));
        a.answer(Access::Unicast(9), b"nobody").await.unwrap();
        let report = EtherEvent::Report { outcome: Outcome::Failed, attempts: 0, airtime_ns: 0 };
        assert_eq!(a.event().await.unwrap(), report);
        a.request().await.unwrap();
        assert_eq!(a.event().await.unwrap(), EtherEvent::Grant);
        let lab_addr = lab.addr;
        let faults = lab.stop().await.faults;
        assert_eq!(
            (faults.garbled, faults.strangers, faults.refused, faults.bad_frames),
            (4, 1, 2, 1)
        );
        assert!(matches!(a.event().await, Err(EtherClientError::Detached { .. })));
        assert!(matches!(
            EtherClient::attach(lab_addr, TOKEN, 0).await,
            Err(EtherClientError::Socket { .. })
        ));
    })
    .await;
}

#[tokio::test]
async fn links_and_radios_change_under_way() {
    soon(async {
        let lab = Lab::start(2, |_| {});
        let mut a = lab.attach(0).await;
        let mut b = lab.attach(1).await;
        lab.control.set_loss(RadioId(0), RadioId(1), 1.0).await.unwrap();
        assert!(lab.control.set_loss(RadioId(0), RadioId(5), 0.5).await.is_err());
        a.request().await.unwrap();
        assert_eq!(a.event().await.unwrap(), EtherEvent::Grant);
        a.answer(Access::Broadcast, b"lost").await.unwrap();
        assert!(matches!(a.event().await.unwrap(), EtherEvent::Report { .. }));
        lab.control.set_loss(RadioId(0), RadioId(1), 0.0).await.unwrap();
        lab.control.set_up(RadioId(0), false).await.unwrap();
        a.request().await.unwrap();
        lab.control.set_up(RadioId(0), true).await.unwrap();
        // The request made while it was off is lost; the client repeats it by itself.
        assert_eq!(a.event().await.unwrap(), EtherEvent::Grant);
        a.answer(Access::Broadcast, b"heard").await.unwrap();
        assert_eq!(b.event().await.unwrap(), received(0, b"heard"));
        lab.stop().await;
    })
    .await;
}

#[tokio::test]
async fn lag_that_lasts_ends_the_run() {
    soon(async {
        let lab = Lab::start(2, |config| {
            config.lag_limit = Duration::from_millis(1);
            config.lag_timeout = Duration::from_millis(20);
            config.grant_limit = Duration::from_millis(100);
        });
        let mut a = lab.attach(0).await;
        a.request().await.unwrap();
        assert_eq!(a.event().await.unwrap(), EtherEvent::Grant);
        let error = lab.task.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("lower the bit rate"), "{error}");
    })
    .await;
}
