//! The descriptions of frames agree with the code that writes and parses them.
//!
//! Frames that the engines sent, the golden vectors, and what becomes of both when they are cut
//! short or changed: a description reads a body exactly if the engine's parser takes it, and finds
//! the same kind, flow and batch in it.

mod frames;

use frames::simulated;
use ncmesh_engine::layout::{Check, Count, FlowOf, Layout, Length, Part, Shape, describe, read};
use ncmesh_engine::{Summary, rng};
use ncmesh_engines::REGISTRY;
use ncmesh_stack::summary::{services, summarise};
use ncmesh_tests::frames::{
    Body, DISSECTOR, DOCUMENT, SEEDS, are_alike, dissector, document, golden, marks, root, seeds,
};
use ncmesh_wire::{NodeId, ServiceId};
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

fn golden_bodies() -> Vec<Body> {
    golden().into_iter().map(|(_, body)| body).collect()
}

fn layout_of(service: ServiceId, kind: u8) -> Option<(&'static str, &'static Layout)> {
    let (_, name, layouts) = services(REGISTRY).find(|(id, ..)| *id == service)?;
    Some((name, layouts.iter().find(|layout| layout.kind == kind)?))
}

/// Returns what the description says about a body.
fn described(body: &Body) -> Option<Summary> {
    let (service, layout) = layout_of(body.service, body.kind)?;
    let values = read(layout, body.sender, &body.bytes).ok()?;
    let (kind, flow, batch) = describe(layout, &values);
    Some(Summary { service, kind, flow, batch })
}

/// Checks that a body is to its description what it is to the engine's parser. Returns that.
fn judged_alike(body: &Body) -> Option<Summary> {
    let parsed = summarise(REGISTRY, body.sender, body.service, body.kind, &body.bytes);
    assert_eq!(described(body), parsed, "{body:02x?}");
    parsed
}

/// File schemes whose nodes report to their parents in a tree.
const REPORTS_OF_TREES: [u8; 2] = [18, 19];

#[test]
fn every_kind_of_frame_is_sent_and_read_exactly() {
    let mut sent: BTreeSet<(u8, &str)> = BTreeSet::new();
    for body in simulated() {
        let summary = judged_alike(&body);
        sent.insert((body.service.0, summary.expect("a frame that was sent is well-formed").kind));
    }
    for (id, service, layouts) in services(REGISTRY) {
        for layout in layouts {
            let is_file = (16..20).contains(&id.0);
            if is_file && layout.name == "report" && !REPORTS_OF_TREES.contains(&id.0) {
                continue;
            }
            let names = [Some(layout.name), layout.variant.map(|(_, name)| name)];
            for name in names.into_iter().flatten() {
                assert!(sent.contains(&(id.0, name)), "no {name} of {service} was sent");
            }
        }
    }
}

#[test]
fn golden_vectors_are_read_exactly() {
    let bodies = golden_bodies();
    for body in &bodies {
        assert!(judged_alike(body).is_some(), "{body:02x?}");
    }
    // No kind is without a vector, whichever scheme of its family has it.
    for (_, service, layouts) in services(REGISTRY) {
        for layout in layouts {
            let has = |body: &Body| {
                layout_of(body.service, body.kind).is_some_and(|(_, it)| are_alike(it, layout))
            };
            assert!(bodies.iter().any(has), "{} of {service} has no vector", layout.name);
        }
    }
}

#[test]
fn a_body_that_is_cut_or_changed_is_judged_as_the_parser_does() {
    const VALUES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 24, 25, 32, 128, 255];
    let mut well_formed: BTreeMap<bool, u32> = BTreeMap::new();
    let mut judge = |body: &Body| {
        *well_formed.entry(judged_alike(body).is_some()).or_default() += 1;
    };
    // One sent frame of each length, cut at every byte.
    let mut bodies = simulated();
    bodies.dedup_by_key(|body| (body.service, body.kind, body.bytes.len()));
    for body in &bodies {
        for cut in 0..body.bytes.len() {
            judge(&Body { bytes: body.bytes[..cut].to_vec(), ..body.clone() });
        }
    }
    // Short ones changed everywhere too.
    for body in golden_bodies() {
        for cut in 0..=body.bytes.len() {
            for (at, value) in (0..cut).flat_map(|at| VALUES.map(|value| (at, value))) {
                let mut bytes = body.bytes[..cut].to_vec();
                bytes[at] = value;
                judge(&Body { bytes, ..body.clone() });
            }
        }
    }
    assert!(well_formed.values().all(|count| *count > 10_000), "{well_formed:?}");
}

#[test]
fn noise_is_judged_as_the_parser_does() {
    let mut rng = rng::stream(4, NodeId(0), "test", "noise");
    let mut below = |bound: usize| rng.next_u32() as usize % bound;
    let bodies = [simulated(), golden_bodies()].concat();
    for _ in 0..60_000 {
        let mut body = bodies[below(bodies.len())].clone();
        for _ in 0..below(6) {
            let at = below(body.bytes.len().min(120));
            body.bytes[at] ^= 1 << below(8);
        }
        if below(4) == 0 {
            body.bytes.extend((0..below(9)).map(|i| i as u8));
        }
        if below(8) == 0 {
            body.bytes.iter_mut().for_each(|byte| *byte = below(9) as u8);
        }
        if below(16) == 0 {
            body.kind = below(256) as u8;
        }
        if below(16) == 0 {
            body.service = ServiceId(below(30) as u8);
        }
        judged_alike(&body);
    }
}

/// Names that a part gives, and names that it refers to.
#[derive(Default)]
struct Names {
    given: BTreeMap<&'static str, String>,
    referred: BTreeSet<&'static str>,
}

impl Names {
    fn give(&mut self, name: &'static str, label: &str, shape: &str) {
        let meaning = format!("{label}, {shape}");
        let known = self.given.entry(name).or_insert_with(|| meaning.clone());
        assert_eq!(*known, meaning, "{name} means two things");
    }

    fn refer_to_text(&mut self, text: &'static str) {
        for name in text.split('{').skip(1) {
            self.referred.insert(name.split(['}', '#', '+', '?']).next().unwrap());
        }
    }

    fn read(&mut self, parts: &'static [Part]) {
        for part in parts {
            match part {
                Part::Field(field) => {
                    let shape = match field.shape {
                        Shape::Number(n) => {
                            format!("{}/{}/{}/{:?}", n.bytes, n.mask, n.hex, n.names)
                        }
                        Shape::Bytes(Length::Field(name) | Length::Square(name)) => {
                            self.referred.insert(name);
                            "bytes".into()
                        }
                        Shape::Bytes(_) => "bytes".into(),
                        other => format!("{other:?}"),
                    };
                    self.give(field.name, field.label, &shape);
                }
                Part::Byte(fields) => fields.iter().for_each(|field| {
                    assert!(matches!(field.shape, Shape::Number(n) if n.mask != 0), "{field:?}");
                    self.give(field.name, field.label, "bits");
                }),
                Part::Group { name, label, text, parts } => {
                    self.give(name, label, "group");
                    self.refer_to_text(text);
                    self.read(parts);
                }
                Part::Repeat(count, parts) => {
                    if let Count::Field(name) = count {
                        self.referred.insert(name);
                    }
                    self.read(parts);
                }
                Part::When(is, parts) => {
                    self.referred.insert(is.0);
                    self.read(parts);
                }
                Part::Include(parts) => self.read(parts),
                Part::Route(route) => {
                    self.referred.extend([route.hop, route.hops]);
                    self.referred.extend(route.crossing);
                    route.nodes.iter().for_each(|name| self.give(name, name, "node"));
                }
                Part::Check(check) => match *check {
                    Check::AtMost(a, b)
                    | Check::AtMostGreatest(a, b)
                    | Check::Below(a, b)
                    | Check::Differ(a, b)
                    | Check::Implies(a, b)
                    | Check::Excludes(a, b) => self.referred.extend([a, b]),
                    Check::Distinct(names) => self.referred.extend(names),
                    Check::Is(name, _) | Check::Acyclic(name, _) => {
                        self.referred.insert(name);
                    }
                    Check::Cut([size, generation, symbol, batches]) => {
                        self.referred.extend([size, generation, symbol]);
                        self.give(batches, batches, "batches");
                    }
                },
            }
        }
    }
}

#[test]
fn names_are_given_before_they_are_referred_to_and_mean_one_thing() {
    let mut all = Names::default();
    for (_, service, layouts) in services(REGISTRY) {
        let kinds: BTreeSet<u8> = layouts.iter().map(|layout| layout.kind).collect();
        assert_eq!(kinds.len(), layouts.len(), "{service} describes a kind twice");
        for layout in layouts {
            let mut names = Names::default();
            names.read(layout.parts);
            names.refer_to_text(layout.info);
            names.referred.extend(layout.batch);
            names.referred.extend(layout.variant.map(|(is, _)| is.0));
            match layout.flow {
                FlowOf::None => {}
                FlowOf::Id(name) => names.referred.extend([name]),
                FlowOf::Ends(from, to) => {
                    let plain = [from, to].map(|name| name.split('#').next().unwrap());
                    names.referred.extend(plain);
                }
            }
            let given: BTreeSet<_> = names.given.keys().copied().collect();
            let missing: Vec<_> = names.referred.difference(&given).collect();
            assert!(missing.is_empty(), "{service} {}: {missing:?}", layout.name);
            all.read(layout.parts);
        }
    }
    assert!(all.given.len() > 100);
}

#[test]
fn generated_files_are_as_the_generator_writes_them() {
    let read = |path| std::fs::read_to_string(root().join(path)).unwrap();
    let advice = "run: cargo run -p ncmesh-tests --example frames";
    assert!(read(DISSECTOR) == dissector(), "{DISSECTOR} is out of date; {advice}");
    let written = read(DOCUMENT);
    assert!(written == document(&written), "{DOCUMENT} is out of date; {advice}");
    for (name, bytes) in seeds() {
        let path = root().join(SEEDS).join(&name);
        assert!(std::fs::read(path).unwrap() == bytes, "{SEEDS}/{name} is out of date; {advice}");
    }
    // Every kind has its table, and the tables are of kinds that there are.
    for (kind, marks) in marks(&written) {
        assert_eq!(marks, 1, "{DOCUMENT} has {marks} tables of {kind}");
    }
}
