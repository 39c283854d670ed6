//! Tables of the reference, made from the types of the API and from the list of metrics.

use super::fleet::{FleetEvent, FleetEvents, FleetMember, FleetNode, FleetRollout, FleetStatus};
use super::types::{
    Coding, Direction, Flow, Hold, Hooks, KeptParts, Peer, PeerPort, PortState, Problem, Receiver,
    State, Status, Stopped, Stream, StreamQueue, StreamReceiving, StreamSending, Traffic, Transfer,
    Tunnel, TunnelRoute,
};
use ncmesh_stack::ControlUsage;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;

/// Mark before the tables of a page.
const BEGIN: &str = "<!-- begin tables -->\n";
/// Mark behind the tables of a page.
const END: &str = "<!-- end tables -->";

/// A page of the reference with tables between marks.
pub struct Page {
    /// The file.
    pub path: PathBuf,
    /// The tables as they ought to be.
    tables: String,
}

impl Page {
    /// Returns all pages, which lie in `docs/reference`.
    #[must_use]
    pub fn all() -> [Self; 2] {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference"));
        [
            Self { path: folder.join("api.md"), tables: api_tables() },
            Self { path: folder.join("metrics.md"), tables: crate::node::metrics::table() },
        ]
    }

    /// Returns the text of the page with its tables up to date. `None` if it lacks the marks.
    #[must_use]
    pub fn renew(&self, text: &str) -> Option<String> {
        let (before, rest) = text.split_once(BEGIN)?;
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{BEGIN}\n{}\n{END}{after}", self.tables))
    }
}

/// A type that has a section.
struct Section {
    title: &'static str,
    name: String,
    schema: Value,
}

impl Section {
    fn of<T: JsonSchema>(generator: &mut SchemaGenerator, title: &'static str) -> Self {
        let name = T::schema_name().into_owned();
        generator.subschema_for::<T>();
        let schema = generator.definitions().get(&name).cloned().unwrap_or_default();
        Self { title, name, schema }
    }
}

/// Returns a section for each type of the API's answers.
fn api_tables() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    macro_rules! sections {
        ($($title:literal: $type:ty,)*) => {
            [$(Section::of::<$type>(&mut generator, $title)),*]
        };
    }
    let sections = sections![
        "Status": Status,
        "Ports": PortState,
        "Parts of files": KeptParts,
        "Hooks": Hooks,
        "Control": ControlUsage,
        "Frames": Traffic,
        "Tunnel": Tunnel,
        "Routes": TunnelRoute,
        "Flows": Flow,
        "Coding": Coding,
        "Hold times": Hold,
        "Stopped neighbours": Stopped,
        "Peers": Peer,
        "Ports of peers": PeerPort,
        "Transfers": Transfer,
        "Receivers": Receiver,
        "Directions": Direction,
        "States": State,
        "Streams": Stream,
        "Sources of streams": StreamSending,
        "Receivers of streams": StreamReceiving,
        "Roll-outs": FleetStatus,
        "Members": FleetMember,
        "Roll-outs led here": FleetRollout,
        "Nodes of a roll-out": FleetNode,
        "Events of a roll-out": FleetEvents,
        "An event of a roll-out": FleetEvent,
        "Problems": Problem,
        "Queues of streams": StreamQueue,
    ];
    sections.iter().map(|section| table(section, &sections)).collect::<Vec<_>>().join("\n")
}

/// Returns the section of a type.
fn table(section: &Section, all: &[Section]) -> String {
    let Section { title, schema, .. } = section;

    let mut text = format!("## {title}\n\n{}\n\n", wrapped(&meaning(schema)));
    // A type that is a choice has a row for each of its values.
    if let Some(values) = schema["oneOf"].as_array() {
        text.push_str("| value | meaning |\n| --- | --- |\n");
        for value in values {
            let name = value["const"].as_str().unwrap_or_default();
            let _ = writeln!(text, "| `{name}` | {} |", meaning(value));
        }
        return text;
    }

    // All other types are objects, with a row for each field.
    text.push_str("| field | type | meaning |\n| --- | --- | --- |\n");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "| `{name}` | {} | {} |", words(field, all), meaning(field));
    }

    text
}

/// Returns a description in one line.
fn meaning(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

/// Returns a text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < 100 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Returns the type of a value in words.
fn words(schema: &Value, all: &[Section]) -> String {
    // Types with a section of their own are linked, others are described in place.
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or_default();
        let section = all.iter().find(|section| section.name == name);
        return section.map_or_else(
            || "table".into(),
            |Section { title, .. }| {
                let anchor = title.to_lowercase().replace(' ', "-");
                format!("[{title}](#{anchor})")
            },
        );
    }

    // An optional field is either its type or null.
    if let Some(either) = schema["anyOf"].as_array() {
        return either.iter().map(|of| words(of, all)).collect::<Vec<_>>().join(" or ");
    }
    if let Some(types) = schema["type"].as_array() {
        let one = |of: &Value| {
            let mut schema = schema.clone();
            schema["type"] = of.clone();
            words(&schema, all)
        };
        return types.iter().map(one).collect::<Vec<_>>().join(" or ");
    }

    match schema["type"].as_str() {
        Some("string") => "text".into(),
        Some("boolean") => "true or false".into(),
        Some("array") => format!("list of {}", words(&schema["items"], all)),
        Some("object") => {
            // A map has the type of its values in one of these two, by what its names may be.
            let entry = &schema["additionalProperties"];
            let entry = match schema["patternProperties"].as_object() {
                Some(patterns) => patterns.values().next().unwrap_or(entry),
                None => entry,
            };
            format!("by name: {}", words(entry, all))
        }
        Some(other) => other.into(),
        None => "any".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_reference_are_up_to_date() {
        for page in Page::all() {
            let text = std::fs::read_to_string(&page.path).unwrap();
            assert!(
                page.renew(&text).as_ref() == Some(&text),
                "{}: cargo run -p ncmesh-node --example reference",
                page.path.display()
            );
        }
    }
}
