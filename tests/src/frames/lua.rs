//! Layouts as tables of the Wireshark dissector, `wireshark/ncmesh.lua`.

use super::families;
use ncmesh_wire::layout::{Charset, Check, Count, Field, Is, Layout, Length, Part, Shape};

const HEAD: &str = "\
-- Layouts of ncmesh frames, for ncmesh.lua. Generated; do not edit. After a change of a layout:
--
--     cargo run -p ncmesh-tests --example frames
";

/// Columns of a line.
const WIDTH: usize = 100;

/// Returns the file with the tables of the dissector.
#[must_use]
pub fn dissector() -> String {
    let mut services: Vec<(u8, Lua)> = Vec::new();
    let mut layouts = Vec::new();
    for family in families() {
        let shared = text(family.name);
        let row = |name| Lua::Table(vec![(None, text(name)), (None, shared.clone())]);
        services.extend(family.services.iter().map(|(id, name)| (*id, row(name))));
        let kinds = family.layouts.iter();
        let kinds = kinds.map(|it| (Some(format!("[{}]", it.kind)), layout(it))).collect();
        layouts.push((Some(family.name.to_owned()), Lua::Table(kinds)));
    }
    services.sort_by_key(|(id, _)| *id);
    let services = services.into_iter().map(|(id, row)| (Some(format!("[{id}]")), row)).collect();
    let all = Lua::Table(vec![
        (Some("services".into()), Lua::Table(services)),
        (Some("layouts".into()), Lua::Table(layouts)),
    ]);
    let mut out = format!("{HEAD}\nreturn ");
    all.write(0, "return ".len(), &mut out);
    out.push('\n');
    out
}

/// A value of Lua.
#[derive(Clone)]
enum Lua {
    Atom(String),
    /// Entries with their keys; those without are a sequence.
    Table(Vec<(Option<String>, Lua)>),
}

fn text(text: &str) -> Lua {
    Lua::Atom(format!("{text:?}"))
}

fn number(number: impl ToString + Copy) -> Lua {
    Lua::Atom(number.to_string())
}

fn item(value: Lua) -> (Option<String>, Lua) {
    (None, value)
}

fn key(name: &str, value: Lua) -> (Option<String>, Lua) {
    (Some(name.to_owned()), value)
}

/// Returns a table that begins with the name of an operation.
fn operation(name: &str, rest: impl IntoIterator<Item = Lua>) -> Lua {
    Lua::Table([text(name)].into_iter().chain(rest).map(item).collect())
}

impl Lua {
    /// Returns the value on one line.
    fn line(&self) -> String {
        match self {
            Self::Atom(atom) => atom.clone(),
            Self::Table(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(key, value)| line(key.as_deref(), value)).collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// Appends the value. The line is indented by `indent`, and `used` columns of it are used.
    fn write(&self, indent: usize, used: usize, out: &mut String) {
        let whole = self.line();
        let margin = format!("\n{}", " ".repeat(indent + 2));
        let entries = match self {
            _ if used + whole.len() < WIDTH => return out.push_str(&whole),
            Self::Table(entries) => entries,
            Self::Atom(text) => {
                // A long text is put together from two, cut at a space.
                let end = text.len().min(WIDTH - used - 1);
                let (front, back) = text.split_at(text[..end].rfind(' ').map_or(end, |at| at + 1));
                return *out += &format!("{front}\"{margin}.. \"{back}");
            }
        };
        // Plain entries at the front share lines; each table has its own.
        out.push('{');
        let mut column = used + 1;
        let mut in_front = true;
        for entry in entries {
            let (key, value) = entry;
            in_front &= matches!(value, Self::Atom(_));
            let short = line(key.as_deref(), value);
            if in_front && column + short.len() + 2 <= WIDTH {
                out.push(' ');
                column += 1;
            } else {
                out.push_str(&margin);
                column = indent + 2;
            }
            let head = key.as_ref().map_or(String::new(), |key| format!("{key} = "));
            out.push_str(&head);
            value.write(indent + 2, column + head.len(), out);
            out.push(',');
            column += short.len() + 1;
        }
        out.push_str(&margin[..=indent]);
        out.push('}');
    }
}

fn line(key: Option<&str>, value: &Lua) -> String {
    match key {
        Some(key) => format!("{key} = {}", value.line()),
        None => value.line(),
    }
}

fn layout(layout: &Layout) -> Lua {
    let mut entries = vec![key("name", text(layout.name)), key("info", text(layout.info))];
    if let Some((Is(field, value), name)) = layout.variant {
        let variant = [text(field), number(value), text(name)].map(item);
        entries.push(key("variant", Lua::Table(variant.into())));
    }
    entries.push(key("parts", parts(layout.parts)));
    Lua::Table(entries)
}

fn parts(list: &[Part]) -> Lua {
    let mut entries = Vec::new();
    append(list, &mut entries);
    Lua::Table(entries.into_iter().map(item).collect())
}

fn append(list: &[Part], out: &mut Vec<Lua>) {
    for part in list {
        match part {
            Part::Field(it) => out.push(field(it)),
            Part::Byte(fields) => out.push(operation("byte", fields.iter().map(field))),
            Part::Group { name, label, text: line, parts: inner } => {
                out.push(operation("group", [text(name), text(label), text(line), parts(inner)]));
            }
            Part::Repeat(count, inner) => {
                let count = match count {
                    Count::Field(name) => text(name),
                    Count::ToEnd(min, usize::MAX) => Lua::Table(vec![item(number(min))]),
                    Count::ToEnd(min, max) => {
                        Lua::Table([min, max].map(|n| item(number(n))).into())
                    }
                };
                out.push(operation("repeat", [count, parts(inner)]));
            }
            Part::When(Is(name, value), inner) => {
                out.push(operation("when", [text(name), number(value), parts(inner)]));
            }
            Part::Include(inner) => append(inner, out),
            Part::Route(route) => {
                let names = [route.hop, route.hops].into_iter().chain(route.nodes);
                out.push(operation("route", names.chain(route.crossing).map(text)));
            }
            Part::Check(it) => out.push(check(it)),
        }
    }
}

fn field(field: &Field) -> Lua {
    let mut options = Vec::new();
    let bounds = |min: usize, max: usize| {
        let min = (min > 0).then(|| key("min", number(min)));
        min.into_iter().chain((max < usize::MAX).then(|| key("max", number(max))))
    };
    let (kind, more): (&str, Vec<Lua>) = match field.shape {
        Shape::Number(it) => {
            if it.plus > 0 {
                options.push(key("plus", number(it.plus)));
            }
            if it.min > 0 {
                options.push(key("min", number(it.min)));
            }
            if it.max < u64::MAX {
                options.push(key("max", number(it.max)));
            }
            if it.hex {
                options.push(key("hex", Lua::Atom("true".into())));
            }
            if !it.names.is_empty() {
                let names =
                    it.names.iter().map(|(value, name)| (Some(format!("[{value}]")), text(name)));
                options.push(key("names", Lua::Table(names.collect())));
            }
            match it.mask {
                0 => ("number", vec![number(it.bytes)]),
                mask => ("bits", vec![Lua::Atom(format!("{mask:#04x}"))]),
            }
        }
        Shape::Scaled { bytes, unit } => ("scaled", vec![number(bytes), number(unit)]),
        Shape::Float => ("float", Vec::new()),
        Shape::Flow => ("flow", Vec::new()),
        Shape::Bytes(length) => {
            match length {
                Length::Fixed(len) => options.push(key("fixed", number(len))),
                Length::Field(name) => options.push(key("field", text(name))),
                Length::Square(name) => options.push(key("square", text(name))),
                Length::Prefixed(min, max) => {
                    options.push(key("prefixed", Lua::Atom("true".into())));
                    options.extend(bounds(min, max));
                }
                Length::Rest(min, max) => {
                    options.push(key("rest", Lua::Atom("true".into())));
                    options.extend(bounds(min, max));
                }
            }
            ("bytes", Vec::new())
        }
        Shape::Text(charset) => {
            let name = match charset {
                Charset::Any => "any",
                Charset::Utf8 => "utf8",
                Charset::Name => "name",
            };
            ("text", vec![text(name)])
        }
    };
    let Lua::Table(mut entries) =
        operation(kind, [text(field.name), text(field.label)].into_iter().chain(more))
    else {
        unreachable!("an operation is a table")
    };
    entries.extend(options);
    Lua::Table(entries)
}

fn check(check: &Check) -> Lua {
    let of = |name: &str, rest: Vec<Lua>| operation("check", [text(name)].into_iter().chain(rest));
    match *check {
        Check::AtMost(a, b) => of("at_most", vec![text(a), text(b)]),
        Check::AtMostGreatest(a, b) => of("at_most_greatest", vec![text(a), text(b)]),
        Check::Below(a, b) => of("below", vec![text(a), text(b)]),
        Check::Differ(a, b) => of("differ", vec![text(a), text(b)]),
        Check::Distinct(names) => of("distinct", names.iter().map(|name| text(name)).collect()),
        Check::Implies(a, b) => of("implies", vec![text(a), text(b)]),
        Check::Excludes(a, b) => of("excludes", vec![text(a), text(b)]),
        Check::Is(name, value) => of("is", vec![text(name), number(value)]),
        Check::Cut(names) => of("cut", names.map(text).into()),
        Check::Acyclic(name, most) => of("acyclic", vec![text(name), number(most)]),
    }
}
