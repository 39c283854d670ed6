//! Values of a state: how a key writes them, and how a tick tells that they changed.
//!
//! The type of a value decides both. A value that may be unknown is an `Option`: a key leaves it
//! out, and a tick writes null when it becomes unknown. The rest of the schema only names values
//! and their types; see [`state!`](super::declare).

use super::field::{Field, Rule, Types, Unit, now_name};
use super::{Count, Hop, Rank, Stage, delay, share};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A change that a tick cannot tell, so that a key takes its place: a list has grown, a counter has
/// fallen, or a counter has become known or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tick cannot tell this change")]
pub struct NeedsKey;

/// A tick that does not fit the key before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tick names a node, link, transfer, flow, stream or roll-out that there is not")]
pub struct Mismatch;

/// Change of a value that a tick tells as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// It is the same as before. The tick leaves it out.
    #[default]
    Same,
    /// It was known, and is not known any more. The tick has null.
    Unknown,
    /// It is this now.
    Is(T),
}

impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Same | Self::Unknown => serializer.serialize_none(),
            Self::Is(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Option::<T>::deserialize(deserializer)?;
        Ok(value.map_or(Self::Unknown, Self::Is))
    }
}

/// A value of a state.
pub trait Value: Clone + PartialEq {
    /// Change that a tick tells. The default says that nothing changed.
    type Change: Clone + Default + PartialEq + Serialize + DeserializeOwned;

    /// Returns what a tick says of the change from `before`.
    ///
    /// # Errors
    /// A tick cannot tell it.
    fn since(&self, before: &Self) -> Result<Self::Change, NeedsKey>;

    /// Takes the change of a tick.
    ///
    /// # Errors
    /// The change does not fit this value.
    fn apply(&mut self, change: &Self::Change) -> Result<(), Mismatch>;

    /// Returns whether it is not known: keys leave it out.
    fn is_unknown(&self) -> bool {
        false
    }

    /// Returns it as a number, if it is one and known.
    fn number(&self) -> Option<f64> {
        None
    }

    /// Returns its types in TypeScript.
    fn types() -> Types;
}

/// A value that the HTTP API has too.
pub trait Told: Value {
    /// The value in the API; null if it is unknown.
    type Plain;

    /// Returns the value as a console is told it: times and shares are rounded.
    fn told(plain: &Self::Plain, unit: Unit) -> Self;

    /// Returns the value of the API as a number, if it is known. Counts of layers are summed up; of
    /// other values the greatest is taken.
    fn plain_number(plain: &Self::Plain) -> Option<f64>;
}

/// Counters, which are numbers in the API.
macro_rules! told_counters {
    ($($type:ty: $plain:ty, $told:expr, $number:expr;)*) => { $(
        impl Told for $type {
            type Plain = $plain;

            fn told(plain: &$plain, _: Unit) -> Self {
                $told(plain)
            }

            fn plain_number(plain: &$plain) -> Option<f64> {
                $number(plain)
            }
        }
    )* };
}

told_counters! {
    Count: u64, |count: &u64| Count(*count), |count: &u64| Some(*count as f64);
    Option<Count>: Option<u64>,
        |count: &Option<u64>| count.map(Count),
        |count: &Option<u64>| count.map(|count| count as f64);
    Vec<Count>: Vec<u64>,
        |counts: &Vec<u64>| counts.iter().copied().map(Count).collect(),
        |counts: &Vec<u64>| Some(counts.iter().sum::<u64>() as f64);
}

/// Values that the API writes as keys do.
macro_rules! told_alike {
    ($($type:ty),* $(,)?) => { $(
        impl Told for $type {
            type Plain = Self;

            fn told(plain: &Self, _: Unit) -> Self {
                plain.clone()
            }

            fn plain_number(plain: &Self) -> Option<f64> {
                plain.number()
            }
        }
    )* };
}

told_alike!(u64, Option<u64>, Vec<u64>, f64);

/// Returns a value as a console is told it: times and shares are rounded.
fn rounded(value: f64, unit: Unit) -> f64 {
    match unit {
        Unit::Seconds => delay(value),
        Unit::Share => share(value),
        _ => value,
    }
}

impl Told for Vec<f64> {
    type Plain = Self;

    fn told(plain: &Self, unit: Unit) -> Self {
        plain.iter().map(|value| rounded(*value, unit)).collect()
    }

    fn plain_number(plain: &Self) -> Option<f64> {
        plain.number()
    }
}

impl Told for Option<f64> {
    type Plain = Self;

    fn told(plain: &Self, unit: Unit) -> Self {
        plain.map(|value| rounded(value, unit))
    }

    fn plain_number(plain: &Self) -> Option<f64> {
        *plain
    }
}

/// The values of a state as the HTTP API has them.
pub trait Values {
    /// Their names, titles, units and meanings.
    const FIELDS: &'static [Field];

    /// Returns each of them as a number, in the order of [`FIELDS`](Self::FIELDS); `None` if it is
    /// unknown. Lists of layers are summed up.
    fn known(&self) -> Vec<Option<f64>>;

    /// Returns those that are known numbers.
    fn numbers(&self) -> impl Iterator<Item = (&'static Field, f64)> {
        let all = Self::FIELDS.iter().zip(self.known());
        all.filter_map(|(field, number)| Some((field, number?)))
    }
}

/// Returns whether a tick can leave out what it says of a value.
pub(crate) fn is_same<C: Default + PartialEq>(change: &C) -> bool {
    *change == C::default()
}

impl Value for Count {
    type Change = u32;

    fn since(&self, before: &Self) -> Result<u32, NeedsKey> {
        self.growth_since(*before).ok_or(NeedsKey)
    }

    fn apply(&mut self, growth: &u32) -> Result<(), Mismatch> {
        self.grow(*growth);
        Ok(())
    }

    fn number(&self) -> Option<f64> {
        Some(self.0 as f64)
    }

    fn types() -> Types {
        let number = || "number".to_owned();
        Types {
            key: "Count".into(),
            tick: number(),
            now: number(),
            rule: Rule::Counter,
            is_optional: false,
        }
    }
}

impl Value for Option<Count> {
    type Change = u32;

    fn since(&self, before: &Self) -> Result<u32, NeedsKey> {
        match (self, before) {
            (Some(now), Some(before)) => now.since(before),
            (None, None) => Ok(0),
            (Some(_), None) | (None, Some(_)) => Err(NeedsKey),
        }
    }

    fn apply(&mut self, growth: &u32) -> Result<(), Mismatch> {
        // A receiver that an older recording adds in a tick begins at zero.
        if *growth > 0 {
            self.get_or_insert_default().grow(*growth);
        }
        Ok(())
    }

    fn is_unknown(&self) -> bool {
        self.is_none()
    }

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(Value::number)
    }

    fn types() -> Types {
        Types { now: "number | null".into(), is_optional: true, ..Count::types() }
    }
}

/// A list of counters. One that is longer than before began with zeros.
impl Value for Vec<Count> {
    type Change = Vec<u32>;

    fn since(&self, before: &Self) -> Result<Vec<u32>, NeedsKey> {
        let before = before.iter().copied().chain(std::iter::repeat(Count(0)));
        let grown = self.iter().zip(before).map(|(now, before)| now.since(&before));
        Ok(without_zeros(grown.collect::<Result<_, _>>()?))
    }

    fn apply(&mut self, growth: &Vec<u32>) -> Result<(), Mismatch> {
        if self.len() < growth.len() {
            self.resize(growth.len(), Count(0));
        }
        self.iter_mut().zip(growth).for_each(|(counter, growth)| counter.grow(*growth));
        Ok(())
    }

    fn types() -> Types {
        let numbers = || "number[]".to_owned();
        Types {
            key: "Count[]".into(),
            tick: numbers(),
            now: numbers(),
            rule: Rule::Counters,
            is_optional: false,
        }
    }
}

/// Returns a column, or an empty one if it has nothing but zeros.
pub(crate) fn without_zeros<T: Default + PartialEq>(column: Vec<T>) -> Vec<T> {
    if column.iter().all(|value| *value == T::default()) { Vec::new() } else { column }
}

/// Values that are always known. Ticks have the new one.
macro_rules! known {
    ($($type:ty: $name:literal $(as $number:expr)?;)*) => { $(
        impl Value for $type {
            type Change = Change<$type>;

            fn since(&self, before: &Self) -> Result<Self::Change, NeedsKey> {
                Ok(if self == before { Change::Same } else { Change::Is(self.clone()) })
            }

            fn apply(&mut self, change: &Self::Change) -> Result<(), Mismatch> {
                match change {
                    Change::Same => {}
                    // A value of this kind is always known: the tick is of another source, or
                    // damaged.
                    Change::Unknown => return Err(Mismatch),
                    Change::Is(value) => self.clone_from(value),
                }
                Ok(())
            }

            $(
                fn number(&self) -> Option<f64> {
                    Some($number(self))
                }
            )?

            fn types() -> Types {
                Types::value($name, false)
            }
        }
    )* };
}

known! {
    f64: "number" as |value: &Self| *value;
    u64: "number" as |value: &Self| *value as f64;
    Vec<f64>: "number[]" as |list: &Self| list.iter().copied().fold(0.0, f64::max);
    Vec<u64>: "number[]" as |list: &Self| list.iter().sum::<u64>() as f64;
    String: "string";
    Vec<Hop>: "Hop[]";
    Stage: "Stage";
}

/// Values that may be unknown. Ticks have the new one, or null.
macro_rules! unknowable {
    ($($type:ty: $name:literal $(as $number:expr)?;)*) => { $(
        impl Value for Option<$type> {
            type Change = Change<$type>;

            fn since(&self, before: &Self) -> Result<Self::Change, NeedsKey> {
                Ok(match self {
                    _ if self == before => Change::Same,
                    None => Change::Unknown,
                    Some(value) => Change::Is(value.clone()),
                })
            }

            fn apply(&mut self, change: &Self::Change) -> Result<(), Mismatch> {
                match change {
                    Change::Same => {}
                    Change::Unknown => *self = None,
                    Change::Is(value) => *self = Some(value.clone()),
                }
                Ok(())
            }

            fn is_unknown(&self) -> bool {
                self.is_none()
            }

            $(
                fn number(&self) -> Option<f64> {
                    (*self).map($number)
                }
            )?

            fn types() -> Types {
                Types::value($name, true)
            }
        }
    )* };
}

unknowable! {
    f64: "number" as std::convert::identity;
    u64: "number" as |value| value as f64;
    Rank: "Rank";
    Stage: "Stage";
    String: "string";
    Vec<u16>: "number[]";
}

/// Numbers of what is there, ascending, such as of generations. None is lost again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Numbers(pub Vec<u32>);

impl FromIterator<u32> for Numbers {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl Value for Numbers {
    type Change = Vec<u32>;

    fn since(&self, before: &Self) -> Result<Vec<u32>, NeedsKey> {
        // Both lists ascend. A tick can only add to the list.
        let lacks = |list: &Self, number: &u32| list.0.binary_search(number).is_err();
        if before.0.iter().any(|number| lacks(self, number)) {
            return Err(NeedsKey);
        }

        Ok(self.0.iter().filter(|number| lacks(before, number)).copied().collect())
    }

    fn apply(&mut self, new: &Vec<u32>) -> Result<(), Mismatch> {
        self.0.extend(new);
        self.0.sort_unstable();
        Ok(())
    }

    fn types() -> Types {
        let numbers = || "number[]".to_owned();
        Types {
            key: numbers(),
            tick: numbers(),
            now: "Set<number>".into(),
            rule: Rule::Numbers,
            is_optional: false,
        }
    }
}

/// An entry of a list: a flow among the flows, a receiver among those of a transfer.
pub trait State: Clone + Default + PartialEq {
    /// Names the entry in a tick: its place in the list, or the id of its node.
    type Id: Copy;
    /// Change of the entry in a tick.
    type Tick: Clone + PartialEq + Serialize + DeserializeOwned;

    /// Returns what changed since `before`, if anything did.
    ///
    /// # Errors
    /// A tick cannot tell it.
    fn tick_since(&self, before: &Self, id: Self::Id) -> Result<Option<Self::Tick>, NeedsKey>;

    /// Takes the changes of a tick.
    ///
    /// # Errors
    /// A change does not fit this state.
    fn apply_tick(&mut self, tick: &Self::Tick) -> Result<(), Mismatch>;

    /// Returns the entry that a tick names.
    fn id_of(tick: &Self::Tick) -> Self::Id;

    /// Returns the names of the state and of its tick.
    fn names() -> [&'static str; 2];
}

/// A part of a state that is at one node.
pub trait Member: State<Id = u16> {
    /// Returns the id of its node.
    fn node(&self) -> u16;

    /// Returns the part at a node about which nothing was told yet.
    fn at(node: u16) -> Self;
}

/// Parts at some nodes. Those that join come with a key.
impl<M: Member> Value for Vec<M> {
    type Change = Vec<M::Tick>;

    fn since(&self, before: &Self) -> Result<Self::Change, NeedsKey> {
        // A tick names members by their node, so the same members must stand in the same places.
        if self.len() != before.len() {
            return Err(NeedsKey);
        }

        let mut changes = Vec::new();
        for (now, before) in self.iter().zip(before) {
            if now.node() != before.node() {
                return Err(NeedsKey);
            }
            changes.extend(now.tick_since(before, now.node())?);
        }

        Ok(changes)
    }

    fn apply(&mut self, changes: &Self::Change) -> Result<(), Mismatch> {
        for change in changes {
            let node = M::id_of(change);
            let known = self.iter().position(|member| member.node() == node);
            // Older recordings tell of a part that joined in a tick.
            let place = known.unwrap_or_else(|| {
                self.push(M::at(node));
                self.len() - 1
            });
            self[place].apply_tick(change)?;
        }
        Ok(())
    }

    fn types() -> Types {
        let [state, tick] = M::names();
        Types {
            key: format!("{state}[]"),
            tick: format!("{tick}[]"),
            now: format!("{}[]", now_name(state)),
            rule: Rule::Members,
            is_optional: false,
        }
    }
}
