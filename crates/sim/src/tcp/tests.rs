//! A connection over a pipe with a delay, a rate and losses.

use super::*;

const MS: Duration = Duration::from_millis(1);
const ADDRESSES: [Ipv4Address; 2] = [Ipv4Address::new(10, 0, 0, 2), Ipv4Address::new(10, 0, 0, 3)];

fn behaviour(congestion: Congestion) -> Behaviour {
    let ack_delay = Some(Duration::ZERO);
    Behaviour { congestion, window: 20_000, ack_delay, min_rto: None, packet: 1020, seed: 7 }
}

fn connection(behaviour: Behaviour, size: Option<u64>) -> Connection {
    Connection::new(ADDRESSES, behaviour, size)
}

/// A pipe of 5 ms each way.
struct Pipe {
    /// Whether to lose a data packet, by its number.
    loses: fn(usize) -> bool,
    /// Time that a data packet takes to enter, and the most packets that wait for that.
    service: Duration,
    queue: usize,
}

const WIDE: Pipe = Pipe { loses: |_| false, service: Duration::ZERO, queue: usize::MAX };

/// Carries a connection for `seconds`.
fn carry(connection: &mut Connection, seconds: u64, pipe: &Pipe) {
    let mut way: VecDeque<(Instant, End, Vec<u8>)> = VecDeque::new();
    let mut now = Instant::default();
    let mut count = 0;
    let mut free_at = Instant::default();
    while now < Instant::from_nanos(seconds * 1_000_000_000) {
        connection.poll(now);
        while let Some(packet) = connection.outgoing(End::Client).pop_front() {
            connection.note_sent(End::Client, &packet, now);
            let is_data = packet.len() > 500;
            count += usize::from(is_data);
            let waiting = way
                .iter()
                .filter(|(at, end, _)| *end == End::Server && *at > now + pipe.service + 5 * MS);
            if is_data && ((pipe.loses)(count) || waiting.count() >= pipe.queue) {
                continue;
            }
            free_at = free_at.max(now) + pipe.service;
            way.push_back((free_at + 5 * MS, End::Server, packet));
        }
        while let Some(packet) = connection.outgoing(End::Server).pop_front() {
            way.push_back((now + 5 * MS, End::Client, packet));
        }
        way.make_contiguous().sort_by_key(|(at, ..)| *at);
        let arrival = way.front().map(|(at, ..)| *at);
        let due = connection.due().filter(|due| *due > now);
        now = arrival.into_iter().chain(due).min().unwrap_or(now + MS).max(now);
        while way.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, end, packet) = way.pop_front().unwrap();
            assert_eq!(connection.end_of(&packet), Some(end));
            connection.receive(end, &packet, now);
        }
    }
}

#[test]
fn a_window_arrives_each_round_trip() {
    for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::None] {
        let mut connection = connection(behaviour(congestion), None);
        carry(&mut connection, 20, &WIDE);
        let outcome = connection.outcome(Instant::default());
        // 20,000 bytes each 10 ms.
        let rate = outcome.bytes as f64 * 8.0 / 20.0;
        assert!((13e6..16.1e6).contains(&rate), "{congestion:?}: {rate}");
        assert_eq!((outcome.retransmissions, outcome.loss), (0, Some(0.0)));
        assert_eq!((outcome.min_rtt_s, outcome.segment_bytes), (Some(0.01), 968));
    }
}

#[test]
fn what_is_lost_is_repeated_once_and_all_arrives() {
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        let mut connection = connection(behaviour(congestion), Some(1_000_000));
        let pipe = Pipe { loses: |n| n.is_multiple_of(50), ..WIDE };
        carry(&mut connection, 60, &pipe);
        assert!(connection.is_finished() && connection.wrong() == 0);
        let outcome = connection.outcome(Instant::default());
        assert_eq!(outcome.bytes, 1_000_000);
        // 1,034 segments, of which 21 are lost.
        assert!((21..=24).contains(&outcome.retransmissions), "{outcome:?}");
        assert!((0.015..0.025).contains(&outcome.loss.unwrap()), "{outcome:?}");
        assert!((0.01..0.02).contains(&outcome.rtt_s.unwrap()), "{outcome:?}");
        // No loss costs a retransmission timeout.
        let seconds = outcome.finished_s.unwrap();
        assert!((0.6..2.0).contains(&seconds), "{seconds}");
    }
}

#[test]
fn many_losses_in_one_window_are_recovered_from_in_a_few_round_trips() {
    let wide = Behaviour { window: 100_000, ..behaviour(Congestion::Cubic) };
    let mut connection = connection(wide, Some(500_000));
    let pipe = Pipe { loses: |n| (200..260).contains(&n) && !n.is_multiple_of(3), ..WIDE };
    carry(&mut connection, 20, &pipe);
    let outcome = connection.outcome(Instant::default());
    assert!(connection.is_finished() && outcome.finished_s.unwrap() < 1.5, "{outcome:?}");
    assert!(outcome.retransmissions < 60, "{outcome:?}");
}

#[test]
fn a_lost_tail_and_a_dead_path_are_survived() {
    // The last segment alone is lost: a probe brings it back before the retransmission timeout.
    let mut short = connection(behaviour(Congestion::Cubic), Some(10 * 968));
    carry(&mut short, 5, &Pipe { loses: |n| n == 10, ..WIDE });
    let seconds = short.outcome(Instant::default()).finished_s.unwrap();
    assert!(seconds < 0.3, "{seconds}");

    // Nothing passes for a while: timeouts back off, and what is left arrives afterwards.
    let mut dead = connection(behaviour(Congestion::Cubic), Some(100 * 968));
    carry(&mut dead, 60, &Pipe { loses: |n| (30..52).contains(&n), ..WIDE });
    assert!(dead.is_finished() && dead.wrong() == 0);
}

#[test]
fn a_least_timeout_decides_when_a_dead_path_is_tried_again() {
    // All of a window is lost once, so only the timeout can bring it back.
    let pipe = Pipe { loses: |n| (30..52).contains(&n), ..WIDE };
    let seconds = [0.05, 0.3, 1.0].map(|least_s| {
        let min_rto = Some(Duration::from_secs_f64(least_s));
        let dying = Behaviour { min_rto, ..behaviour(Congestion::Reno) };
        let mut one = connection(dying, Some(100 * 968));
        carry(&mut one, 20, &pipe);
        one.outcome(Instant::default()).finished_s.unwrap()
    });
    // The first timeout and its double each time.
    let more = [seconds[1] - seconds[0], seconds[2] - seconds[1]];
    assert!((more[0] - 3.0 * 0.25).abs() < 0.05 && (more[1] - 3.0 * 0.7).abs() < 0.05, "{more:?}");
}

#[test]
fn a_bottleneck_with_a_queue_is_kept_busy() {
    // 8 ms a segment: 125 a second; a queue of 64.
    let pipe = Pipe { service: 8 * MS, queue: 64, ..WIDE };
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        let wide = Behaviour { window: 4 << 20, ack_delay: None, ..behaviour(congestion) };
        let mut connection = connection(wide, None);
        carry(&mut connection, 60, &pipe);
        let outcome = connection.outcome(Instant::default());
        let share = outcome.bytes as f64 / (60.0 * 125.0 * 968.0);
        assert!((0.97..=1.0).contains(&share), "{congestion:?}: {share} {outcome:?}");
        assert!(outcome.loss.unwrap() < 0.02, "{congestion:?}: {outcome:?}");
        assert!((0.1..0.6).contains(&outcome.rtt_s.unwrap()), "{congestion:?}: {outcome:?}");
    }
}

/// Packets of the server for `count` data packets that arrive in order, 1 ms apart.
fn acknowledgments(ack_delay: Option<Duration>, count: usize) -> usize {
    let behaviour = Behaviour { ack_delay, ..behaviour(Congestion::None) };
    let mut one = connection(behaviour, None);
    let mut now = Instant::default();
    let mut arrived = 0;
    let mut answers = 0;
    while arrived < count {
        now = now + MS;
        one.poll(now);
        if let Some(packet) = one.outgoing(End::Client).pop_front() {
            arrived += usize::from(packet.len() > 500);
            one.receive(End::Server, &packet, now);
        }
        if let Some(packet) = one.outgoing(End::Server).pop_front() {
            answers += usize::from(arrived > 0);
            one.receive(End::Client, &packet, now);
        }
    }
    answers
}

#[test]
fn acknowledgments_wait_for_a_second_segment_after_the_first_ones() {
    assert_eq!(acknowledgments(Some(Duration::ZERO), 100), 100);
    // 16 at once, then one for two.
    assert_eq!(acknowledgments(None, 100), 16 + 42);
}

#[test]
fn packets_of_other_connections_are_none_of_its() {
    let mut one = connection(behaviour(Congestion::Reno), None);
    let other = [10, 11].map(|last| Ipv4Address::new(10, 0, 0, last));
    let other = Connection::new(other, behaviour(Congestion::Reno), None);
    one.poll(Instant::default());
    let first = one.outgoing(End::Client).pop_front().unwrap();
    assert_eq!((one.end_of(&first), other.end_of(&first)), (Some(End::Server), None));
    assert_eq!((one.end_of(&first[..30]), one.end_of(b"")), (None, None));
}
