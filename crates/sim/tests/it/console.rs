//! The console's observer: it changes no run, its messages add up, and recordings of fixed seeds.

use ncmesh_console::Sink;
use ncmesh_console::recording::Reader;
use ncmesh_console::schema::{Count, EventKind, Key, Message, Meta, Stage};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Duration;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Console, Observer, Schemes, Simulation, SimulationConfig, Step};
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Sink that keeps everything.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<Message>>>);

impl Sink for Kept {
    fn tell(&mut self, message: &Message) -> io::Result<()> {
        self.0.borrow_mut().push(message.clone());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn schemes(name: &str) -> Schemes {
    Schemes::read(name, ServiceKind::File).expect("it exists")
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Runs a scenario for `seconds` of its traffic at most, and returns the messages.
fn run(name: &str, seconds: u64, scheme: &'static str) -> Vec<Message> {
    let scenario = Scenario::load(&scenarios().join(name)).expect("a shipped scenario");
    let hash = |observers| {
        let config = SimulationConfig::from_scenario(&scenario).expect("valid");
        let limit = Duration::from_secs(seconds);
        let go_on = |_: &Step<'_>| ControlFlow::Continue(());
        let outcome = ncmesh_sim::run(&scenario, config, scheme, limit, observers, go_on);
        outcome.expect("it runs").trace.expect("simulated").trace_hash
    };
    let kept = Kept::default();
    let config = SimulationConfig::from_scenario(&scenario).expect("valid");
    let console = Console::new(&scenario, &config, &schemes(scheme), kept.clone());
    let observed = hash(vec![Box::new(console) as Box<dyn Observer>]);
    assert_eq!(observed, hash(Vec::new()), "looking changes the run");
    kept.0.take()
}

/// Checks the order of messages and that ticks add up to keys. Returns the last state and meta.
fn check(messages: &[Message]) -> (Meta, Key) {
    let (mut meta, mut state): (Option<Meta>, Option<Key>) = (None, None);
    let mut previous_s = 0.0;
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::Meta(new) => {
                assert!(matches!(messages.get(at + 1), Some(Message::Key(_))), "a key follows");
                meta = Some(new.clone());
            }
            Message::Key(key) => {
                let meta = meta.as_ref().expect("a meta comes first");
                assert_eq!(key.nodes.up.len(), meta.nodes.len());
                assert_eq!(key.links.heard.len(), meta.links.len());
                assert_eq!(key.transfers.len(), meta.transfers.len());
                assert_eq!(key.flows.len(), meta.flows.len());
                assert_eq!(key.streams.len(), meta.streams.len());
                assert!(key.time_s >= previous_s);
                previous_s = key.time_s;
                state = Some(key.clone());
            }
            Message::Tick(tick) => {
                assert!(tick.time_s > previous_s);
                previous_s = tick.time_s;
                state.as_mut().expect("a key comes first").apply(tick).expect("it fits");
            }
            Message::Event(event) => assert!(event.time_s >= previous_s - 0.11, "{event:?}"),
        }
    }
    let end = messages.last().expect("there are messages");
    assert!(matches!(end, Message::Event(event) if event.what == EventKind::End));
    (meta.expect("a meta"), state.expect("a key"))
}

#[test]
fn a_transfer_is_told_from_start_to_end() {
    let messages = run("diamond.toml", 60, "cascade");
    let (meta, state) = check(&messages);
    let transfer = &meta.transfers[0];
    let told = &state.transfers[0];
    let receiver = &told.receivers[0];
    assert_eq!((told.stage, receiver.stage), (Some(Stage::Complete), Stage::Complete));
    assert_eq!(receiver.bytes, transfer.bytes);
    let generations = transfer.generations.expect("known");
    assert_eq!(receiver.complete, (0..generations).collect());

    // The receiver counts the same as its links, and no link hears more than was sent.
    let to = meta.links.iter().enumerate().filter(|(_, link)| link.to == receiver.node);
    let innovative: u64 = to.map(|(place, _)| state.links.innovative[place].unwrap().0).sum();
    assert_eq!(receiver.innovative, Some(Count(innovative)));
    let coded: u64 = state.nodes.coded.iter().map(|count| count.unwrap().0).sum();
    assert!(coded > 0, "forwarders combine");
    for (place, link) in meta.links.iter().enumerate() {
        let links = &state.links;
        let known = |column: &[Option<Count>], row: usize| column[row].unwrap().0;
        let lost = known(&links.channel, place) + known(&links.collision, place);
        let all = known(&links.heard, place) + lost;
        let from = usize::from(link.from - 1);
        let nodes = &state.nodes;
        let payload = known(&nodes.data, from) + known(&nodes.coded, from);
        let sent = known(&nodes.control, from) + payload;
        // Frames to one neighbour are repeated by the MAC, so it may be more than were sent.
        assert!(
            all >= known(&links.innovative, place) + known(&links.redundant, place),
            "{link:?}"
        );
        assert!(all * 2 >= sent, "{link:?}: {all} of {sent}");
    }
}

#[test]
fn flows_have_delays_and_shares_of_coded_frames() {
    let messages = run("cross.toml", 4, "xor");
    let (_, state) = check(&messages);
    assert_eq!(state.flows.len(), 2);
    for flow in &state.flows {
        let delivered = flow.delivered.unwrap().0;
        assert!(delivered > 100 && flow.bits == Some(Count(delivered * 1100 * 8)));
        assert_eq!(flow.rtt_s, None, "one-way delay is known");
        assert!(flow.offered >= flow.delivered);
        assert!(flow.delay_s.is_some_and(|delay| (0.001..1.0).contains(&delay)), "{flow:?}");
        assert!(flow.coded_share.is_some());
    }
}

#[test]
fn streams_have_trees_and_rates() {
    let messages = run("stream.toml", 5, "multirate");
    let (_, state) = check(&messages);
    let stream = &state.streams[0];
    assert!(stream.receivers.iter().all(|receiver| receiver.bits[0].0 > 0));
    assert!(!stream.tree.is_empty());
}

#[test]
fn nodes_that_move_are_told_where_the_medium_has_them() {
    let messages = run("walkers.toml", 60, "cascade");
    let (meta, _) = check(&messages);
    assert!(meta.links.iter().all(|link| link.loss.is_none()), "losses change on the way");
    let scenario = Scenario::load(&scenarios().join("walkers.toml")).expect("a shipped scenario");
    let mobility = scenario.mobility.expect("they walk");

    let mut state = Key::default();
    let mut moves = 0;
    for message in &messages {
        match message {
            Message::Key(key) => state = key.clone(),
            Message::Tick(tick) => {
                state.apply(tick).expect("it fits");
                moves += usize::from(tick.moves.is_some());
            }
            Message::Meta(_) | Message::Event(_) => continue,
        }
        // A look sees what happened before it, so a move at its instant is seen by the next.
        let steps = (state.time_s / mobility.step.as_secs_f64() - 1e-6).floor().max(0.0);
        let moved_s = steps * mobility.step.as_secs_f64();
        let places = state.places.as_ref().expect("they walk");
        for (node, path) in mobility.paths.iter().enumerate() {
            let told = [places.x_dm[node], places.y_dm[node], places.z_dm[node]];
            let is_near = |(m, dm): (f64, i32)| (10.0 * m - f64::from(dm)).abs() < 0.51;
            assert!(path.at(moved_s).into_iter().zip(told).all(is_near), "{node}: {told:?}");
        }
    }
    // They go on every half second, and between that nothing is told.
    let looks = messages.iter().filter(|message| matches!(message, Message::Tick(_))).count();
    assert!(moves > looks / 6 && moves <= looks / 5 + 1, "{moves} moves in {looks} ticks");
}

#[test]
fn a_mesh_of_one_node_is_told_and_a_restart_is_an_event() {
    let text = "name = \"one\"\nnodes = [\"a\"]\n[medium]\nphy = \"802.11b\"\nbit_rate = \"11M\"\n";
    let scenario = Scenario::parse(text, "one", Path::new("")).expect("valid");
    let config = SimulationConfig::from_scenario(&scenario).expect("valid");
    let kept = Kept::default();
    let mut simulation = Simulation::new(config.clone()).expect("valid");
    simulation.observe(Box::new(Console::new(
        &scenario,
        &config,
        &schemes("cascade"),
        kept.clone(),
    )));
    simulation.run_for(Duration::from_secs(2));
    simulation.switch_off(0);
    simulation.run_for(Duration::from_secs(2));
    simulation.switch_on(0).expect("it starts");
    simulation.run_for(Duration::from_secs(2));
    simulation.finish().expect("memory");
    let messages = kept.0.borrow().clone();
    let (meta, state) = check(&messages);
    assert_eq!((meta.nodes.len(), meta.links.len()), (1, 0));
    assert_eq!(state.nodes.up, [true]);
    let events = messages.iter().filter_map(|message| match message {
        Message::Event(event) => Some(&event.what),
        _ => None,
    });
    let events: Vec<_> = events.collect();
    assert_eq!(events, [&EventKind::NodeDown, &EventKind::NodeUp, &EventKind::End]);
}

#[test]
fn the_recordings_of_the_front_ends_tests_can_be_read() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/tests/fixtures");
    for name in ["building", "cross", "stream", "hub", "walkers"] {
        let path = fixtures.join(format!("{name}.ncrec"));
        let file = std::fs::File::open(&path).expect("it is committed");
        assert!(file.metadata().expect("a file").len() < 100_000, "{name} has grown");
        let messages: Result<Vec<_>, _> = Reader::new(file).collect();
        let (meta, _) = check(&messages.expect(name));
        assert_eq!(meta.scenario.as_deref(), Some(name));
    }
}
