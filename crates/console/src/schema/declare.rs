//! Macros that declare a state once: its values with types, titles, units and meanings.
//!
//! [`state!`] declares an entry of a list, such as a flow among the flows:
//!
//! ```text
//! state! {
//!     /// State of a flow.
//!     FlowState / FlowTick { flow: u32 } {
//!         /// Packets that have arrived.
//!         delivered: Option<Count>, "Delivered", Packets;
//!     }
//! }
//! ```
//!
//! From it come the state as keys have it, what ticks tell of it, how one follows from the other
//! ([`State`](super::value::State)), the types in TypeScript, and the list `FIELDS`, from which
//! metrics, columns of tables and pages of the reference are made. The type of a value decides how
//! keys and ticks write it: see [`Value`](super::value::Value).
//!
//! With `as FlowValues` behind the tick there are up to three groups of values: those that keys and
//! the HTTP API have, those that only the API has, and those that only keys have. The struct
//! `FlowValues` is the state as the API has it: counters are numbers, and what is unknown is null.
//! A name in brackets is that of the API where it differs: `packets ["source_packets"]`.
//!
//! [`values!`] declares a state that only the API has, such as a neighbour, in the same words.
//! [`table!`] declares columns of counters with a row for each node or link.

/// Gives a type its declaration in TypeScript.
macro_rules! declared {
    ($type:ident, $about:expr, $fields:expr) => {
        impl TS for $type {
            type WithoutGenerics = Self;
            type OptionInnerType = Self;

            fn docs() -> Option<String> {
                Some(typescript::comment($about))
            }

            fn decl() -> String {
                format!("type {} = {};", Self::name(), Self::inline())
            }

            fn decl_concrete() -> String {
                Self::decl()
            }

            fn name() -> String {
                stringify!($type).to_owned()
            }

            fn inline() -> String {
                $fields
            }

            fn inline_flattened() -> String {
                Self::inline()
            }
        }
    };
}

/// Declares the states of a list, as this module's documentation shows.
macro_rules! state {
    (
        $(#[doc = $about:literal])*
        $state:ident $({ $own:ident: $own_type:ty })? / $tick:ident { $id:ident: $id_type:ty } {
            $(
                $(#[doc = $doc:literal])*
                $field:ident: $type:ty, $title:literal, $unit:ident;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $state {
            $(
                /// Id of the node.
                pub $own: $own_type,
            )?
            $(
                $(#[doc = $doc])*
                #[serde(default, skip_serializing_if = "Value::is_unknown")]
                pub $field: $type,
            )*
        }

        #[doc = concat!("Changes of a [`", stringify!($state), "`] in a tick.")]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $tick {
            /// Which one: its place in the list, or the id of its node.
            pub $id: $id_type,
            $(
                $(#[doc = $doc])*
                #[serde(default, skip_serializing_if = "is_same")]
                pub $field: <$type as Value>::Change,
            )*
        }

        impl $state {
            /// Its values.
            pub const FIELDS: &[Field] = &[$(Field::new(
                stringify!($field),
                $title,
                Unit::$unit,
                concat!($($doc),*),
                <$type as Value>::types,
            )),*];

            /// Returns the values that are known numbers.
            pub fn numbers(&self) -> impl Iterator<Item = (&'static Field, f64)> {
                let numbers = [$(Value::number(&self.$field)),*];
                let all = Self::FIELDS.iter().zip(numbers);
                all.filter_map(|(field, number)| Some((field, number?)))
            }
        }

        impl State for $state {
            type Id = $id_type;
            type Tick = $tick;

            fn tick_since(&self, before: &Self, $id: $id_type) -> Result<Option<$tick>, NeedsKey> {
                // Tick of an entry that stayed the same. It is left out.
                let nothing = $tick { $id, ..$tick::default() };
                let tick = $tick {
                    $id,
                    $($field: self.$field.since(&before.$field)?,)*
                };
                Ok((tick != nothing).then_some(tick))
            }

            fn apply_tick(&mut self, tick: &$tick) -> Result<(), Mismatch> {
                $(self.$field.apply(&tick.$field)?;)*
                Ok(())
            }

            fn id_of(tick: &$tick) -> $id_type {
                tick.$id
            }

            fn names() -> [&'static str; 2] {
                [stringify!($state), stringify!($tick)]
            }
        }

        $(
            impl Member for $state {
                fn node(&self) -> $own_type {
                    self.$own
                }

                fn at($own: $own_type) -> Self {
                    Self { $own, ..Self::default() }
                }
            }
        )?

        declared! {
            $state, concat!($($about),*),
            typescript::state(&[$(stringify!($own))?], Self::FIELDS)
        }

        declared! {
            $tick, concat!(" Changes of a `", stringify!($state), "` in a tick."),
            typescript::tick(stringify!($id), $state::FIELDS)
        }
    };

    (
        $(#[doc = $about:literal])*
        $state:ident $({ $own:ident: $own_type:ty })? / $tick:ident { $id:ident: $id_type:ty }
        as $values:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident $([$name:literal])?: $type:ty, $title:literal, $unit:ident;
            )*
        }
        api {
            $(
                $(#[doc = $api_doc:literal])*
                $api_field:ident: $api_type:ty, $api_title:literal, $api_unit:ident;
            )*
        }
        key {
            $(
                $(#[doc = $key_doc:literal])*
                $key_field:ident: $key_type:ty, $key_title:literal, $key_unit:ident;
            )*
        }
    ) => {
        state! {
            $(#[doc = $about])*
            $state $({ $own: $own_type })? / $tick { $id: $id_type } {
                $($(#[doc = $doc])* $field: $type, $title, $unit;)*
                $($(#[doc = $key_doc])* $key_field: $key_type, $key_title, $key_unit;)*
            }
        }

        values! {
            $(#[doc = $about])*
            $values {
                $($(#[doc = $doc])* $field $([$name])?: $type, $title, $unit;)*
                $($(#[doc = $api_doc])* $api_field: $api_type, $api_title, $api_unit;)*
            }
        }

        impl $values {
            /// Sets what a console shows of these values, rounded so that noise makes no ticks.
            pub fn tell(&self, state: &mut $state) {
                $(state.$field = Told::told(&self.$field, Unit::$unit);)*
            }
        }
    };
}

/// Declares the values of a state as the API has them.
macro_rules! values {
    (
        $(#[doc = $about:literal])*
        $values:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident $([$name:literal])?: $type:ty, $title:literal, $unit:ident;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $values {
            $(
                $(#[doc = $doc])*
                #[serde(default $(, rename = $name)?)]
                pub $field: <$type as Told>::Plain,
            )*
        }

        impl Values for $values {
            const FIELDS: &'static [Field] = &[$(Field::new(
                last_of(&[stringify!($field) $(, $name)?]),
                $title,
                Unit::$unit,
                concat!($($doc),*),
                <$type as Value>::types,
            )),*];

            fn known(&self) -> Vec<Option<f64>> {
                vec![$(<$type as Told>::plain_number(&self.$field)),*]
            }
        }
    };
}

/// Declares a table: columns of counters and other columns, and what ticks tell of them.
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        $table:ident {
            $($(#[doc = $doc:literal])* $counter:ident, $title:literal, $unit:ident;)*
        }
        beside {
            $($(#[doc = $beside_doc:literal])* $beside:ident: $beside_type:ty, $beside_ts:literal;)*
        }
        $(#[doc = $ticks_about:literal])*
        $ticks:ident {
            $($(#[doc = $told_doc:literal])* $told:ident: $told_type:ty, $told_ts:literal;)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $table {
            $($(#[doc = $doc])* pub $counter: Vec<Option<Count>>,)*
            $($(#[doc = $beside_doc])* pub $beside: Vec<$beside_type>,)*
        }

        $(#[doc = $ticks_about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $ticks {
            /// Places of the rows in the list, ascending.
            pub row: Vec<u32>,
            $(
                $(#[doc = $doc])*
                #[serde(default, skip_serializing_if = "Vec::is_empty")]
                pub $counter: Vec<u32>,
            )*
            $(
                $(#[doc = $told_doc])*
                #[serde(default, skip_serializing_if = "Vec::is_empty")]
                pub $told: Vec<$told_type>,
            )*
        }

        impl $table {
            /// Its counters.
            pub const FIELDS: &[Field] = &[$(Field::new(
                stringify!($counter),
                $title,
                Unit::$unit,
                concat!($($doc),*),
                <Option<Count> as Value>::types,
            )),*];

            /// Returns a table of which nothing is known but the number of its rows.
            #[must_use]
            pub fn unknown(rows: usize) -> Self {
                Self {
                    $($counter: vec![None; rows],)*
                    $($beside: vec![<$beside_type>::default(); rows],)*
                }
            }

            /// Returns the columns of counters.
            fn counters(&self) -> [&Vec<Option<Count>>; Self::FIELDS.len()] {
                [$(&self.$counter),*]
            }

            /// Sets the counters of a row to zero: they are known, and count from now on.
            ///
            /// # Panics
            /// The table has no such row.
            pub fn begin(&mut self, row: usize) {
                $(self.$counter[row] = Some(Count(0));)*
            }

            /// Adds the growth of counters.
            fn grow(&mut self, ticks: &$ticks) -> Result<(), Mismatch> {
                $(
                    for (row, growth) in ticks.row.iter().zip(&ticks.$counter) {
                        place(&mut self.$counter, *row)?.apply(growth)?;
                    }
                )*
                Ok(())
            }
        }

        impl $ticks {
            /// Takes the growth of rows that changed, leaving out columns of zeros.
            fn set_growth(&mut self, rows: Vec<Growth<{ $table::FIELDS.len() }>>) {
                let mut columns = [const { Vec::new() }; $table::FIELDS.len()];
                for Growth { row, counters } in rows {
                    self.row.push(row);
                    columns.iter_mut().zip(counters).for_each(|(column, n)| column.push(n));
                }
                let [$($counter),*] = columns.map(without_zeros);
                $(self.$counter = $counter;)*
            }
        }

        declared! {
            $table, concat!($($about),*),
            typescript::table(
                Self::FIELDS,
                &[$(Column {
                    name: stringify!($beside),
                    meaning: concat!($($beside_doc),*),
                    entry: $beside_ts,
                }),*],
            )
        }

        declared! {
            $ticks, concat!($($ticks_about),*),
            typescript::ticks(
                $table::FIELDS,
                &[$(Column {
                    name: stringify!($told),
                    meaning: concat!($($told_doc),*),
                    entry: $told_ts,
                }),*],
            )
        }
    };
}

pub(super) use {declared, state, table, values};
