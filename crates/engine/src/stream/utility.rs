//! Utility of a receiver, as configured.
//!
//! A utility says what a rate is worth to a receiver. Streams get the rates that maximize the sum
//! of all utilities. Every one of them is concave and increasing. Source of equations and
//! footnotes: the paper on multirate multicast, IV-A.

crate::settings! {
    /// Settings of a utility. Rates are in packets per slot in the slotted model, in Mbit/s for
    /// streams.
    #[derive(Clone, Debug, PartialEq)]
    pub struct UtilityConfig {
        /// Kind of utility.
        // Checked with the settings that it has: see `UtilityError`.
        pub name: String = LINEAR.to_owned(),
            allowed "`\"linear\"`, `\"log\"`, `\"alpha_fair\"`, `\"max_min\"`, `\"table\"`";
        /// Factor. For `max_min`, the slope at rate xi.
        pub weight: Option<f64> = None, allowed "above 0",
            absent "1; of a stream, but for `linear`, as steep at rate 0 as `theta` allows";
        /// Rate that is added to the receiver's, so that the slope at rate 0 is bounded (footnote
        /// 6).
        pub xi: Option<f64> = None, allowed "0 or more";
        /// Exponent of `alpha_fair` and `max_min`.
        pub alpha: Option<f64> = None, absent "4 for `max_min`", allowed "0 or more";
        /// Rate below which there is a penalty.
        pub minimum: Option<f64> = None, allowed "0 or more";
        /// Penalty (K) for each unit of rate below the minimum.
        pub penalty: Option<f64> = None, allowed "0 or more";
        /// For `table`: utility at the rates 0, step, 2 step, ...
        pub values: Vec<f64> = Vec::new();
        /// For `table`: slopes at the same rates.
        pub slopes: Vec<f64> = Vec::new();
        /// For `table`: step between the rates.
        pub step: Option<f64> = None, allowed "above 0";
    }
}

/// Name of the utility that is the rate itself.
const LINEAR: &str = "linear";

/// Reason why a utility is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UtilityError {
    /// No utility has this name.
    #[error("no utility is called {0:?}: there are linear, log, alpha_fair, max_min, table")]
    Unknown(String),
    /// A setting is out of range or missing.
    #[error("{name}: {setting} = {value}: allowed is {allowed}")]
    Setting {
        /// Name of the utility.
        name: String,
        /// Name of the setting.
        setting: &'static str,
        /// Value as it was given.
        value: f64,
        /// Allowed values.
        allowed: &'static str,
    },
    /// The utility does not have this setting.
    #[error("{name} has no {setting}")]
    NoSuchSetting {
        /// Name of the utility.
        name: String,
        /// Name of the setting.
        setting: &'static str,
    },
    /// The slope at rate 0 is infinite.
    #[error(
        "{name}: its slope is unbounded at rate 0: give xi above 0, which is added to the rate \
         (IV-A, footnote 6)"
    )]
    Unbounded {
        /// Name of the utility.
        name: String,
    },
    /// There is a minimum without a penalty, or a penalty without a minimum.
    #[error("minimum and penalty go together (eq. 30)")]
    HalfMinimum,
    /// The table has too few rows, or its lists have different lengths.
    #[error("table: needed are as many slopes as values, two at least")]
    Ragged,
    /// The table has an infinite number or NaN.
    #[error("table: {what} at rate {rate} is {value}: needed is a finite number")]
    NotFinite {
        /// `value` or `slope`.
        what: &'static str,
        /// Rate of the entry.
        rate: f64,
        /// Number as it was given.
        value: f64,
    },
    /// The slope grows with the rate.
    #[error("not concave: its slope grows from {before} to {after} at rate {rate}")]
    NotConcave {
        /// Slope at the rate before.
        before: f64,
        /// Slope at this rate.
        after: f64,
        /// Rate at which it grows.
        rate: f64,
    },
    /// The slope is below 0.
    #[error("not increasing: its slope at rate {rate} is {slope}")]
    Decreasing {
        /// Rate at which it is.
        rate: f64,
        /// Slope at this rate.
        slope: f64,
    },
    /// The values and the slopes contradict each other.
    #[error(
        "its values grow by {grown} from rate {rate} to the next, its slopes there allow \
         {least} to {most}"
    )]
    Contradiction {
        /// Rate of the first of two entries.
        rate: f64,
        /// Difference of their values.
        grown: f64,
        /// Least difference that the slopes allow.
        least: f64,
        /// Greatest difference that the slopes allow.
        most: f64,
    },
}
