//! A receiver's utility: what it gains from its rate. Concave, increasing and of bounded slope
//! (IV-A); a minimum rate is a penalty for less (eq. 30).

mod config;

/// A valid utility. Rates are in the unit of its configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Utility {
    shape: Shape,
    minimum: f64,
    penalty: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Linear {
        weight: f64,
    },
    /// Its slope is weight (x + xi)^-alpha; with alpha 1 it is the logarithm.
    Fair {
        weight: f64,
        xi: f64,
        alpha: f64,
    },
    /// Values and slopes at multiples of the step, linear between and after them.
    Table {
        step: f64,
        values: Vec<f64>,
        slopes: Vec<f64>,
    },
}

impl Default for Utility {
    /// Returns the utility that is the rate itself.
    fn default() -> Self {
        Self { shape: Shape::Linear { weight: 1.0 }, minimum: 0.0, penalty: 0.0 }
    }
}

/// Slope of a utility at the rate x: `weight (x + xi)^-alpha`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Factor of the slope.
    pub weight: f64,
    /// Shift of the rate.
    pub xi: f64,
    /// Exponent; 0 for a straight line.
    pub alpha: f64,
}

impl Utility {
    /// Returns the value of `rate`, less the penalty if it is below the minimum.
    #[must_use]
    pub fn value(&self, rate: f64) -> f64 {
        self.shape.value(rate) - self.penalty * (self.minimum - rate).max(0.0)
    }

    /// Returns the rate below which there is a penalty; 0 if there is none.
    #[must_use]
    pub fn minimum(&self) -> f64 {
        self.minimum
    }

    /// Returns its slope at rate 0, which is its steepest.
    #[must_use]
    pub fn steepest(&self) -> f64 {
        self.shape.steepest() + if self.minimum > 0.0 { self.penalty } else { 0.0 }
    }

    /// Returns the formula of its slope, without the minimum; `None` for a table.
    #[must_use]
    pub fn formula(&self) -> Option<Slope> {
        match self.shape {
            Shape::Linear { weight } => Some(Slope { weight, xi: 0.0, alpha: 0.0 }),
            Shape::Fair { weight, xi, alpha } => Some(Slope { weight, xi, alpha }),
            Shape::Table { .. } => None,
        }
    }

    /// Returns the rate from 0 to `most` with the largest value if each unit of rate costs `slope`.
    /// Among equals it is the largest rate.
    #[must_use]
    pub fn rate_at(&self, slope: f64, most: f64) -> f64 {
        // Above the minimum there is no penalty.
        let free = self.shape.rate_at(slope).min(most);
        if free >= self.minimum {
            return free;
        }

        // Below the minimum each unit of rate also saves the penalty, so the shape may be flatter
        // by that much. At the minimum the slope jumps, so the optimum may lie exactly there.
        self.shape.rate_at(slope - self.penalty).min(self.minimum).min(most)
    }
}

impl Shape {
    fn value(&self, rate: f64) -> f64 {
        match self {
            Self::Linear { weight } => weight * rate,
            Self::Fair { weight, xi, alpha: 1.0 } => weight * libm::log(rate + xi),
            Self::Fair { weight, xi, alpha } => {
                weight * libm::pow(rate + xi, 1.0 - alpha) / (1.0 - alpha)
            }
            Self::Table { step, values, slopes } => {
                // Linear between the rows. Beyond the last one its slope goes on.
                let last = values.len() - 1;
                let place = ((rate / step).max(0.0) as usize).min(last);
                let beyond = rate - place as f64 * step;
                let slope = if place == last {
                    slopes[last]
                } else {
                    (values[place + 1] - values[place]) / step
                };
                values[place] + slope * beyond
            }
        }
    }

    fn steepest(&self) -> f64 {
        match self {
            Self::Linear { weight } => *weight,
            Self::Fair { weight, xi, alpha } => weight * libm::pow(*xi, -alpha),
            Self::Table { slopes, .. } => slopes[0],
        }
    }

    /// Returns the largest rate with at least this slope; 0 if there is none, infinite if every
    /// rate has it.
    fn rate_at(&self, slope: f64) -> f64 {
        match self {
            Self::Linear { weight } => {
                if slope > *weight {
                    0.0
                } else {
                    f64::INFINITY
                }
            }
            _ if slope <= 0.0 => f64::INFINITY,
            Self::Fair { weight, xi, alpha: 1.0 } => (weight / slope - xi).max(0.0),
            Self::Fair { weight, xi, alpha } => {
                (libm::pow(weight / slope, 1.0 / alpha) - xi).max(0.0)
            }
            Self::Table { step, slopes, .. } => {
                // Slopes fall with the rate. Find the two rows between which the slope is passed,
                // and interpolate the rate.
                let as_steep = slopes.partition_point(|s| *s >= slope);
                if as_steep == 0 {
                    return 0.0;
                }
                if as_steep == slopes.len() {
                    return f64::INFINITY;
                }
                let before = slopes[as_steep - 1];
                let after = slopes[as_steep];
                step * ((as_steep - 1) as f64 + (before - slope) / (before - after))
            }
        }
    }
}
