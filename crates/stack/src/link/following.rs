//! How closely estimates follow links that change: steps, ramps and bursts of loss, at random.

use super::neighbour::Neighbour;
use super::*;
use ncmesh_engine::rng::stream;

/// Hellos that a neighbour sends in a second, as when its states change or others ask it.
const RATE: u64 = 10;
/// Links drawn for each shape.
const CASES: u64 = 400;
/// Time for which a link stays as it is before it changes, and in which an estimate has to follow.
const BEFORE_S: u64 = 60;
const FOLLOW_S: u64 = 5;
/// Greatest deviation of half of the estimates, and of any. Fifty frames show a share with a
/// standard deviation of 0.07, and a change that chance could explain must not count as one.
const CLOSE: f64 = 0.1;
const WORST: f64 = 0.4;
/// Least change of a step whose loss must show.
const STEP: f64 = 0.4;

/// Returns by how much an estimate deviates from the truth, at the time that `judged` says, for
/// each case: `delivery` is what a link delivers at a number of seconds.
fn deviations(
    name: &str,
    judged_s: u64,
    mut drawn: impl FnMut(&mut ChaCha8Rng) -> Box<dyn Fn(f64) -> f64>,
) -> Vec<f64> {
    let mut found = Vec::new();
    for case in 0..CASES {
        let mut rng = stream(case, NodeId(1), "following", name);
        let delivery = drawn(&mut rng);
        let mut neighbour = None;
        for frame in 0..=judged_s * RATE {
            let second = frame as f64 / RATE as f64;
            if unit(&mut rng) >= delivery(second) {
                continue;
            }
            let at = Instant::default() + Duration::from_secs(1) * frame as u32 / RATE as u32;
            let hello = Hello::of_test(frame as u16);
            let received = Received { version: 2, start: StartId(1), counter: frame as u32, at };
            let known = neighbour.get_or_insert_with(|| Neighbour::new(&hello, received));
            known.handle_hello(&hello, received);
            known.count_frame(Some(false));
            known.note_life(at);
        }

        let now = Instant::default() + Duration::from_secs(judged_s);
        let estimate = neighbour.as_mut().and_then(|known| {
            known.retell(now, 1.0);
            known.told()
        });

        found.push((estimate.unwrap_or(0.0) - delivery(judged_s as f64)).abs());
    }

    found.sort_by(f64::total_cmp);
    found
}

/// Asserts that half of the estimates are close, and that none is far off.
fn assert_close(name: &str, deviations: &[f64]) {
    let median = deviations[deviations.len() / 2];
    let worst = deviations.last().copied().unwrap_or_default();
    assert!(median <= CLOSE && worst <= WORST, "{name}: median {median}, worst {worst}");
}

fn any(rng: &mut ChaCha8Rng) -> f64 {
    0.2 + 0.8 * unit(rng)
}

/// Loss that appears or goes shows: of nineteen of twenty links, the estimate is nearer to what the
/// link delivers now than to what it delivered before.
#[test]
fn estimates_follow_steps() {
    let step = |rng: &mut ChaCha8Rng| -> Box<dyn Fn(f64) -> f64> {
        let mut before = any(rng);
        let mut after = any(rng);
        while (before - after).abs() < STEP {
            before = any(rng);
            after = any(rng);
        }
        Box::new(move |s| if s < BEFORE_S as f64 { before } else { after })
    };

    let deviations = deviations("steps", BEFORE_S + FOLLOW_S, step);
    let followed = deviations.iter().filter(|deviation| **deviation < STEP / 2.0).count();
    assert!(followed as f64 >= 0.95 * CASES as f64, "{followed} of {CASES}");
    assert_close("steps", &deviations);
}

#[test]
fn estimates_follow_ramps() {
    let ramp = |rng: &mut ChaCha8Rng| -> Box<dyn Fn(f64) -> f64> {
        let before = any(rng);
        let after = any(rng);
        let length = 5.0 + 25.0 * unit(rng);
        let part = move |s: f64| ((s - BEFORE_S as f64 + length) / length).clamp(0.0, 1.0);
        Box::new(move |s| before + (after - before) * part(s))
    };

    assert_close("ramps", &deviations("ramps", BEFORE_S + FOLLOW_S, ramp));
}

#[test]
fn estimates_recover_from_bursts_of_loss() {
    let burst = |rng: &mut ChaCha8Rng| -> Box<dyn Fn(f64) -> f64> {
        let delivery = 0.5 + 0.5 * unit(rng);
        let begin = BEFORE_S as f64 - 1.0 - 3.0 * unit(rng);
        let end = BEFORE_S as f64;
        Box::new(move |s| if (begin..end).contains(&s) { 0.1 } else { delivery })
    };
    assert_close("bursts", &deviations("bursts", BEFORE_S + FOLLOW_S, burst));
}
