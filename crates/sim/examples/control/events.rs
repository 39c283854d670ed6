//! Changes of the mesh, and how long it takes until the nodes that they concern know: first the
//! neighbours have to notice, then what they tell has to spread.

use crate::graph::{GOOD_DELIVERY, Graph};
use crate::routes;
use crate::statistics::percentile;
use crate::{Error, Run};
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_medium::{LossMatrix, RadioId};
use ncmesh_sim::node_id;
use ncmesh_wire::NodeId;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

/// Only nodes that are no more hops away count.
const MOST_HOPS: usize = 6;
/// How often the nodes' topologies are looked at.
const CHECK: Duration = Duration::from_millis(250);
/// Nodes that do not know by then count with this time.
const LIMIT: Duration = Duration::from_secs(30);
/// Time between two events, for the mesh to come to rest.
const REST: Duration = Duration::from_secs(15);
/// A node that dies or fades has this many nodes or more that route through it.
const LEAST_USERS: usize = 5;
/// Share of its delivery that a link keeps when it fades.
const FADED: f64 = 0.1;
/// Share of the delivery that it told last below which a neighbour has noticed the loss.
const NOTICED: f64 = 0.5;

/// Kinds of events, in the order in which they take turns.
const KINDS: [&str; 3] = ["dies", "fades", "appears"];

/// Measurements of one kind of event.
#[derive(Default)]
struct Findings {
    events: usize,
    /// Seconds until each concerned node knew.
    delays: Vec<f64>,
    /// Number of those that did not know at the limit.
    unresolved: usize,
    /// Seconds until each neighbour with a good link to the node told its loss.
    noticed: Vec<f64>,
    /// Seconds from the last of these until each concerned node knew.
    spread: Vec<f64>,
    /// Seconds until a new node had paths to all others.
    newcomer: Vec<f64>,
}

/// Makes one event of each kind for each node of `spares`, and reports on them. The spares are
/// switched off until they appear.
pub(crate) fn run(run: &mut Run, spares: &[usize], seed: u64) -> Result<Value, Error> {
    let mut rng = rng::stream(seed, NodeId(0), "control", "events");
    let mut findings = KINDS.map(|_| Findings::default());
    for &spare in spares {
        if let Some(node) = victim(run, &mut rng) {
            dies(run, node, &mut findings[0])?;
        }
        if let Some(node) = victim(run, &mut rng) {
            fades(run, node, &mut findings[1])?;
        }
        appears(run, spare, &mut findings[2])?;
    }
    let reports = KINDS.iter().zip(findings).map(|(kind, f)| ((*kind).to_owned(), f.report()));
    Ok(Value::Object(reports.collect::<Map<_, _>>()))
}

/// Switches a node off until all nodes that routed through it know, or until the limit.
fn dies(run: &mut Run, node: usize, findings: &mut Findings) -> Result<(), Error> {
    let concerned = users(run, node);
    let witnesses = Witnesses::of(run, node);
    run.simulation.switch_off(node);
    watch_loss(run, concerned, witnesses, findings, node);
    run.simulation.switch_on(node)?;
    run.advance(REST);
    Ok(())
}

/// Weakens all links of a node. Only nodes that have better paths around it then are concerned.
fn fades(run: &mut Run, node: usize, findings: &mut Findings) -> Result<(), Error> {
    let mut concerned = users(run, node);
    let whole = run.mesh.loss.clone();
    let mut faded = whole.clone();
    for link in whole.links().filter(|link| link.from.0 == node || link.to.0 == node) {
        faded.set(link.from, link.to, 1.0 - FADED * (1.0 - link.loss))?;
    }
    let graph = Graph::new(&faded, &routes::running(&run.simulation));
    concerned.retain(|&user| !graph.tree(user).parent.contains(&Some(node)));

    let witnesses = Witnesses::of(run, node);
    set_links(run, node, &faded)?;
    watch_loss(run, concerned, witnesses, findings, node);
    set_links(run, node, &whole)?;
    run.advance(REST);
    Ok(())
}

/// Switches on a node that was never on, until all near it have a path to it.
fn appears(run: &mut Run, node: usize, findings: &mut Findings) -> Result<(), Error> {
    run.simulation.switch_on(node)?;
    let running = routes::running(&run.simulation);
    let tree = Graph::new(&run.mesh.loss, &running).tree(node);
    let is_near = |&other: &usize| tree.hops(other).is_some_and(|hops| hops <= MOST_HOPS);
    let near = (0..running.len()).filter(|&other| other != node).filter(is_near).collect();

    // The newcomer is watched beside the others.
    let begun = run.simulation.now();
    let mut newcomer = None;
    watch(run, near, findings, |run, other| {
        if newcomer.is_none() && routes::is_complete(&run.simulation, node) {
            newcomer = Some(run.simulation.now().since(begun).as_secs_f64());
        }
        routes::paths(&run.simulation, other).is_some_and(|paths| paths.reaches(node_id(node)))
    });
    while newcomer.is_none() && run.simulation.now().since(begun) < LIMIT {
        run.advance(CHECK);
        let complete = routes::is_complete(&run.simulation, node);
        newcomer = complete.then(|| run.simulation.now().since(begun).as_secs_f64());
    }
    findings.newcomer.push(newcomer.unwrap_or(LIMIT.as_secs_f64()));
    run.advance(REST);
    Ok(())
}

/// Neighbours that have a good link to a node which is about to die or to fade.
struct Witnesses {
    begun: Instant,
    /// Nodes that have not noticed yet, with the delivery that each told last.
    open: Vec<(usize, f64)>,
    /// When the last one noticed.
    last: Instant,
}

impl Witnesses {
    fn of(run: &Run, node: usize) -> Self {
        let good = |&other: &usize| {
            other != node
                && 1.0 - run.mesh.loss.loss(RadioId(node), RadioId(other)) >= GOOD_DELIVERY
        };
        let others = (0..run.simulation.len()).filter(good);
        let open = others.filter_map(|other| Some((other, told(run, other, node)?))).collect();
        let begun = run.simulation.now();
        Self { begun, open, last: begun }
    }

    /// Notes which of them have told the loss of `node` by now.
    fn look(&mut self, run: &Run, node: usize, findings: &mut Findings) {
        let now = run.simulation.now();
        let has_noticed =
            |other: usize, before: f64| told(run, other, node).is_none_or(|d| d < NOTICED * before);
        for _ in self.open.extract_if(.., |(other, before)| has_noticed(*other, *before)) {
            self.last = now;
            findings.noticed.push(now.since(self.begun).as_secs_f64());
        }
    }
}

/// Returns how well a node hears another by its own word.
fn told(run: &Run, node: usize, other: usize) -> Option<f64> {
    let state = run.simulation.host(node).stack()?.topology().state(node_id(node))?;
    state.hears.get(&node_id(other)).copied()
}

/// Advances until no node of `waiting` routes through `node`, and notes when each stopped.
fn watch_loss(
    run: &mut Run,
    waiting: Vec<usize>,
    mut witnesses: Witnesses,
    findings: &mut Findings,
    node: usize,
) {
    let mut seen = Findings::default();
    watch(run, waiting, findings, |run, user| {
        witnesses.look(run, node, &mut seen);
        let knows = !routes_through(run, user, node);
        if knows {
            seen.spread.push(run.simulation.now().since(witnesses.last).as_secs_f64());
        }
        knows
    });
    findings.noticed.extend(seen.noticed);
    findings.spread.extend(seen.spread);
}

/// Advances until every node of `waiting` is `done`, and notes when each was.
fn watch(
    run: &mut Run,
    mut waiting: Vec<usize>,
    findings: &mut Findings,
    mut done: impl FnMut(&Run, usize) -> bool,
) {
    let begun = run.simulation.now();
    findings.events += 1;
    while !waiting.is_empty() && run.simulation.now().since(begun) < LIMIT {
        run.advance(CHECK);
        let elapsed = run.simulation.now().since(begun).as_secs_f64();
        waiting.retain(|&node| {
            let knows = done(run, node);
            if knows {
                findings.delays.push(elapsed);
            }
            !knows
        });
    }
    findings.unresolved += waiting.len();
    findings.delays.extend(waiting.iter().map(|_| LIMIT.as_secs_f64()));
}

/// Chooses a running node that others route through and that the mesh can do without.
fn victim(run: &Run, rng: &mut ChaCha8Rng) -> Option<usize> {
    let running = routes::running(&run.simulation);
    let graph = Graph::new(&run.mesh.loss, &running);
    let mut candidates: Vec<usize> = (0..running.len()).filter(|&node| running[node]).collect();
    while !candidates.is_empty() {
        let at = (rng::unit(rng) * candidates.len() as f64) as usize;
        let node = candidates.swap_remove(at);
        if graph.is_spare(node, &running) && users(run, node).len() >= LEAST_USERS {
            return Some(node);
        }
    }
    None
}

/// Returns the nodes that route through `node`, which is near them.
fn users(run: &Run, node: usize) -> Vec<usize> {
    let others = (0..run.simulation.len()).filter(|&other| other != node);
    others.filter(|&other| routes_through(run, other, node)).collect()
}

/// Returns whether a node's path to some other node leads through `via`, near it, and on.
fn routes_through(run: &Run, node: usize, via: usize) -> bool {
    let Some(paths) = routes::paths(&run.simulation, node) else { return false };
    let mut others = (0..run.simulation.len()).filter(|&other| other != via);
    (1..=MOST_HOPS).contains(&paths.path_to(node_id(via)).len())
        && others.any(|other| paths.parent(node_id(other)) == Some(node_id(via)))
}

/// Gives all links of a node the losses of `loss`.
fn set_links(run: &mut Run, node: usize, loss: &LossMatrix) -> Result<(), Error> {
    for other in (0..run.simulation.len()).filter(|&other| other != node) {
        for (from, to) in [(node, other), (other, node)] {
            let p = loss.loss(RadioId(from), RadioId(to));
            run.simulation.set_loss(from, to, p)?;
        }
    }
    Ok(())
}

impl Findings {
    fn report(&self) -> Value {
        let mut report = json!({
            "events": self.events,
            "nodes": self.delays.len(),
            "median_s": percentile(&self.delays, 0.5),
            "p95_s": percentile(&self.delays, 0.95),
            "max_s": percentile(&self.delays, 1.0),
            "unresolved": self.unresolved,
        });
        if !self.noticed.is_empty() {
            report["noticed_median_s"] = json!(percentile(&self.noticed, 0.5));
            report["noticed_p95_s"] = json!(percentile(&self.noticed, 0.95));
            report["spread_median_s"] = json!(percentile(&self.spread, 0.5));
            report["spread_p95_s"] = json!(percentile(&self.spread, 0.95));
        }
        if !self.newcomer.is_empty() {
            report["newcomer_median_s"] = json!(percentile(&self.newcomer, 0.5));
            report["newcomer_max_s"] = json!(percentile(&self.newcomer, 1.0));
        }
        report
    }
}
