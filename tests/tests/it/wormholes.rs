//! Somebody without the key passes on short frames between distant nodes, so that these take each
//! other for neighbours. No data come that way.

use ncmesh_engine::time::Duration;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_tests::{contents, has, links, mesh};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Frames that are passed on are shorter than this, bytes.
const SHORT: usize = 400;
/// Time between two looks at what was heard.
const LOOK: Duration = Duration::from_millis(5);
/// Nodes of the line.
const NODES: usize = 4;

/// Short frames that were heard next to the ends of the line.
#[derive(Default)]
struct Tap(Vec<(usize, Vec<u8>)>);

impl Observer for Tap {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what
            && frame.len() < SHORT
        {
            self.0.push((event.node, frame.to_vec()));
        }
        Ok(())
    }
}

/// A line with the settings of daemons, and a wormhole between its ends if there is one.
struct Line {
    simulation: Simulation,
    tap: Option<Rc<RefCell<Tap>>>,
}

impl Line {
    fn new(has_wormhole: bool, seed: u64) -> Self {
        let with = [(0, 1, 0.05), (1, 2, 0.05), (2, 3, 0.05)];
        let config = SimulationConfig {
            link: LinkConfig::default(),
            route: RouteConfig::default(),
            ..mesh(links(NODES, &with), seed)
        };
        let mut simulation = Simulation::new(config).unwrap();
        let tap = has_wormhole.then(|| Rc::new(RefCell::new(Tap::default())));
        if let Some(tap) = &tap {
            simulation.observe(Box::new(Rc::clone(tap)));
        }
        let mut line = Self { simulation, tap };
        line.run_for(Duration::from_secs(40));
        line
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.simulation.now() + time;
        while self.simulation.now() < end {
            self.simulation.run_for(LOOK);
            let Some(tap) = &self.tap else { continue };
            let heard = core::mem::take(&mut tap.borrow_mut().0);
            for (at, frame) in heard {
                // The other end hears what the neighbour of one end heard.
                match at {
                    1 => self.simulation.inject(NODES - 1, &frame),
                    2 => self.simulation.inject(0, &frame),
                    _ => {}
                }
            }
        }
    }

    /// Returns how long a file takes from end to end; `None` if it is longer than a minute.
    fn file(&mut self, scheme: &'static str) -> Option<f64> {
        let s = &mut self.simulation;
        let start = s.now();
        let flow = s.send_file(scheme, 0, Some(&[NODES - 1]), contents(1_000_000)).unwrap();
        let arrived = |s: &Simulation| has(s, NODES - 1, flow);
        while !arrived(&self.simulation)
            && self.simulation.now().since(start) < Duration::from_secs(60)
        {
            self.run_for(LOOK);
        }
        arrived(&self.simulation).then(|| self.simulation.now().since(start).as_secs_f64())
    }

    /// Returns the share of packets that a tunnel carries from end to end.
    fn packets(&mut self, scheme: &'static str) -> f64 {
        let mut arrived = 0;
        for _ in 0..400 {
            let _ = self.simulation.send_packet(scheme, 0, NODES - 1, &contents(1000));
            self.run_for(4 * LOOK);
            arrived += self.simulation.take_packets().len();
        }
        self.run_for(Duration::from_secs(2));
        f64::from((arrived + self.simulation.take_packets().len()) as u32) / 400.0
    }
}

#[test]
fn a_file_of_cascade_goes_around_a_wormhole() {
    for seed in 1..=4 {
        let clean = Line::new(false, seed).file("cascade").unwrap();
        let beside = Line::new(true, seed).file("cascade");
        println!("seed {seed}: {clean:.2} s, beside a wormhole {beside:.2?} s");
        assert!(beside.is_some_and(|beside| beside < clean + 3.0), "seed {seed}: {beside:?}");
    }
}

#[test]
fn packets_go_around_a_wormhole() {
    for (scheme, least) in [("forward", 0.95), ("braid", 0.85)] {
        for seed in 1..=4 {
            let share = Line::new(true, seed).packets(scheme);
            println!("{scheme}, seed {seed}: {share:.2}");
            assert!(share >= least, "{scheme}, seed {seed}: {share}");
        }
    }
}
