//! Utilities as configured, and what can be wrong with them.

use super::{Shape, Utility};
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

/// Values may contradict slopes by this share, for rounding.
const ROUNDING: f64 = 1e-6;
/// The exponent of `max_min`: nearer to max-min fairness if larger, but theta is 2^alpha, and queues grow with it.
const MAX_MIN_ALPHA: f64 = 4.0;

impl TryFrom<UtilityConfig> for Utility {
    type Error = UtilityError;

    fn try_from(config: UtilityConfig) -> Result<Self, UtilityError> {
        config.check_settings()?;
        let shape = match config.name.as_str() {
            "table" => table(&config)?,
            _ => config.formula()?,
        };
        let (minimum, penalty) = match (config.minimum, config.penalty) {
            (None, None) => (0.0, 0.0),
            (Some(minimum), Some(penalty)) => {
                (config.setting("minimum", minimum, 0.0)?, config.setting("penalty", penalty, 0.0)?)
            }
            _ => return Err(UtilityError::HalfMinimum),
        };
        Ok(Self { shape, minimum, penalty })
    }
}

impl UtilityConfig {
    /// The settings that its name has besides `weight`, `minimum` and `penalty`.
    fn check_settings(&self) -> Result<(), UtilityError> {
        let [xi, alpha, table] = match self.name.as_str() {
            "linear" => [false, false, false],
            "log" => [true, false, false],
            "alpha_fair" | "max_min" => [true, true, false],
            "table" => [false, false, true],
            other => return Err(UtilityError::Unknown(other.to_owned())),
        };
        let given = [
            ("xi", self.xi.is_some(), xi),
            ("alpha", self.alpha.is_some(), alpha),
            ("values", !self.values.is_empty(), table),
            ("slopes", !self.slopes.is_empty(), table),
            ("step", self.step.is_some(), table),
        ];
        match given.iter().find(|(_, given, has)| *given && !has) {
            None => Ok(()),
            Some((setting, ..)) => {
                Err(UtilityError::NoSuchSetting { name: self.name.clone(), setting })
            }
        }
    }

    /// A shape that is a formula, with its weight.
    fn formula(&self) -> Result<Shape, UtilityError> {
        let weight = self.weight()?;
        let alpha = match (self.name.as_str(), self.alpha) {
            ("linear", _) => 0.0,
            ("log", _) => 1.0,
            ("max_min", None) => MAX_MIN_ALPHA,
            (_, None) => return Err(self.fault("alpha", f64::NAN, "0 or more")),
            (_, Some(alpha)) => self.setting("alpha", alpha, 0.0)?,
        };
        if alpha == 0.0 {
            return Ok(Shape::Linear { weight });
        }
        let unbounded = UtilityError::Unbounded { name: self.name.clone() };
        let xi = self.setting("xi", self.xi.ok_or(unbounded.clone())?, 0.0)?;
        // The slope of max_min is its weight at rate xi.
        let weight =
            if self.name == "max_min" { weight * libm::pow(2.0 * xi, alpha) } else { weight };
        let shape = Shape::Fair { weight, xi, alpha };
        let steepest = shape.steepest();
        if steepest.is_finite() && steepest > 0.0 { Ok(shape) } else { Err(unbounded) }
    }

    fn weight(&self) -> Result<f64, UtilityError> {
        let weight = self.weight.unwrap_or(1.0);
        if weight.is_finite() && weight > 0.0 {
            return Ok(weight);
        }
        Err(self.fault("weight", weight, "above 0"))
    }

    /// A finite setting of `least` at least.
    fn setting(&self, setting: &'static str, value: f64, least: f64) -> Result<f64, UtilityError> {
        if value.is_finite() && value >= least {
            return Ok(value);
        }
        Err(self.fault(setting, value, "0 or more"))
    }

    fn fault(&self, setting: &'static str, value: f64, allowed: &'static str) -> UtilityError {
        UtilityError::Setting { name: self.name.clone(), setting, value, allowed }
    }
}

/// The shape of a table: finite, increasing, concave, its values where its slopes lead.
fn table(config: &UtilityConfig) -> Result<Shape, UtilityError> {
    let step = config.step.unwrap_or(f64::NAN);
    if !(step.is_finite() && step > 0.0) {
        return Err(config.fault("step", step, "above 0"));
    }
    let UtilityConfig { values, slopes, .. } = config;
    if values.len() != slopes.len() || values.len() < 2 {
        return Err(UtilityError::Ragged);
    }
    for (what, row) in [("value", values), ("slope", slopes)] {
        if let Some(at) = row.iter().position(|v| !v.is_finite()) {
            return Err(UtilityError::NotFinite { what, rate: at as f64 * step, value: row[at] });
        }
    }
    let room = ROUNDING * slopes[0].abs();
    for at in 1..slopes.len() {
        let (before, after) = (slopes[at - 1], slopes[at]);
        let rate = at as f64 * step;
        if after > before + room {
            return Err(UtilityError::NotConcave { before, after, rate });
        }
        let grown = values[at] - values[at - 1];
        let [least, most] = [after - room, before + room].map(|slope| slope * step);
        if grown < least || grown > most {
            let rate = (at - 1) as f64 * step;
            return Err(UtilityError::Contradiction { rate, grown, least, most });
        }
    }
    let last = slopes.len() - 1;
    if slopes[last] < 0.0 {
        return Err(UtilityError::Decreasing { rate: last as f64 * step, slope: slopes[last] });
    }
    let weight = config.weight()?;
    let weighted = |row: &[f64]| row.iter().map(|v| weight * v).collect();
    Ok(Shape::Table { step, values: weighted(values), slopes: weighted(slopes) })
}
