//! JSON Schemas (draft 7) of settings.

use super::{PORT, Section, all, protocols};
use ncmesh_engine::port::MAX_PORTS;
use ncmesh_engine::settings::{Declared, Fallback, Kind, Toml};
use serde_json::{Map, Value, json};

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Returns the schema of `node.toml`, as the file has it.
#[must_use]
pub fn node() -> String {
    let sections = all().into_iter();
    let described = |one: Section| {
        let entry = section(&one.settings);
        let is_list = one.name == PORT;
        let list = json!({ "type": "array", "items": entry, "minItems": 1, "maxItems": MAX_PORTS });
        (one.name.to_owned(), if is_list { list } else { entry })
    };
    let sections: Map<String, Value> = sections.map(described).collect();
    let schema = json!({
        "$schema": DRAFT,
        "$id": "urn:ncmesh:node",
        "title": "Configuration of an ncmesh node",
        "type": "object",
        "additionalProperties": false,
        "properties": sections,
        "required": ["node"],
        "oneOf": [{ "required": ["radio"] }, { "required": [PORT] }],
    });
    format!("{schema:#}\n")
}

/// Returns the schema of scenarios, as the file has it.
#[must_use]
pub fn scenario() -> String {
    let mut schema = json!({
        "$schema": DRAFT,
        "$id": "urn:ncmesh:scenario",
        "title": "Scenario of ncmesh",
    });
    for (name, settings) in ncmesh_sim::scenario::sections() {
        // A table is part of the one that its name begins with, which comes first.
        let path = name.split('.').filter(|part| !part.is_empty());
        let place = path.fold(&mut schema, |outer, part| &mut properties(outer)[part]);
        describe(place, section(&settings));
    }
    let protocols = protocols().map(|one| (one.name.to_owned(), section(&one.settings)));
    let protocols: Map<String, Value> = protocols.collect();
    let place = &mut properties(&mut schema)["protocol"];
    place["properties"] = json!(protocols);
    place["additionalProperties"] = json!(false);
    format!("{schema:#}\n")
}

/// Returns the properties of a table, of the entries of a list, or of the table that may stand in
/// place of a name.
fn properties(schema: &mut Value) -> &mut Value {
    let place = ["/items", "/anyOf/1"].into_iter().find(|place| schema.pointer(place).is_some());
    let pointer = format!("{}/properties", place.unwrap_or_default());
    schema.pointer_mut(&pointer).expect("a table of scenarios is declared after its outer one")
}

/// Says what a table has in it, where its own schema says that it is a table, a list of tables, one
/// or a list of them, or a name or table.
fn describe(place: &mut Value, section: Value) {
    let is_name_too = place["type"] == json!(["string", "object"]);
    let is_list_too = place["type"] == json!(["object", "array"]);
    if place["type"] == "array" {
        place["items"] = section;
    } else if is_list_too {
        place["anyOf"] = json!([section, { "type": "array", "items": section }]);
    } else if is_name_too {
        place["anyOf"] = json!([{ "type": "string" }, section]);
    } else if let (Some(place), Value::Object(section)) = (place.as_object_mut(), section) {
        place.extend(section);
    }
}

/// Returns the schema of a section.
fn section(settings: &[Declared]) -> Value {
    let properties: Map<String, Value> =
        settings.iter().map(|setting| (setting.key.to_owned(), property(setting))).collect();
    let required: Vec<&str> = settings
        .iter()
        .filter(|setting| setting.default == Fallback::Required)
        .map(|setting| setting.key)
        .collect();
    let mut section = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        section["required"] = json!(required);
    }
    section
}

/// Returns the schema of one setting.
fn property(setting: &Declared) -> Value {
    let mut schema = json!({ "description": description(setting) });
    let kinds: Vec<&str> = setting.kinds.iter().map(|kind| name(*kind)).collect();
    match (setting.choices, kinds.as_slice()) {
        ([], [one]) => schema["type"] = json!(one),
        ([], several) => schema["type"] = json!(several),
        (choices, _) => schema["enum"] = json!(choices),
    }
    if let Some(range) = &setting.range {
        let least = if range.is_above() { "exclusiveMinimum" } else { "minimum" };
        for (keyword, bound) in [(least, range.least()), ("maximum", range.most())] {
            if let Some(bound) = bound {
                schema[keyword] = number(bound);
            }
        }
    }
    if let Fallback::Value(value) = &setting.default {
        schema["default"] = match value {
            Toml::Float(float) => number(*float),
            other => json!(other),
        };
    }
    schema
}

/// Returns what an editor shows of a setting.
fn description(setting: &Declared) -> String {
    let mut text = plain(&setting.meaning);
    if !setting.allowed.is_empty() {
        text += &format!(" Allowed: {}.", plain(&setting.allowed));
    }
    match &setting.default {
        Fallback::Words(words) => text += &format!(" Default: {}.", plain(words)),
        Fallback::Value(value) => text += &format!(" Default: {value}."),
        Fallback::Required | Fallback::Nothing => {}
    }
    text
}

/// Returns a text of Markdown without its marks.
fn plain(text: &str) -> String {
    let text = text.replace("**", "").replace('`', "");
    let mut out = String::new();
    let mut rest = text.as_str();
    // A link is [words](place). Brackets that no place follows are text.
    while let Some((before, behind)) = rest.split_once('[') {
        out += before;
        let link = behind.split_once("](").and_then(|(words, place)| {
            let (_, after) = place.split_once(')')?;
            Some((words, after)).filter(|_| !words.contains(']'))
        });
        match link {
            Some((words, after)) => {
                out += words;
                rest = after;
            }
            None => {
                out.push('[');
                rest = behind;
            }
        }
    }
    out + rest
}

/// Returns a number without a fraction that it does not need.
fn number(value: f64) -> Value {
    let is_whole = value.fract() == 0.0 && value.abs() < 1e15;
    if is_whole { json!(value as i64) } else { json!(value) }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Whole => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::Text => "string",
        Kind::List => "array",
        Kind::Table => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn marks_of_markdown_are_taken_away() {
        assert_eq!(plain("**see** [there](a.md#b), `x`"), "see there, x");
        assert_eq!(plain("`[x, y]` or [a](b)"), "[x, y] or a");
    }
}
