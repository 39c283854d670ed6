//! Utility of a receiver, as configured.

use serde::Deserialize;

/// A utility as configured. Rates are in its user's unit: packets per slot in the slotted model, Mbit/s of streams.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UtilityConfig {
    /// `linear`, `log`, `alpha_fair`, `max_min`, or `table`.
    pub name: String,
    /// A factor, above 0; left out, 1. Of `max_min` it is the slope at rate xi.
    pub weight: Option<f64>,
    /// Added to the rate, so that the slope at 0 is bounded (footnote 6).
    pub xi: Option<f64>,
    /// The exponent of `alpha_fair` and `max_min`, 0 or more; `max_min` has 4 if it is left out.
    pub alpha: Option<f64>,
    /// The rate below which there is a penalty.
    pub minimum: Option<f64>,
    /// Per packet per slot below the minimum (K).
    pub penalty: Option<f64>,
    /// Of `table`: what the rates 0, step, 2 step, ... are worth.
    pub values: Vec<f64>,
    /// Of `table`: the slopes at the same rates.
    pub slopes: Vec<f64>,
    /// Of `table`: the step between rates.
    pub step: Option<f64>,
}

/// Why there is no such utility.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UtilityError {
    /// No utility of that name.
    #[error("no utility is called {0:?}: there are linear, log, alpha_fair, max_min, table")]
    Unknown(String),
    /// A setting that is wrong or missing.
    #[error("{name}: {setting} = {value}: allowed is {allowed}")]
    Setting {
        /// The utility.
        name: String,
        /// The setting.
        setting: &'static str,
        /// As it was given.
        value: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A setting that the utility does not have.
    #[error("{name} has no {setting}")]
    NoSuchSetting {
        /// The utility.
        name: String,
        /// The setting.
        setting: &'static str,
    },
    /// An infinite slope at rate 0.
    #[error(
        "{name}: its slope is unbounded at rate 0: give xi above 0, which is added to the rate (IV-A, footnote 6)"
    )]
    Unbounded {
        /// The utility.
        name: String,
    },
    /// A minimum without a penalty or the other way round.
    #[error("minimum and penalty go together (eq. 30)")]
    HalfMinimum,
    /// A table of too few rows, or of lists of unlike length.
    #[error("table: needed are as many slopes as values, two at least")]
    Ragged,
    /// A table with a number that is none.
    #[error("table: {what} at rate {rate} is {value}: needed is a finite number")]
    NotFinite {
        /// Value or slope.
        what: &'static str,
        /// The rate.
        rate: f64,
        /// As it was given.
        value: f64,
    },
    /// A slope that grows.
    #[error("not concave: its slope grows from {before} to {after} at rate {rate}")]
    NotConcave {
        /// Slope before.
        before: f64,
        /// Slope after.
        after: f64,
        /// The rate.
        rate: f64,
    },
    /// A slope below 0.
    #[error("not increasing: its slope at rate {rate} is {slope}")]
    Decreasing {
        /// The rate.
        rate: f64,
        /// The slope there.
        slope: f64,
    },
    /// Values that the slopes do not lead to.
    #[error(
        "its values grow by {grown} from rate {rate} to the next, its slopes there allow {least} to {most}"
    )]
    Contradiction {
        /// The rate.
        rate: f64,
        /// The difference of the values.
        grown: f64,
        /// What the slopes allow.
        least: f64,
        /// What the slopes allow.
        most: f64,
    },
}
