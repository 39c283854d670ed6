//! All types of the schema in TypeScript, as the console's source has them.

use super::field::{Rule, now_name};
use super::typescript::{Interface, comment};
use super::value::State;
use super::*;
use std::fmt::Write;

/// Returns the state that the console keeps, and the list of its values by which it reads them.
/// Values in `own` name its node.
fn now<S: State>(own: &[&str], fields: &[Field]) -> String {
    let [state, _] = S::names();
    let name = now_name(state);
    // The node's id identifies a member, and so is none of the values that change.
    let mut interface = Interface::new();
    for name in own {
        interface.field(name, "Id of the node.", "number");
    }

    // The console merges ticks by this list, so its code names no value.
    let mut list = String::new();
    for Field { name, title, unit, types, .. } in fields {
        let types = types();
        interface.field(name, "", &types.now);
        let rule = format!("{:?}", types.rule).to_lowercase();
        // Only members are lists of states. The name of their type is made from that of the key.
        let of = types.key.trim_end_matches("State[]").to_lowercase();
        let of = if types.rule == Rule::Members { list_name(&of) } else { "null".into() };
        let unit = unit.name();
        let names = format!("name: \"{name}\", title: \"{title}\", unit: \"{unit}\"");
        let _ = writeln!(list, "  {{ {names}, rule: \"{rule}\", of: {of} }},");
    }

    // A field without a meaning leaves an empty comment behind.
    let interface = interface.finish().replace("/**\n * \n */\n", "");

    let list_name = list_name(&name.trim_end_matches("Now").to_lowercase());
    let about = comment(&format!("A `{state}` as the console keeps it: counters are numbers."));
    let about_list = comment(&format!("Values of a `{state}`."));
    format!(
        "\n{about}export type {name} = {interface};\n\n\
         {about_list}export const {list_name}: readonly Field[] = [\n{list}];\n"
    )
}

/// Returns the name of the list of the values of a state.
fn list_name(state: &str) -> String {
    format!("{}_FIELDS", state.to_uppercase())
}

/// Returns the declaration of a type in TypeScript, with its doc comment.
#[must_use]
pub fn declaration<T: TS>() -> String {
    // Unions and fields begin on lines of their own, and no line ends with a space. Nor is one
    // longer than 100 columns: then it is a union of words.
    let declared = format!("export {}", T::decl().replace(" | {", "\n  | {").replace(" \n", "\n"));
    let short = |line: &str| match line.len() {
        ..=100 => line.to_owned(),
        _ => line.replace(" | \"", "\n  | \""),
    };

    let lines: Vec<String> = declared.lines().map(short).collect();
    format!("\n{}{}\n", T::docs().unwrap_or_default(), lines.join("\n"))
}

/// Returns the types of the schema in TypeScript, as the console's source has them.
#[must_use]
pub fn typescript() -> String {
    const BY: &str = "cargo run -p ncmesh-console --example types";
    let mut text = format!("// Generated; do not edit: {BY}\n");
    // From the message down.
    macro_rules! declare {
        ($($type:ty),+ $(,)?) => { $(text.push_str(&declaration::<$type>());)+ };
    }
    declare!(
        Message,
        Meta,
        Source,
        Node,
        Position,
        Link,
        Transfer,
        Flow,
        Stream,
        Layer,
        Rollout,
        Key,
        NodeTable,
        LinkTable,
        TransferState,
        ReceiverState,
        Rank,
        FlowState,
        StreamState,
        StreamReceiverState,
        RolloutState,
        RolloutNodeState,
        Hop,
        Places,
        Tick,
        NodeTicks,
        LinkTicks,
        TransferTick,
        ReceiverTick,
        FlowTick,
        StreamTick,
        StreamReceiverTick,
        RolloutTick,
        RolloutNodeTick,
        Moves,
        Event,
        EventKind,
        Stage,
        Count,
    );

    // Lists of fields, by which the console merges ticks and names columns.
    text.push_str(FIELD);
    text.push_str(&now::<FlowState>(&[], FlowState::FIELDS));
    // A list comes after those that it names.
    text.push_str(&now::<ReceiverState>(&["node"], ReceiverState::FIELDS));
    text.push_str(&now::<TransferState>(&[], TransferState::FIELDS));
    text.push_str(&now::<StreamReceiverState>(&["node"], StreamReceiverState::FIELDS));
    text.push_str(&now::<StreamState>(&[], StreamState::FIELDS));
    text.push_str(&now::<RolloutNodeState>(&["node"], RolloutNodeState::FIELDS));
    text.push_str(&now::<RolloutState>(&[], RolloutState::FIELDS));

    let words = |stage: Stage| {
        let name = serde_json::to_string(&stage).unwrap_or_default();
        format!("  {}: \"{}\",\n", name.trim_matches('"'), stage.words())
    };
    let words: String = Stage::ALL.into_iter().map(words).collect();
    let about = comment("Names of stages for people.");
    let _ = write!(text, "\n{about}export const STAGES: Record<Stage, string> = {{\n{words}}};\n");

    // The console adds a tick to each column of counters alike, so their names are enough.
    for (name, fields) in [("NODE", NodeTable::FIELDS), ("LINK", LinkTable::FIELDS)] {
        let names: Vec<String> =
            fields.iter().map(|field| format!("  \"{}\",\n", field.name)).collect();
        let about = comment("Columns of counters of a table.");
        let names = names.concat();
        let _ = write!(text, "\n{about}export const {name}_COUNTERS = [\n{names}] as const;\n");
    }

    text
}

/// The type of the lists of values.
const FIELD: &str = r#"
/**
 * A value of a state: its name in messages, its title for people, and its unit.
 */
export type Field = {
name: string,
title: string,
unit: "packets" | "frames" | "bytes" | "bits" | "seconds" | "ratio" | "",
/**
 * How keys and ticks write it: a counter is a string in keys and its growth in ticks, numbers are a
 * set that grows, members are states of their own, anything else is told as a value.
 */
rule: "counter" | "counters" | "value" | "numbers" | "members",
/**
 * Values of members.
 */
of: readonly Field[] | null,
};
"#;
