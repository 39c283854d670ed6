//! A generation that was decoded to something false: its packets with their senders, until the true
//! ones among them are found.
//!
//! Nothing is kept of packets while all is well. When a generation turns out false, the packets
//! that it was made of are kept as they came, and a few more are asked for. Several ways lead to
//! the true ones: packets that agree with each other ([`agreeing`]), all packets but those of one
//! sender, those of one sender alone, the newest, and some drawn at random. Each is decoded and
//! checked. Once the true generation is known, every packet is compared with it, so exactly the
//! false ones are found, and their senders.
//!
//! Meanwhile the source may be asked for a [check](crate::file::check), which tells the true ones
//! among all packets that were there when its nonce was drawn. The generation then lacks what the
//! false ones left open, and no more.
//!
//! If a sender writes most of the packets under the name of another, or makes the errors of many
//! fit each other, no way leads there while it goes on. The oldest packets make room for new ones,
//! so the generation is found when it stops.

use crate::blame::Given;
use crate::file::check::{COLUMNS, GenerationId, Nonce, probe};
use ncmesh_code::{Absorbed, Combination, Decoder, Encoder, Field, Shape, agreeing};
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::{BTreeMap, VecDeque};

/// Packets beyond the size of a generation with which the true ones are looked for first.
const FIRST: usize = 2;
/// Packets that are kept: for each of the generation this many, and some more. Half of them and two
/// may be false.
const KEPT: usize = 3;
const MORE: usize = 8;
/// Most senders whose packets are left out or taken alone.
const MOST_SENDERS: usize = 8;
/// Draws of random packets at each attempt.
const DRAWS: usize = 4;
/// Least share of the packets to come that is taken for true, after a check found fewer.
const LEAST_TRUE: f64 = 0.125;

/// Sender of a packet, and what it knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The sender.
    pub sender: NodeId,
    /// Whether the sender has the whole generation, which an honest one has checked.
    pub is_vouched: bool,
}

/// Outcome of a check for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// None has covered it.
    Unknown,
    True,
    False,
}

#[derive(Clone, Debug)]
struct Suspect {
    origin: Origin,
    packet: Combination,
    /// Number among the packets taken.
    number: u64,
    verdict: Verdict,
}

/// A question for a check.
#[derive(Clone, Copy, Debug)]
struct Asked {
    nonce: Nonce,
    /// Number of the first packet that was not there when the nonce was drawn.
    before: u64,
}

/// Packets of one generation of which some are false.
#[derive(Clone, Debug)]
pub struct Dispute {
    shape: Shape,
    suspects: VecDeque<Suspect>,
    /// Packets to be taken until the true ones are looked for.
    lacks: usize,
    /// Packets taken so far.
    taken: u64,
    /// The last question that was not answered.
    asked: Option<Asked>,
    /// Packets that checks found to be true; `None` until one did.
    proven: Option<Box<Decoder>>,
    /// Whether the true packets were looked for in vain since the last question.
    wants_check: bool,
    /// Whether a check contradicted the announcement of the file.
    is_misled: bool,
}

/// A true generation, and what each sender gave of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The source symbols, one after the other.
    pub symbols: Vec<u8>,
    /// True and false packets by sender.
    pub given: BTreeMap<NodeId, Given>,
}

impl Dispute {
    /// Begins with the packets that `decoder` holds, which came from `origins` in this order.
    #[must_use]
    pub fn new(decoder: &Decoder, origins: &[Origin]) -> Self {
        let shape = decoder.shape();
        let k = shape.generation_size();
        let mut dispute = Self {
            shape,
            suspects: VecDeque::new(),
            lacks: k + FIRST,
            taken: 0,
            asked: None,
            proven: None,
            wants_check: true,
            is_misled: false,
        };

        // The decoder has changed its rows. Each packet is made again as a combination of them.
        let mut weights = vec![0; decoder.rank()];
        for (number, origin) in origins.iter().enumerate().take(decoder.rank()) {
            let mut vector = vec![0; k];
            let mut payload = vec![0; shape.symbol_size()];
            weights[number] = 1;
            if decoder.recode_with(&weights, &mut vector, &mut payload).is_ok() {
                dispute.take(*origin, &vector, &payload);
            }
            weights[number] = 0;
        }

        dispute
    }

    /// Returns the bytes that a dispute about a generation of this shape may take, about.
    #[must_use]
    pub fn memory(shape: Shape) -> usize {
        let proven = 2 * shape.generation_size();
        (most_kept(shape) + proven) * (shape.generation_size() + shape.symbol_size() + 64)
    }

    /// Takes a packet of the shape of the generation. One that is there already, or a multiple of
    /// one, is moved to the newest: it does not agree with itself.
    pub fn take(&mut self, origin: Origin, vector: &[u8], payload: &[u8]) {
        let k = self.shape.generation_size();
        if vector.len() != k || payload.len() != self.shape.symbol_size() {
            return;
        }

        // Multiples of a packet are one packet, so that copies are found.
        let Some(packet) = scaled(self.shape.field(), vector, payload) else { return };
        let known = self.suspects.iter().position(|suspect| suspect.packet == packet);
        let mut suspect = Suspect { origin, packet, number: self.taken, verdict: Verdict::Unknown };
        self.taken += 1;
        if let Some(earlier) = known.and_then(|known| self.suspects.remove(known)) {
            // A check that covers the earlier copy covers this one.
            suspect = earlier;
        } else if self.suspects.len() >= most_kept(self.shape) {
            // Proven ones stay. There are no more of them than a generation has packets.
            let oldest = self.suspects.iter().position(|old| old.verdict != Verdict::True);
            oldest.map(|oldest| self.suspects.remove(oldest));
        }

        // Copies count as well: a sender that repeats itself must not put off the next attempt for
        // ever.
        self.lacks = self.lacks.saturating_sub(1);
        self.suspects.push_back(suspect);
    }

    // ---- checks

    /// Returns whether a check would help.
    #[must_use]
    pub fn wants_check(&self) -> bool {
        self.wants_check
    }

    /// Begins a question for a check, with a nonce that was drawn just now. All packets taken so
    /// far can be judged by the answer.
    pub fn ask(&mut self, nonce: Nonce) {
        self.asked = Some(Asked { nonce, before: self.taken });
        self.wants_check = false;
    }

    /// Judges packets by the sums of an answer to the last question. Returns whether it is that.
    pub fn judge(&mut self, of: GenerationId, nonce: Nonce, sums: &[u8]) -> bool {
        // The number of sums says how many there are of each packet.
        let shape = self.shape;
        let columns = sums.len() / shape.generation_size();
        let fits = COLUMNS.contains(&columns) && columns * shape.generation_size() == sums.len();
        let probe = probe(of, nonce, shape, columns).filter(|_| fits);
        probe.is_some_and(|probe| {
            let agrees = |vector: &[u8], payload: &[u8]| probe.agrees(sums, vector, payload);
            self.judge_by(nonce, |vector, payload| agrees(vector, payload) == Ok(true))
        })
    }

    /// Judges packets by an answer to the last question. Returns whether it is that.
    fn judge_by(&mut self, nonce: Nonce, is_true: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        let Some(Asked { before, .. }) = self.asked.take_if(|asked| asked.nonce == nonce) else {
            return false;
        };
        let shape = self.shape;
        let proven = self.proven.get_or_insert_with(|| Box::new(Decoder::new(shape)));
        let mut passed = 0_usize;
        let mut failed = 0_usize;
        self.suspects.retain_mut(|suspect| {
            if suspect.number >= before || suspect.verdict != Verdict::Unknown {
                return true;
            }
            let (vector, payload) = &suspect.packet;
            if !is_true(vector, payload) {
                failed += 1;
                suspect.verdict = Verdict::False;
                return true;
            }
            passed += 1;
            suspect.verdict = Verdict::True;
            // A true packet that says nothing new is of no use.
            proven.absorb(vector, payload).is_ok_and(Absorbed::is_innovative)
        });

        // The same share should be true among the packets to come, and those that came since.
        let judged = (passed + failed).max(1);
        let share = (passed as f64 / judged as f64).max(LEAST_TRUE);
        let unknown = self.suspects.iter().filter(|s| s.verdict == Verdict::Unknown).count();
        let missing = shape.generation_size() - proven.rank();
        let lacks = (missing as f64 / share).ceil() as usize;
        // The sender learns what arrives from what is lacking, which is a generation at most.
        self.lacks = lacks.saturating_sub(unknown).min(shape.generation_size());
        true
    }

    /// Returns the packets that checks found to be true, if there was a check.
    #[must_use]
    pub fn proven(&self) -> Option<&Decoder> {
        self.proven.as_deref()
    }

    /// Returns whether a check has found true packets.
    fn has_proven(&self) -> bool {
        self.proven.as_ref().is_some_and(|proven| proven.rank() > 0)
    }

    /// Returns whether a check has contradicted the announcement of the file since the last call:
    /// it was not the source's, or the source does not know its file.
    pub fn take_misled(&mut self) -> bool {
        core::mem::take(&mut self.is_misled)
    }

    // ---- the true generation

    /// Returns how many packets are asked for before the true ones are looked for again, at least
    /// one.
    #[must_use]
    pub fn lacks(&self) -> usize {
        self.lacks.max(1)
    }

    /// Returns whether it is time to look for the true packets.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.lacks == 0
    }

    /// Returns whether another sender may do better, after as many packets in vain as make a second
    /// generation.
    #[must_use]
    pub fn is_stubborn(&self) -> bool {
        !self.has_proven() && self.suspects.len() >= 2 * self.shape.generation_size() + FIRST
    }

    /// Looks for the true generation. `is_genuine` tells whether decoded symbols are it.
    pub fn settle(
        &mut self,
        rng: &mut (impl RngCore + ?Sized),
        is_genuine: impl Fn(&[u8]) -> bool,
    ) -> Option<Settled> {
        let redundant = self.suspects.len().saturating_sub(self.shape.generation_size());

        // Each attempt costs some milliseconds, and an answer of the sender. So what is asked for
        // doubles, until the packets after the first false ones may be enough by themselves.
        // Once checks find the true ones, only the next check is waited for.
        let most = if self.has_proven() { FIRST } else { self.shape.generation_size().max(FIRST) };
        self.lacks = redundant.clamp(FIRST, most);
        let symbols = self
            .candidates(rng)
            .into_iter()
            .find_map(|chosen| self.decode(&chosen).filter(|symbols| is_genuine(symbols)));
        let Some(symbols) = symbols else {
            self.wants_check = true;
            if self.proven.as_ref().is_some_and(|proven| proven.is_complete()) {
                self.forget_verdicts();
            }
            return None;
        };
        let given = self.compare(&symbols)?;
        Some(Settled { symbols, given })
    }

    /// Takes back what checks said: what they found to be true is not.
    fn forget_verdicts(&mut self) {
        self.is_misled = true;
        self.proven = None;
        self.asked = None;
        self.suspects.iter_mut().for_each(|suspect| suspect.verdict = Verdict::Unknown);
    }

    /// Returns sets of packets that may be true, by number, most likely ones first.
    fn candidates(&self, rng: &mut (impl RngCore + ?Sized)) -> Vec<Vec<usize>> {
        let newest: Vec<usize> = (0..self.suspects.len()).rev().collect();
        let packets: Vec<Combination> = self.suspects.iter().map(|s| s.packet.clone()).collect();
        let mut all: Vec<Vec<usize>> = Vec::new();

        // First, what checks found to be true, and then what none has covered.
        if self.has_proven() {
            let of = |verdict| {
                newest.iter().copied().filter(move |i: &usize| self.suspects[*i].verdict == verdict)
            };
            all.push(of(Verdict::True).chain(of(Verdict::Unknown)).collect());
        }

        // Then, packets that agree with each other: the false ones of one sender seldom do.
        let agrees = agreeing(self.shape, &packets).unwrap_or_default();
        all.push(newest.iter().copied().filter(|i| agrees.get(*i) == Some(&true)).collect());

        let mut senders: Vec<NodeId> = self.suspects.iter().map(|s| s.origin.sender).collect();
        senders.sort_unstable();
        senders.dedup();

        // Then, all packets without those of one sender, and those of that sender alone.
        if senders.len() > 1 {
            for sender in senders.into_iter().take(MOST_SENDERS) {
                let is_its = |i: &usize| self.suspects[*i].origin.sender == sender;
                let (own, others) = newest.iter().partition(|i| is_its(i));
                all.extend([others, own]);
            }
        }

        // Last, the newest packets, and some at random.
        all.push(newest.clone());
        for _ in 0..DRAWS {
            let mut drawn = newest.clone();
            for place in (1..drawn.len()).rev() {
                drawn.swap(place, rng.next_u32() as usize % (place + 1));
            }
            all.push(drawn);
        }

        all
    }

    /// Decodes the first independent ones of these packets, if there are enough.
    fn decode(&self, chosen: &[usize]) -> Option<Vec<u8>> {
        if chosen.len() < self.shape.generation_size() {
            return None;
        }
        let mut decoder = Decoder::new(self.shape);
        for (vector, payload) in chosen.iter().map(|i| &self.suspects[*i].packet) {
            // A packet that depends on those before it is skipped without harm.
            decoder.absorb(vector, payload).ok()?;
        }
        decoder.decode().map(<[u8]>::to_vec)
    }

    /// Compares all packets with the true symbols.
    fn compare(&mut self, symbols: &[u8]) -> Option<BTreeMap<NodeId, Given>> {
        // A packet is true if the true symbols give the same payload.
        let mut encoder = Encoder::new(self.shape);
        encoder.load(symbols).ok()?;
        let mut given: BTreeMap<NodeId, Given> = BTreeMap::new();

        let mut payload = vec![0; self.shape.symbol_size()];
        for Suspect { origin, packet, verdict, .. } in &self.suspects {
            encoder.encode(&packet.0, &mut payload).ok()?;
            let of_sender = given.entry(origin.sender).or_default();
            let lie = if payload == packet.1 { Verdict::False } else { Verdict::True };
            self.is_misled |= *verdict == lie;
            // A sender that has the whole generation had to know. The others may have passed a lie
            // on.
            match (payload == packet.1, origin.is_vouched) {
                (true, _) => of_sender.genuine += 1,
                (false, true) => of_sender.vouched += 1,
                (false, false) => of_sender.unchecked += 1,
            }
        }

        Some(given)
    }
}

fn most_kept(shape: Shape) -> usize {
    KEPT * shape.generation_size() + MORE
}

/// Returns the multiple of a packet whose first coefficient is one; `None` without coefficients.
fn scaled(field: Field, vector: &[u8], payload: &[u8]) -> Option<Combination> {
    let first = vector.iter().find(|c| **c != 0)?;
    let inverse = field.inv(*first)?;
    let scale = |bytes: &[u8]| bytes.iter().map(|byte| field.mul(inverse, *byte)).collect();
    Some(if inverse == 1 {
        (vector.to_vec(), payload.to_vec())
    } else {
        (scale(vector), scale(payload))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;
    use ncmesh_code::draw;
    use rand_chacha::ChaCha8Rng;

    const K: usize = 16;
    const SIZE: usize = 100;
    const PARENT: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// A generation, and a liar that may write under any name.
    struct Bench {
        encoder: Encoder,
        symbols: Vec<u8>,
        rng: ChaCha8Rng,
    }

    impl Bench {
        fn new(seed: u64) -> Self {
            let mut rng = stream(seed, PARENT, "dispute", "test");
            let mut symbols = vec![0; K * SIZE];
            rng.fill_bytes(&mut symbols);
            let mut encoder = Encoder::new(Shape::new(Field::Gf256, K, SIZE).unwrap());
            encoder.load(&symbols).unwrap();
            Self { encoder, symbols, rng }
        }

        fn packet(&mut self, error: Option<&[u8]>) -> Combination {
            let mut vector = vec![0; K];
            let mut payload = vec![0; SIZE];
            draw(Field::Gf256, &mut self.rng, &mut vector);
            self.encoder.encode(&vector, &mut payload).unwrap();
            if let Some(error) = error {
                payload.iter_mut().zip(error).for_each(|(byte, e)| *byte ^= e);
            }
            (vector, payload)
        }

        fn error(&mut self) -> Vec<u8> {
            let mut error = vec![0; SIZE];
            self.rng.fill_bytes(&mut error);
            error
        }

        /// Decodes a generation of which `lies` says who wrote packet `i` and with which error, and
        /// goes on with more of them until it is settled. Returns what was found, and after how
        /// many packets.
        fn run(
            &mut self,
            mut lies: impl FnMut(&mut Self, usize) -> (Origin, Option<Vec<u8>>),
        ) -> Option<(Settled, usize)> {
            let mut decoder = Decoder::new(self.encoder.shape());
            let mut origins = Vec::new();
            let mut number = 0;
            while !decoder.is_complete() {
                let (origin, error) = lies(self, number);
                let (vector, payload) = self.packet(error.as_deref());
                if decoder.absorb(&vector, &payload).unwrap().is_innovative() {
                    origins.push(origin);
                }
                number += 1;
            }
            let mut dispute = Dispute::new(&decoder, &origins);
            let symbols = self.symbols.clone();
            for number in number..1000 {
                let (origin, error) = lies(self, number);
                let (vector, payload) = self.packet(error.as_deref());
                dispute.take(origin, &vector, &payload);
                assert!(dispute.suspects.len() <= most_kept(dispute.shape));
                if dispute.is_due()
                    && let Some(settled) = dispute.settle(&mut self.rng, |found| found == symbols)
                {
                    return Some((settled, number + 1));
                }
            }
            None
        }
    }

    fn of(sender: NodeId) -> Origin {
        Origin { sender, is_vouched: true }
    }

    #[test]
    fn false_packets_under_the_name_of_the_true_sender_are_found() {
        for seed in 0..10 {
            for (share, most) in [(16, K + 6), (4, 2 * K + 2), (2, most_kept_of_k())] {
                let mut bench = Bench::new(seed);
                let mut lies = 0;
                let found = bench.run(|bench, number| {
                    let is_false = number % share == 1;
                    lies += u32::from(is_false);
                    (of(PARENT), is_false.then(|| bench.error()))
                });
                let (settled, packets) = found.unwrap();
                assert!(packets <= most, "1 in {share}: {packets} packets");
                assert_eq!(settled.symbols, bench.symbols);
                assert_eq!(settled.given[&PARENT].vouched, lies);
            }
        }
    }

    fn most_kept_of_k() -> usize {
        KEPT * K + MORE
    }

    #[test]
    fn false_packets_of_one_sender_are_found_even_if_their_errors_fit_each_other() {
        for seed in 0..10 {
            let mut bench = Bench::new(seed);
            let error = bench.error();
            let found = bench.run(|_, number| {
                let is_false = number < K / 2;
                (of(if is_false { OTHER } else { PARENT }), is_false.then(|| error.clone()))
            });
            let (settled, packets) = found.unwrap();
            assert!(packets <= 2 * K, "{packets} packets");
            let given = &settled.given;
            assert_eq!(given[&PARENT].false_packets(), 0);
            assert_eq!(given[&OTHER].vouched as usize, K / 2);
        }
    }

    #[test]
    fn a_few_errors_that_fit_each_other_are_found_by_chance() {
        for seed in 0..10 {
            let mut bench = Bench::new(seed);
            let error = bench.error();
            let lie = |number: usize| (number % 16 == 1).then(|| error.clone());
            let found = bench.run(|_, number| (of(PARENT), lie(number)));
            let (_, packets) = found.unwrap();
            assert!(packets <= 6 * K, "{packets} packets");
        }
    }

    #[test]
    fn packets_of_a_sender_that_stopped_lying_are_enough() {
        let mut bench = Bench::new(1);
        let error = bench.error();
        let lie = |number: usize| (number < 2 * K).then(|| error.clone());
        let found = bench.run(|_, number| (of(PARENT), lie(number)));
        assert!(found.is_some_and(|(_, packets)| packets <= 4 * K));
    }

    /// Runs a dispute of which `share` packets of each four are false and fit each other, which
    /// nothing but checks can tell. Each question is answered after `delay` more packets. Returns
    /// what was found, with the number of packets and of questions.
    fn run_with_checks(
        bench: &mut Bench,
        share: usize,
        delay: usize,
        tell: impl Fn(bool) -> bool,
    ) -> Option<(Settled, usize, usize)> {
        let error = bench.error();
        let symbols = bench.symbols.clone();
        let mut dispute = Dispute::new(&Decoder::new(bench.encoder.shape()), &[]);
        let mut questions = 0;
        let mut asked_at = None;
        for number in 0..1000 {
            let lie = (number % 4 < share).then(|| error.clone());
            let (vector, payload) = bench.packet(lie.as_deref());
            dispute.take(of(PARENT), &vector, &payload);

            let encoder = bench.encoder.clone();
            let is_true = |vector: &[u8], payload: &[u8]| {
                let mut expected = vec![0; SIZE];
                encoder.encode(vector, &mut expected).unwrap();
                tell(expected == payload)
            };
            if asked_at == Some(number) {
                assert!(dispute.judge_by(Nonce([questions as u8; 16]), is_true));
                assert!(!dispute.judge_by(Nonce([questions as u8; 16]), is_true), "once");
                asked_at = None;
            }
            if !dispute.is_due() {
                continue;
            }
            match dispute.settle(&mut bench.rng, |found| found == symbols) {
                Some(settled) => {
                    assert_eq!(dispute.take_misled(), tell(false));
                    return Some((settled, number + 1, questions));
                }
                None if asked_at.is_none() => {
                    questions += 1;
                    dispute.ask(Nonce([questions as u8; 16]));
                    asked_at = Some(number + delay);
                }
                None => {}
            }
        }
        None
    }

    #[test]
    fn checks_tell_true_packets_from_false_ones_that_fit_each_other() {
        for seed in 0..10 {
            for (share, most) in [(1, 2 * K), (2, 3 * K), (3, 6 * K)] {
                let mut bench = Bench::new(seed);
                let (settled, packets, questions) =
                    run_with_checks(&mut bench, share, 2, |truth| truth).unwrap();
                assert_eq!(settled.symbols, bench.symbols);
                assert!(packets <= most, "{share} of 4: {packets} packets");
                assert!(questions <= 6, "{share} of 4: {questions} questions");
            }
        }
    }

    #[test]
    fn a_check_judges_only_what_was_there_when_it_was_asked_for() {
        let mut bench = Bench::new(1);
        let mut dispute = Dispute::new(&Decoder::new(bench.encoder.shape()), &[]);
        let before = bench.packet(None);
        let after = bench.packet(None);
        dispute.take(of(PARENT), &before.0, &before.1);
        dispute.ask(Nonce([1; 16]));
        dispute.take(of(PARENT), &after.0, &after.1);
        assert!(!dispute.judge_by(Nonce([2; 16]), |_, _| true), "another question's");
        assert!(dispute.judge_by(Nonce([1; 16]), |_, _| true));
        let verdicts: Vec<Verdict> = dispute.suspects.iter().map(|s| s.verdict).collect();
        assert_eq!(verdicts, [Verdict::True, Verdict::Unknown]);
    }

    /// A member that answers in the name of the source calls packets false that are true. That
    /// delays the generation, and is noticed.
    #[test]
    fn false_checks_are_found_out() {
        for seed in 0..10 {
            let mut bench = Bench::new(seed);
            let symbols = bench.symbols.clone();
            let mut dispute = Dispute::new(&Decoder::new(bench.encoder.shape()), &[]);
            let mut found = None;
            for number in 0..4 * K {
                let is_false = number % 8 == 1;
                let error = bench.error();
                let (vector, payload) = bench.packet(is_false.then_some(&error[..]));
                dispute.take(of(PARENT), &vector, &payload);
                if number == K {
                    dispute.ask(Nonce([1; 16]));
                    // Hardly any packet is said to be true.
                    dispute.judge_by(Nonce([1; 16]), |_, payload| payload[0] < 16);
                }
                if dispute.is_due() {
                    found = dispute.settle(&mut bench.rng, |found| found == symbols);
                }
                if found.is_some() {
                    break;
                }
            }
            assert_eq!(found.unwrap().symbols, symbols);
            assert!(dispute.take_misled() && !dispute.take_misled());
        }
    }

    #[test]
    fn a_packet_that_is_told_again_or_in_multiples_counts_once() {
        let mut bench = Bench::new(1);
        let error = bench.error();
        let (vector, payload) = bench.packet(Some(&error));
        let mut dispute = Dispute::new(&Decoder::new(bench.encoder.shape()), &[]);
        for c in 1..=20 {
            let times = |bytes: &[u8]| bytes.iter().map(|b| Field::Gf256.mul(c, *b)).collect();
            let vector: Vec<u8> = times(&vector);
            let payload: Vec<u8> = times(&payload);
            dispute.take(of(PARENT), &vector, &payload);
        }
        assert_eq!(dispute.suspects.len(), 1);
        dispute.take(of(PARENT), &[0; K], &[1; SIZE]);
        dispute.take(of(PARENT), &vector, &payload[1..]);
        assert_eq!(dispute.suspects.len(), 1);
    }
}
