//! Names, units and meanings of the values of a state, for everything that shows them.

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets of the tunnel's hosts, or of a scheme.
    Packets,
    /// Frames on the air.
    Frames,
    /// Bytes.
    Bytes,
    /// Bits.
    Bits,
    /// Seconds.
    Seconds,
    /// Seconds since something happened.
    Ago,
    /// Kilobits in a second.
    KilobitRate,
    /// Bits in a second.
    BitRate,
    /// Packets in a slot of a schedule.
    SlotRate,
    /// Transmissions of a frame.
    Transmissions,
    /// How many times one quantity is another.
    Times,
    /// A share, 0 to 1.
    Share,
    /// Something that is no quantity, such as a name.
    Plain,
}

impl Unit {
    /// Returns its name in metrics and in the console's TypeScript; empty if it has none.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Frames => "frames",
            Self::Bytes => "bytes",
            Self::Bits => "bits",
            Self::Seconds | Self::Ago => "seconds",
            Self::KilobitRate => "kilobits_per_second",
            Self::BitRate => "bits_per_second",
            Self::SlotRate => "packets_per_slot",
            Self::Transmissions => "transmissions",
            Self::Share | Self::Times => "ratio",
            Self::Plain => "",
        }
    }

    /// Returns a value as people read it, such as `12.3 ms`, `25 %` or `40`.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 0.1 => format!("{:.1} ms", value * 1e3),
            Self::Seconds if value < 1.0 => format!("{:.0} ms", value * 1e3),
            Self::Seconds => format!("{value:.2} s"),
            Self::Ago => format!("{value:.0} s ago"),
            Self::KilobitRate => format!("{value:.0} kbit/s"),
            Self::BitRate => format!("{:.0} kbit/s", value / 1e3),
            Self::SlotRate | Self::Transmissions | Self::Times => format!("{value:.2}"),
            Self::Share => format!("{:.0} %", value * 100.0),
            Self::Bytes => scaled(value, "B"),
            Self::Bits => scaled(value, "bit"),
            Self::Packets | Self::Frames | Self::Plain => format!("{value:.0}"),
        }
    }
}

/// Returns a quantity with the prefix that fits, such as `2.3 MB`.
fn scaled(value: f64, unit: &str) -> String {
    match value {
        ..1e3 => format!("{value:.0} {unit}"),
        ..1e6 => format!("{:.1} k{unit}", value / 1e3),
        ..1e9 => format!("{:.1} M{unit}", value / 1e6),
        _ => format!("{:.1} G{unit}", value / 1e9),
    }
}

/// Returns the last of some names: that of the API, if it has one of its own.
pub(crate) const fn last_of(names: &[&'static str]) -> &'static str {
    names[names.len() - 1]
}

/// A value of a state as it was declared.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in JSON.
    pub name: &'static str,
    /// Name for people, as heading of a column.
    pub title: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Meaning of the value, in sentences.
    meaning: &'static str,
    /// Types in TypeScript.
    pub(crate) types: fn() -> Types,
}

impl Field {
    /// Declares a value.
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        unit: Unit,
        meaning: &'static str,
        types: fn() -> Types,
    ) -> Self {
        Self { name, title, unit, meaning, types }
    }

    /// Returns whether it only grows.
    #[must_use]
    pub fn is_counter(&self) -> bool {
        matches!((self.types)().rule, Rule::Counter | Rule::Counters)
    }

    /// Returns what it is, in sentences.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim_ascii_start()
    }

    /// Returns its title as heading of a column on a terminal.
    #[must_use]
    pub fn heading(&self) -> String {
        self.title.to_uppercase()
    }

    /// Returns name and value as a line of a command has them, such as `lost 3` or `RTT 12.3 ms`.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        let (first, rest) = self.title.split_at(1);
        // An abbreviation keeps its capitals.
        let is_word = rest.starts_with(|c: char| c.is_lowercase());
        let first = if is_word { first.to_lowercase() } else { first.to_owned() };
        format!("{first}{rest} {}", self.unit.show(value))
    }
}

/// How the console's reader treats a value of a key and its change in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A counter: a string in keys, and its growth in ticks.
    Counter,
    /// A list of counters.
    Counters,
    /// Anything else: keys and ticks have the value.
    Value,
    /// A list of numbers to which ticks add some.
    Numbers,
    /// Parts of this state at some nodes, each with the node's id.
    Members,
}

/// Types of a value in the console's TypeScript.
#[derive(Clone, Debug)]
pub struct Types {
    /// Type in a key.
    pub key: String,
    /// Type in a tick.
    pub tick: String,
    /// Type in the state that the console keeps.
    pub now: String,
    /// Rule by which the console reads it.
    pub rule: Rule,
    /// Whether a key may leave it out, because it is unknown.
    pub is_optional: bool,
}

impl Types {
    /// Returns the types of a value that keys and ticks write alike.
    pub(crate) fn value(name: &str, is_optional: bool) -> Self {
        let or_null = if is_optional { format!("{name} | null") } else { name.to_owned() };
        let key = name.to_owned();
        Self { key, tick: or_null.clone(), now: or_null, rule: Rule::Value, is_optional }
    }
}

/// Returns the name that a state has in the console's memory.
pub(crate) fn now_name(state: &str) -> String {
    format!("{}Now", state.trim_end_matches("State"))
}
