//! A connection over a pipe with delay and losses.

use super::*;
use ncmesh_engine::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn behaviour(congestion: Congestion) -> Behaviour {
    Behaviour { congestion, window: 20_000, ack_delay: Duration::ZERO, packet: 1020, seed: 7 }
}

/// Carries a connection for a time over a pipe of 5 ms each way, which loses every so manieth data segment.
fn carried(mut connection: Connection, seconds: u64, lose_each: usize) -> Connection {
    let mut pipe: VecDeque<(Instant, End, Vec<u8>)> = VecDeque::new();
    let (mut now, mut count) = (Instant::default(), 0);
    while now < Instant::from_nanos(seconds * 1_000_000_000) {
        connection.poll(now);
        for (from, to) in [(End::Client, End::Server), (End::Server, End::Client)] {
            while let Some(packet) = connection.outgoing(from).pop_front() {
                connection.note_sent(from, &packet, now);
                count += usize::from(packet.len() > 500);
                if packet.len() < 500 || !count.is_multiple_of(lose_each) {
                    pipe.push_back((now + 5 * MS, to, packet));
                }
                connection.poll(now);
            }
        }
        let arrival = pipe.front().map(|(at, ..)| *at);
        let due = connection.due(now).filter(|due| *due > now);
        now = arrival.into_iter().chain(due).min().unwrap_or(now + MS).max(now);
        while let Some((_, end, packet)) = pipe.pop_front_if(|(at, ..)| *at <= now) {
            assert_eq!(connection.end_of(&packet), Some(end));
            connection.receive(end, packet, now);
        }
    }
    connection
}

#[test]
fn a_window_arrives_each_round_trip() {
    for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::None] {
        let connection = Connection::new(0, behaviour(congestion), None, Instant::default());
        let outcome = carried(connection, 20, usize::MAX).outcome(Instant::default());
        // 20,000 bytes each 10 ms.
        let rate = outcome.bytes as f64 * 8.0 / 20.0;
        assert!((13e6..16.1e6).contains(&rate), "{congestion:?}: {rate}");
        assert_eq!((outcome.retransmissions, outcome.loss), (0, Some(0.0)));
        assert_eq!((outcome.min_rtt_s, outcome.segment_bytes), (Some(0.01), 980));
    }
}

#[test]
fn what_is_lost_is_repeated_and_all_arrives() {
    let connection =
        Connection::new(300, behaviour(Congestion::Reno), Some(1_000_000), Instant::default());
    let connection = carried(connection, 60, 50);
    assert!(connection.is_finished() && connection.wrong == 0);
    let outcome = connection.outcome(Instant::default());
    assert_eq!(outcome.bytes, 1_000_000);
    assert!(outcome.retransmissions >= 20, "{outcome:?}");
    assert!((0.015..0.025).contains(&outcome.loss.unwrap()), "{outcome:?}");
    assert!((0.01..0.02).contains(&outcome.rtt_s.unwrap()), "{outcome:?}");
    let seconds = outcome.finished_s.unwrap();
    assert!((0.6..20.0).contains(&seconds), "{seconds}");
}

/// What an end would send, as long as it would, goes to the other at once.
fn exchange(connection: &mut Connection, now: Instant) {
    for _ in 0..100 {
        for (from, to) in [(End::Client, End::Server), (End::Server, End::Client)] {
            while let Some(packet) = connection.outgoing(from).pop_front() {
                connection.receive(to, packet, now);
            }
        }
        connection.poll(now);
    }
}

#[test]
fn a_repetition_is_not_forgotten_because_the_card_is_full() {
    let behaviour = Behaviour { window: 100_000, ..behaviour(Congestion::None) };
    let mut now = Instant::default();
    let mut connection = Connection::new(0, behaviour, Some(12 * 980), now);
    connection.poll(now);
    let syn = connection.outgoing(End::Client).pop_front().unwrap();
    connection.receive(End::Server, syn, now);
    let answer = connection.outgoing(End::Server).pop_front().unwrap();
    connection.receive(End::Client, answer, now);
    let mut data = Vec::new();
    while data.len() < 10 {
        let packet = connection.outgoing(End::Client).pop_front().unwrap();
        if packet.len() > 500 {
            data.push(packet);
        } else {
            connection.receive(End::Server, packet, now);
        }
        connection.poll(now);
    }
    // The first is lost; the client learns it while the last two wait in its card.
    data.drain(1..).for_each(|packet| connection.receive(End::Server, packet, now));
    assert_eq!(connection.outgoing(End::Client).len(), 2);
    let answers: Vec<_> = connection.outgoing(End::Server).drain(..).collect();
    assert!(answers.len() >= 3);
    answers.into_iter().for_each(|answer| connection.receive(End::Client, answer, now));
    exchange(&mut connection, now);
    while let Some(due) = connection.due(now).filter(|due| *due > now) {
        now = due;
        exchange(&mut connection, now);
    }
    assert!(connection.is_finished(), "{:?}", connection.outcome(Instant::default()));
}

#[test]
fn packets_of_other_connections_are_none_of_its() {
    let mut one = Connection::new(1, behaviour(Congestion::Reno), None, Instant::default());
    let other = Connection::new(2, behaviour(Congestion::Reno), None, Instant::default());
    one.poll(Instant::default());
    let first = one.outgoing(End::Client).pop_front().unwrap();
    assert_eq!((one.end_of(&first), other.end_of(&first)), (Some(End::Server), None));
    assert_eq!((one.end_of(&first[..30]), one.end_of(b"")), (None, None));
}
