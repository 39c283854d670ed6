//! Checks a utility's configuration and builds it.

use super::{Shape, Utility};
use ncmesh_engine::stream::{UtilityConfig, UtilityError};

/// Share of the steepest slope by which values may contradict slopes, for rounding.
const ROUNDING: f64 = 1e-6;
/// Exponent of `max_min`. A larger one is nearer to max-min fairness, but theta is 2^alpha, and
/// queues grow with it.
const MAX_MIN_ALPHA: f64 = 4.0;

impl TryFrom<UtilityConfig> for Utility {
    type Error = UtilityError;

    fn try_from(config: UtilityConfig) -> Result<Self, UtilityError> {
        check_settings(&config)?;
        let shape = match config.name.as_str() {
            "table" => table(&config)?,
            _ => formula(&config)?,
        };

        let (minimum, penalty) = match (config.minimum, config.penalty) {
            (None, None) => (0.0, 0.0),
            (Some(minimum), Some(penalty)) => (
                setting(&config, "minimum", minimum, 0.0)?,
                setting(&config, "penalty", penalty, 0.0)?,
            ),
            _ => return Err(UtilityError::HalfMinimum),
        };

        Ok(Self { shape, minimum, penalty })
    }
}

/// Checks that only settings are given which the utility of this name has.
fn check_settings(config: &UtilityConfig) -> Result<(), UtilityError> {
    let [xi, alpha, table] = match config.name.as_str() {
        "linear" => [false, false, false],
        "log" => [true, false, false],
        "alpha_fair" | "max_min" => [true, true, false],
        "table" => [false, false, true],
        other => return Err(UtilityError::Unknown(other.to_owned())),
    };

    let given = [
        ("xi", config.xi.is_some(), xi),
        ("alpha", config.alpha.is_some(), alpha),
        ("values", !config.values.is_empty(), table),
        ("slopes", !config.slopes.is_empty(), table),
        ("step", config.step.is_some(), table),
    ];
    match given.iter().find(|(_, given, has)| *given && !has) {
        None => Ok(()),
        Some((setting, ..)) => {
            Err(UtilityError::NoSuchSetting { name: config.name.clone(), setting })
        }
    }
}

/// Returns a shape that is a formula, with its weight.
fn formula(config: &UtilityConfig) -> Result<Shape, UtilityError> {
    let weight = weight(config)?;
    let alpha = match (config.name.as_str(), config.alpha) {
        ("linear", _) => 0.0,
        ("log", _) => 1.0,
        ("max_min", None) => MAX_MIN_ALPHA,
        (_, None) => return Err(fault(config, "alpha", f64::NAN, "0 or more")),
        (_, Some(alpha)) => setting(config, "alpha", alpha, 0.0)?,
    };

    if alpha == 0.0 {
        return Ok(Shape::Linear { weight });
    }

    // The slope at rate 0 must be finite: theta bounds it.
    let unbounded = UtilityError::Unbounded { name: config.name.clone() };
    let xi = setting(config, "xi", config.xi.ok_or(unbounded.clone())?, 0.0)?;

    // The weight of max_min is its slope at rate xi, where x + xi = 2 xi. At rate 0 the slope is
    // then 2^alpha times the weight, whatever xi is.
    let weight =
        if config.name == "max_min" { weight * libm::pow(2.0 * xi, alpha) } else { weight };
    let shape = Shape::Fair { weight, xi, alpha };
    let steepest = shape.steepest();
    if steepest.is_finite() && steepest > 0.0 { Ok(shape) } else { Err(unbounded) }
}

fn weight(config: &UtilityConfig) -> Result<f64, UtilityError> {
    let weight = config.weight.unwrap_or(1.0);
    if weight.is_finite() && weight > 0.0 {
        return Ok(weight);
    }
    Err(fault(config, "weight", weight, "above 0"))
}

/// Checks that a setting is finite and at least `least`.
fn setting(
    config: &UtilityConfig,
    setting: &'static str,
    value: f64,
    least: f64,
) -> Result<f64, UtilityError> {
    if value.is_finite() && value >= least {
        return Ok(value);
    }
    Err(fault(config, setting, value, "0 or more"))
}

fn fault(
    config: &UtilityConfig,
    setting: &'static str,
    value: f64,
    allowed: &'static str,
) -> UtilityError {
    UtilityError::Setting { name: config.name.clone(), setting, value, allowed }
}

/// Returns the shape of a table: finite, increasing and concave, with values that agree with the
/// slopes.
fn table(config: &UtilityConfig) -> Result<Shape, UtilityError> {
    let step = config.step.unwrap_or(f64::NAN);
    if !(step.is_finite() && step > 0.0) {
        return Err(fault(config, "step", step, "above 0"));
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

    // Concave: slopes fall, and between two rates the values grow by no more than the first slope
    // and no less than the second. A contradiction would mean that the two rows are of different
    // functions.
    let room = ROUNDING * slopes[0].abs();
    for at in 1..slopes.len() {
        let before = slopes[at - 1];
        let after = slopes[at];
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

    // Increasing: no slope is below 0. The last one is the smallest, and holds for higher rates.
    let last = slopes.len() - 1;
    if slopes[last] < 0.0 {
        return Err(UtilityError::Decreasing { rate: last as f64 * step, slope: slopes[last] });
    }
    let weight = weight(config)?;
    let weighted = |row: &[f64]| row.iter().map(|v| weight * v).collect();
    Ok(Shape::Table { step, values: weighted(values), slopes: weighted(slopes) })
}
