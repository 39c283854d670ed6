//! Layouts as tables of the wire format.
//!
//! The page has a mark for each table, `<!-- frame: SERVICE KIND -->`. SERVICE is the first one of
//! its family. A layout that an earlier family has too has no table of its own. The outer frame's
//! header and the services have marks, too. The tables are put behind the marks where the site is
//! built.

use super::{are_alike, families};
use ncmesh_wire::layout::{Charset, Check, Count, Field, Is, Layout, Length, Number, Part, Shape};

use ncmesh_engines::registry;
use ncmesh_stack::summary::{Service, services};
use ncmesh_wire::frame::{HEADER, HEADER_LEN, TAG_LEN};

const HEADER_MARK: &str = "<!-- frame: header -->\n";
const SERVICES_MARK: &str = "<!-- frame: services -->\n";

fn mark(service: &str, layout: &Layout) -> String {
    format!("<!-- frame: {service} {} -->\n", layout.name)
}

/// Returns the layouts that have a table, each with its mark.
fn tables() -> Vec<(String, &'static Layout)> {
    let mut tables: Vec<(String, &Layout)> = Vec::new();
    for family in families() {
        for layout in family.layouts {
            if !tables.iter().any(|(_, known)| are_alike(known, layout)) {
                tables.push((mark(family.name, layout), layout));
            }
        }
    }
    tables
}

/// Returns all tables of the wire format, each behind its mark.
#[must_use]
pub fn document() -> String {
    let frames = tables().into_iter().map(|(mark, layout)| (mark, table(layout)));
    let outer = [(HEADER_MARK.to_owned(), header()), (SERVICES_MARK.to_owned(), ids())];
    outer.into_iter().chain(frames).map(|(mark, table)| format!("{mark}\n{table}\n")).collect()
}

/// Returns the table of the outer frame.
fn header() -> String {
    let mut rows =
        String::from("| offset | length | field | meaning |\n| --- | --- | --- | --- |\n");
    for field in HEADER {
        let offset = field.offset;
        let len = field.len;
        rows += &format!("| {offset} | {len} | {} | {} |\n", field.label, field.doc);
    }
    let around = HEADER_LEN + TAG_LEN;
    rows += &format!(
        "| {HEADER_LEN} | n - {around} | sealed body | \
         encrypted: service (1), kind (1), the service's own fields |\n"
    );
    rows + &format!("| n - {TAG_LEN} | {TAG_LEN} | tag | Poly1305 |\n")
}

/// Returns the table of services and their kinds of frames.
fn ids() -> String {
    let mut all: Vec<_> = services(registry()).collect();
    all.sort_by_key(|service| service.id);
    let mut rows = String::from("| service | name | kinds |\n| --- | --- | --- |\n");
    for Service { id, name, layouts } in all {
        let mut kinds: Vec<String> = Vec::new();
        for layout in layouts {
            let variant = layout.variant.map_or(String::new(), |(_, name)| format!(" or {name}"));
            kinds.push(format!("{} {}{variant}", layout.kind, layout.name));
        }
        rows += &format!("| {} | {name} | {} |\n", id.0, kinds.join(", "));
    }
    rows
}

/// Returns the marks of all tables.
#[must_use]
pub fn marks() -> Vec<String> {
    let frames = tables().into_iter().map(|(mark, _)| mark);
    [HEADER_MARK, SERVICES_MARK].map(str::to_owned).into_iter().chain(frames).collect()
}

fn table(layout: &Layout) -> String {
    let mut table = Table {
        rows: String::new(),
        checks: String::new(),
        offset: Some(0),
        condition: String::new(),
    };
    table.parts(layout.parts, 0);
    let head =
        "| offset | length | field | `ncmesh.` | meaning |\n| --- | --- | --- | --- | --- |\n";
    let checks = match table.checks.as_str() {
        "" => String::new(),
        checks => format!("\nMalformed unless:\n\n{checks}"),
    };
    format!("{head}{}{checks}", table.rows)
}

struct Table {
    rows: String,
    checks: String,
    /// Offset of the next field, as long as it is the same in all frames.
    offset: Option<usize>,
    /// Conditions under which the parts at hand are there, for the rules among them.
    condition: String,
}

impl Table {
    fn row(&mut self, cells: [&str; 5]) {
        self.rows += &format!("| {} |\n", cells.join(" | ")).replace("|  ", "| ");
    }

    /// Appends the row of a field; its length is known if it is the same in all frames.
    fn field(&mut self, length: &str, known: Option<usize>, field: [&str; 3], depth: usize) {
        let offset = self.offset.map_or(String::new(), |offset| offset.to_string());
        let [label, name, meaning] = field;
        let label = format!("{}{label}", "&middot; ".repeat(depth));
        self.row([&offset, length, &label, &format!("`{name}`"), meaning]);
        self.offset = self.offset.zip(known).map(|(offset, len)| offset + len);
    }

    fn note(&mut self, note: &str, depth: usize) {
        let note = format!("{}*{note}:*", "&middot; ".repeat(depth));
        self.row(["", "", &note, "", ""]);
        // From here on offsets differ between frames.
        self.offset = None;
    }

    fn parts(&mut self, parts: &[Part], depth: usize) {
        for part in parts {
            self.part(part, depth);
        }
    }

    fn part(&mut self, part: &Part, depth: usize) {
        match part {
            Part::Field(it) => {
                let (length, known) = length(it);
                let meaning = meaning(it);
                self.field(&length, known, [it.label, it.name, &meaning], depth);
            }
            Part::Byte(fields) => {
                let offset = self.offset.map_or(String::new(), |offset| offset.to_string());
                let label = format!("{}*a byte of:*", "&middot; ".repeat(depth));
                self.row([&offset, "1", &label, "", ""]);
                for field in *fields {
                    let Shape::Number(Number { mask, .. }) = field.shape else { continue };
                    let label = format!("{}{}", "&middot; ".repeat(depth + 1), field.label);
                    let bits = format!("bits {mask:#04x}");
                    let name = format!("`{}`", field.name);
                    let meaning = meaning(field);
                    self.row(["", &bits, &label, &name, &meaning]);
                }
                self.offset = self.offset.map(|offset| offset + 1);
            }
            Part::Group { name, label, parts, .. } => {
                let label = format!("{}*{label}*", "&middot; ".repeat(depth));
                self.row(["", "", &label, &format!("`{name}`"), ""]);
                self.parts(parts, depth + 1);
            }
            Part::Repeat(count, parts) => {
                self.note(&times(*count), depth);
                self.parts(parts, depth);
                self.offset = None;
            }
            Part::When(Is(name, value), parts) => {
                if !parts.iter().all(|part| matches!(part, Part::Check(_))) {
                    self.note(&format!("if `{name}` is {value}"), depth);
                }
                self.condition = format!("if `{name}` is {value}: ");
                self.parts(parts, depth + 1);
                self.condition.clear();
                self.offset = None;
            }
            Part::Include(parts) => self.parts(parts, depth),
            Part::Route(route) => {
                let [source, node, _] = route.nodes;
                let names = format!("{source}`, `{node}");
                self.field("2 each", None, ["Nodes", &names, route.doc], depth);
            }
            Part::Check(check) => {
                let rule = rule(check);
                let line = format!("- {}{rule}\n", self.condition);
                if !self.checks.contains(&line) {
                    self.checks += &line;
                }
            }
        }
    }
}

fn times(count: Count) -> String {
    match count {
        Count::Field(name) => format!("as many as `{name}` says"),
        Count::ToEnd(0, usize::MAX) => "to the end of the body".into(),
        Count::ToEnd(min, usize::MAX) => format!("to the end of the body, {min} or more"),
        Count::ToEnd(min, max) => format!("to the end of the body, {min} to {max}"),
    }
}

/// Returns the length of a field for the table, and as a number if it is the same in all frames.
fn length(field: &Field) -> (String, Option<usize>) {
    let fixed = |len: usize| (len.to_string(), Some(len));
    match field.shape {
        Shape::Number(number) => fixed(number.bytes),
        Shape::Scaled { bytes, .. } => fixed(bytes),
        Shape::Float => fixed(4),
        Shape::Flow => fixed(6),
        Shape::Bytes(Length::Fixed(len)) => fixed(len),
        Shape::Bytes(Length::Field(name)) => (format!("`{name}`"), None),
        Shape::Bytes(Length::Square(name)) => (format!("(n^2 + 7) / 8, n = `{name}`"), None),
        Shape::Bytes(Length::Rest(..)) => ("rest".into(), None),
        Shape::Bytes(Length::Prefixed(..)) | Shape::Text(_) => ("1 + n".into(), None),
    }
}

fn meaning(field: &Field) -> String {
    let mut says: Vec<String> = vec![field.doc.to_owned()];
    match field.shape {
        Shape::Number(number) => {
            let names = number.names.iter().map(|(value, name)| format!("{value} {name}"));
            says.push(names.collect::<Vec<_>>().join(", "));
            says.push(match (number.min, number.max) {
                (0, u64::MAX) => String::new(),
                (min, u64::MAX) => format!("{min} or more"),
                (min, max) => format!("{min} to {max}"),
            });
        }
        Shape::Scaled { unit, .. } => says.push(format!("in units of 1/{unit}")),
        Shape::Float => says.push("an IEEE 754 number, finite".into()),
        Shape::Flow => {}
        Shape::Bytes(Length::Prefixed(min, max) | Length::Rest(min, max)) => {
            says.push(match (min, max) {
                (0, usize::MAX) => String::new(),
                (1, 65_535 | usize::MAX) => "not empty".into(),
                (min, 65_535 | usize::MAX) => format!("{min} bytes or more"),
                (min, max) => format!("{min} to {max} bytes"),
            });
        }
        Shape::Bytes(_) => {}
        Shape::Text(charset) => says.push(match charset {
            Charset::Any => "short bytes, meant as UTF-8".into(),
            Charset::Utf8 => "short bytes, UTF-8".into(),
            Charset::Name => "short bytes: 1 to 63 letters, digits, `.`, `_`, `-`".into(),
        }),
    }
    says.retain(|says| !says.is_empty());
    says.join("; ")
}

fn rule(check: &Check) -> String {
    match *check {
        Check::AtMost(a, b) => format!("`{a}` is at most `{b}`"),
        Check::AtMostGreatest(a, b) => format!("`{a}` is at most the greatest `{b}`"),
        Check::Below(a, b) => format!("`{a}` is below `{b}`"),
        Check::Differ(a, b) => format!("`{a}` is not `{b}`"),
        Check::Distinct([name]) => format!("no `{name}` comes twice"),
        Check::Distinct(names) => format!("no pair of `{}` comes twice", names.join("` and `")),
        Check::Implies(a, b) => format!("`{a}` comes only with `{b}`"),
        Check::Excludes(a, b) => format!("`{a}` does not come with `{b}`"),
        Check::Is(name, value) => format!("`{name}` is {value}"),
        Check::Cut([size, generation, symbol, _]) => {
            format!("a file of `{size}` can be cut with\n  `{generation}` and `{symbol}`")
        }
        Check::Acyclic(name, most) => format!(
            "`{name}` are at most {most} nodes of the frame, lead in no circle, and\n  from the \
             second node nowhere"
        ),
    }
}
