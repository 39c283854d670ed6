//! Tests of the files that are generated from the declarations of frames.
//!
//! Readers and layouts come from one declaration. Where a frame is read by hand beside its layout,
//! the tests of the dissector hold them against each other.

mod frames;

use frames::simulated;
use ncmesh_engines::registry;
use ncmesh_stack::summary::{Service, services, summarise};
use ncmesh_tests::frames::{
    Body, DISSECTOR, DOCUMENT, SEEDS, are_alike, dissector, golden, marks, root, seeds,
};
use ncmesh_wire::layout::{Check, Count, Layout, Length, Part, Shape};
use std::collections::{BTreeMap, BTreeSet};

fn layout_of(body: &Body) -> Option<&'static Layout> {
    let known = services(registry()).find(|known| known.id == body.service)?;
    known.layouts.iter().find(|layout| layout.kind == body.kind)
}

/// Returns the name of a well-formed frame's kind.
fn kind_of(body: &Body) -> &'static str {
    let summary = summarise(registry(), body.sender, body.service, body.kind, &body.bytes);
    summary.unwrap_or_else(|| panic!("malformed: {body:02x?}")).kind
}

/// File schemes whose nodes report to their parents in a tree.
const REPORTS_OF_TREES: [u8; 2] = [18, 19];

#[test]
fn every_kind_of_frame_is_sent_and_well_formed() {
    let sent: BTreeSet<(u8, &str)> =
        simulated().iter().map(|body| (body.service.0, kind_of(body))).collect();
    for Service { id, name: service, layouts } in services(registry()) {
        for layout in layouts {
            let is_file = (16..20).contains(&id.0);
            if is_file && layout.name == "report" && !REPORTS_OF_TREES.contains(&id.0) {
                continue;
            }
            // Only a mesh with false packets in it has them: `polluters` asks that they are sent.
            if matches!(layout.name, "check_request" | "check") {
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
fn every_kind_of_frame_has_a_golden_vector() {
    let bodies: Vec<Body> = golden().into_iter().map(|(_, body)| body).collect();
    for body in &bodies {
        kind_of(body);
    }
    // Whichever scheme of its family has it.
    for Service { name: service, layouts, .. } in services(registry()) {
        for layout in layouts {
            let has = |body: &Body| layout_of(body).is_some_and(|it| are_alike(it, layout));
            assert!(bodies.iter().any(has), "{} of {service} has no vector", layout.name);
        }
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
                    Check::Cut([size, generation, symbol, generations]) => {
                        self.referred.extend([size, generation, symbol]);
                        self.give(generations, generations, "generations");
                    }
                },
            }
        }
    }
}

#[test]
fn names_are_given_before_they_are_referred_to_and_mean_one_thing() {
    let mut all = Names::default();
    for Service { name: service, layouts, .. } in services(registry()) {
        let kinds: BTreeSet<u8> = layouts.iter().map(|layout| layout.kind).collect();
        assert_eq!(kinds.len(), layouts.len(), "{service} describes a kind twice");
        for layout in layouts {
            let mut names = Names::default();
            names.read(layout.parts);
            names.refer_to_text(layout.info);
            names.referred.extend(layout.variant.map(|(is, _)| is.0));
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
    for (name, bytes) in seeds() {
        let path = root().join(SEEDS).join(&name);
        assert!(std::fs::read(path).unwrap() == bytes, "{SEEDS}/{name} is out of date; {advice}");
    }
}

#[test]
fn the_wire_format_has_a_place_for_every_table() {
    let page = std::fs::read_to_string(root().join(DOCUMENT)).unwrap();
    let mut on_page: Vec<&str> =
        page.split_inclusive('\n').filter(|line| line.starts_with("<!--")).collect();
    let mut marks = marks();
    on_page.sort_unstable();
    marks.sort_unstable();
    assert_eq!(on_page, marks, "marks of {DOCUMENT}");
}
