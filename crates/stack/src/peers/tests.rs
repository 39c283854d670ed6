//! Starts prove themselves, and recordings prove nothing.

use super::*;

const ME: NodeId = NodeId(1);
const PEER: NodeId = NodeId(2);
const OTHER: NodeId = NodeId(3);
/// Two starts of the peer.
const FIRST: Salt = Salt([21; 16]);
const SECOND: Salt = Salt([22; 16]);

fn at(s: u64) -> Instant {
    Instant::from_nanos(s * 1_000_000_000)
}

fn salt(start: u8) -> Salt {
    Salt([start; 16])
}

/// A node that has sent ten frames.
fn peers() -> Peers {
    let mut peers = Peers::new(ME, salt(1));
    peers.note_sent(salt(1), 10);
    peers
}

fn header(sender: NodeId, salt: Salt, counter: u32) -> Header {
    Header { version: 2, sender, salt, counter }
}

/// Returns an echo of a frame of the node under test, in its start `salt`.
fn echo(salt: Salt, counter: u32) -> Proofs {
    let echoes = vec![Heard { node: ME, start: salt.start(), counter }];
    Proofs { echoes, ..Proofs::default() }
}

impl Peers {
    pub(crate) fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    /// Hears a frame. Returns whether it is of a current start.
    fn hear(&mut self, header: &Header, now: Instant) -> bool {
        assert!(self.is_new(header, now), "{header:?} was heard before");
        self.record(header, &Cipher::Null, now) != Trust::Unproven
    }

    /// Hears a hello with these proofs. Returns whether its start is current.
    fn hear_hello(&mut self, header: &Header, proofs: &Proofs, now: Instant) -> bool {
        self.hear(header, now);
        self.handle_proofs(header, proofs, now)
    }

    fn has_double(&self, node: NodeId, now: Instant) -> bool {
        self.duplicates(now).any(|double| double == node)
    }
}

#[test]
fn a_start_is_current_once_it_names_a_frame_of_ours() {
    let mut p = peers();
    assert!(!p.hear(&header(PEER, FIRST, 1), at(0)));
    // Another start of ours, a frame that was not sent yet, another node.
    for wrong in [echo(salt(9), 3), echo(salt(1), 11)] {
        let counter = p.senders[&PEER].starts[0].window.highest() + 1;
        assert!(!p.hear_hello(&header(PEER, FIRST, counter), &wrong, at(0)));
    }
    let to_other = Heard { node: OTHER, start: salt(1).start(), counter: 3 };
    let to_other = Proofs { echoes: vec![to_other], ..Proofs::default() };
    assert!(!p.hear_hello(&header(PEER, FIRST, 4), &to_other, at(0)));
    assert!(p.hear_hello(&header(PEER, FIRST, 5), &echo(salt(1), 3), at(0)));
    assert!(p.hear(&header(PEER, FIRST, 6), at(1)));
}

#[test]
fn nothing_from_before_the_proof_is_heard_again() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, 500), &echo(salt(1), 3), at(0)));
    assert!(!p.is_new(&header(PEER, FIRST, 499), at(0)));
    assert!(!p.is_new(&header(PEER, FIRST, 1), at(0)));
    assert!(p.hear(&header(PEER, FIRST, 502), at(0)));
    let late = p.record(&header(PEER, FIRST, 501), &Cipher::Null, at(0));
    assert_eq!(late, Trust::Current { is_late: true });
}

#[test]
fn a_recorded_start_does_not_take_the_place_of_its_successor() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, 1), &echo(salt(1), 3), at(0)));
    // The peer restarts.
    assert!(!p.hear(&header(PEER, SECOND, 1), at(1)));
    p.note_sent(salt(1), 20);
    assert!(p.hear_hello(&header(PEER, SECOND, 2), &echo(salt(1), 15), at(2)));
    // Its first start said this hello before, and it was lost until now.
    assert!(!p.hear_hello(&header(PEER, FIRST, 9), &echo(salt(1), 20), at(3)));
    assert!(p.hear(&header(PEER, SECOND, 3), at(3)));
    assert!(!p.has_double(PEER, at(3)));
    // Even if its first start is forgotten meanwhile.
    for start in 30..40 {
        assert!(!p.hear(&header(PEER, salt(start), 1), at(4)));
    }
    assert!(!p.hear_hello(&header(PEER, FIRST, 8), &echo(salt(1), 20), at(5)));
    assert!(p.hear(&header(PEER, SECOND, 4), at(5)));
}

#[test]
fn two_nodes_with_one_id_are_noticed_and_the_one_that_is_there_stays() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, 1), &echo(salt(1), 3), at(0)));
    p.note_sent(salt(1), 20);
    assert!(p.hear_hello(&header(PEER, SECOND, 1), &echo(salt(1), 12), at(1)));
    assert!(!p.has_double(PEER, at(1)));
    p.note_sent(salt(1), 30);
    // The first start still answers, so it still runs.
    for i in 0..5 {
        let echo = echo(salt(1), 25);
        let now = at(2 + u64::from(i));
        assert!(!p.hear_hello(&header(PEER, FIRST, 2 + i), &echo, now));
        assert!(p.hear(&header(PEER, SECOND, 2 + i), now));
        assert!(p.has_double(PEER, now));
    }
    // When the second one is gone, the first one has its place again.
    assert!(p.hear_hello(&header(PEER, FIRST, 20), &echo(salt(1), 25), at(20)));
    assert!(p.has_double(PEER, at(20)) && !p.has_double(PEER, at(600)));
}

#[test]
fn a_second_node_with_our_id_is_noticed_only_if_it_is_there() {
    let mut p = peers();
    assert!(!p.hear_hello(&header(ME, FIRST, 1), &echo(salt(9), 1), at(0)));
    p.note_double(at(0));
    let mut q = peers();
    assert!(q.hear_hello(&header(ME, FIRST, 1), &echo(salt(1), 1), at(0)));
    q.note_double(at(0));
    assert!(q.has_double(ME, at(0)));
}

#[test]
fn a_start_whose_counters_are_used_up_goes_on_in_the_next() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, u32::MAX), &echo(salt(1), 3), at(0)));
    let next = Cipher::Null.next_salt(PEER, FIRST);
    assert!(p.hear(&header(PEER, next, 1), at(1)));
    assert!(p.hear(&header(PEER, next, 2), at(1)));
    // Our own counters are used up: echoes of the next start count from its first frame.
    p.note_sent(salt(1), u32::MAX);
    p.note_sent(salt(2), 1);
    assert!(p.hear_hello(&header(OTHER, FIRST, 1), &echo(salt(2), 1), at(2)));
}

#[test]
fn a_neighbour_vouches_for_one_that_cannot_hear_us() {
    let vouch = |counter| {
        let heard = Heard { node: OTHER, start: FIRST.start(), counter };
        Proofs { vouches: vec![heard], ..echo(salt(1), 5) }
    };
    let mut p = peers();
    assert!(!p.hear(&header(OTHER, FIRST, 7), at(0)));
    // One that has not proved itself, and one whose hello may be a recording.
    let recorded = Proofs { echoes: Vec::new(), ..vouch(8) };
    assert!(!p.hear_hello(&header(PEER, FIRST, 1), &recorded, at(0)));
    assert!(p.hear_hello(&header(PEER, FIRST, 2), &echo(salt(1), 5), at(0)));
    assert!(p.hear_hello(&header(PEER, FIRST, 3), &recorded, at(0)));
    assert!(!p.hear(&header(OTHER, FIRST, 8), at(0)));
    assert!(p.hear_hello(&header(PEER, FIRST, 4), &vouch(9), at(0)));
    assert!(!p.is_new(&header(OTHER, FIRST, 9), at(0)));
    assert!(p.hear(&header(OTHER, FIRST, 10), at(1)));
}

#[test]
fn a_node_asks_for_proofs_and_gives_them() {
    let mut p = peers();
    let asks = Proofs { asked: vec![ME], ..Proofs::default() };
    p.hear_hello(&header(PEER, FIRST, 7), &Proofs::default(), at(0));
    assert!(p.take_urgency() && !p.take_urgency());
    let expected = Heard { node: PEER, start: FIRST.start(), counter: 7 };
    // Both are repeated for a while, and one that does not answer is doubted.
    for i in 0..REPEATS + 2 {
        let proofs = p.proofs(1000);
        let asked = i < ASK_ITSELF;
        let doubted = (ASK_ITSELF..REPEATS).contains(&i);
        assert_eq!((!proofs.asked.is_empty(), !proofs.doubted.is_empty()), (asked, doubted));
        assert_eq!(proofs.echoes.first(), (i < REPEATS).then_some(&expected));
    }
    p.hear_hello(&header(PEER, FIRST, 8), &asks, at(0));
    assert!(p.take_urgency() && !p.proofs(1000).echoes.is_empty());
    // A hello that does not ask has its echo.
    p.hear_hello(&header(PEER, FIRST, 9), &echo(salt(1), 5), at(0));
    assert!(!p.take_urgency());
    assert_eq!(p.proofs(1000), Proofs::default());
}

#[test]
fn who_doubts_a_neighbour_of_ours_gets_our_word_and_an_echo_with_it() {
    let mut p = peers();
    p.hear_hello(&header(OTHER, FIRST, 1), &echo(salt(1), 5), at(0));
    p.hear_hello(&header(PEER, FIRST, 14), &echo(salt(1), 5), at(0));
    p.hear_hello(&header(PEER, FIRST, 15), &Proofs::default(), at(0));
    let doubts = Proofs { doubted: vec![OTHER], ..Proofs::default() };
    p.hear_hello(&header(PEER, FIRST, 16), &doubts, at(1));
    let vouch = Heard { node: OTHER, start: FIRST.start(), counter: 1 };
    let proofs = p.proofs(1000);
    assert_eq!(proofs.vouches, [vouch]);
    assert!(proofs.echoes.iter().any(|echo| echo.node == PEER));
    // Not for one that has been silent.
    p.hear_hello(&header(PEER, FIRST, 17), &doubts, at(20));
    assert_eq!(p.proofs(1000).vouches, []);
}

#[test]
fn a_start_that_was_silent_for_long_has_to_prove_itself_again() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, 1), &echo(salt(1), 3), at(0)));
    assert!(p.hear(&header(PEER, FIRST, 2), at(59)));
    assert!(!p.hear(&header(PEER, FIRST, 3), at(120)));
    assert!(!p.hear_hello(&header(PEER, FIRST, 4), &echo(salt(1), 10), at(120)));
    p.note_sent(salt(1), 11);
    assert!(p.hear_hello(&header(PEER, FIRST, 5), &echo(salt(1), 11), at(121)));
}

#[test]
fn tables_and_lists_have_bounds() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, 1), &echo(salt(1), 3), at(0)));
    for node in 0..5000 {
        for start in 0..5 {
            p.hear(&header(NodeId(node + 10), salt(start), 1), at(1));
        }
    }
    assert_eq!(p.senders.len(), MAX_SENDERS);
    assert!(p.senders.values().all(|sender| sender.starts.len() <= MAX_STARTS));
    assert!(p.is_current(&header(PEER, FIRST, 1)), "one that has proved itself stays");
    for room in [0, 2, 20, 100, 1000] {
        let proofs = p.proofs(room);
        let mut out = Vec::new();
        ncmesh_wire::Record::put(&proofs, &mut ncmesh_wire::Writer::new(&mut out));
        assert!(out.len() <= room.max(LEAST_LEN), "{} bytes in {room}", out.len());
        assert!(proofs.echoes.len() <= MAX_LISTED && proofs.asked.len() <= MAX_LISTED);
    }
}

#[test]
fn a_forged_frame_with_a_high_counter_shuts_nobody_out() {
    for forged in [u32::MAX, u32::MAX - 1, 1 << 31, 70_000] {
        let mut p = peers();
        assert!(p.hear_hello(&header(PEER, FIRST, 5), &echo(salt(1), 3), at(0)));
        assert!(!p.is_new(&header(PEER, FIRST, forged), at(1)) || forged < 1 << 17);
        // Nor does one that comes before the peer is heard, or before it has proved itself.
        assert!(!p.hear(&header(OTHER, FIRST, forged), at(1)));
        for (second, counter) in [(3, 7), (4, 8)] {
            assert!(p.hear(&header(PEER, FIRST, counter), at(second)));
            let hello = header(OTHER, FIRST, counter);
            assert!(p.hear_hello(&hello, &echo(salt(1), 5), at(second)), "{forged}");
        }
    }
}

#[test]
fn a_start_follows_only_one_that_can_have_run_out_of_counters() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, 5), &echo(salt(1), 3), at(0)));
    let next = Cipher::Null.next_salt(PEER, FIRST);
    assert!(!p.hear(&header(PEER, next, 1), at(1)));
    assert!(p.hear(&header(PEER, FIRST, 6), at(1)));
    assert!(!p.has_double(PEER, at(1)));
}

#[test]
fn a_node_learns_from_a_hearer_that_somebody_writes_its_frames() {
    // The hearer has taken a forged frame, then one of the node itself, and says so.
    let mut hearer = peers();
    assert!(hearer.hear_hello(&header(PEER, FIRST, 5), &echo(salt(1), 3), at(0)));
    while !hearer.proofs(1000).echoes.is_empty() {}
    assert!(hearer.hear(&header(PEER, FIRST, 5000), at(1)));
    assert!(hearer.proofs(1000).echoes.is_empty());
    assert!(hearer.hear_hello(&header(PEER, FIRST, 6), &Proofs::default(), at(2)));
    let echoes = hearer.proofs(1000).echoes;
    assert_eq!(echoes, [Heard { node: PEER, start: FIRST.start(), counter: 5000 }]);

    // An echo of what it has sent, of another start, or of another node says nothing.
    let mut node = Peers::new(PEER, FIRST);
    node.note_sent(FIRST, 6);
    for (number, (of, start, counter)) in
        [(PEER, FIRST, 6), (PEER, SECOND, 7), (OTHER, FIRST, 7), (PEER, FIRST, 7)]
            .into_iter()
            .enumerate()
    {
        let echoes = vec![Heard { node: of, start: start.start(), counter }];
        let proofs = Proofs { echoes, ..Proofs::default() };
        node.hear_hello(&header(ME, salt(1), number as u32 + 1), &proofs, at(3));
        let is_forged = number == 3;
        assert_eq!(node.is_forged(), is_forged);
    }
    node.begin_start(SECOND);
    assert!(!node.is_forged());
}

#[test]
fn a_start_that_is_renewed_is_proved_by_its_first_hello() {
    let mut p = peers();
    assert!(p.hear_hello(&header(PEER, FIRST, 5), &echo(salt(1), 3), at(0)));
    while !p.proofs(1000).echoes.is_empty() {}
    p.begin_start(salt(2));
    let echoes = p.proofs(1000).echoes;
    assert_eq!(echoes, [Heard { node: PEER, start: FIRST.start(), counter: 5 }]);
    // Echoes of the start before it prove nothing to us.
    p.note_sent(salt(2), 2);
    assert!(!p.hear_hello(&header(OTHER, FIRST, 1), &echo(salt(1), 2), at(1)));
    assert!(p.hear_hello(&header(OTHER, FIRST, 2), &echo(salt(2), 2), at(1)));
}
