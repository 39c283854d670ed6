//! Ranges of numbers.

use std::ops::RangeInclusive;

/// Number that can bound a setting.
pub trait Number: Copy + ToString {
    /// Returns it for comparisons. Whole numbers above 2^53 are rounded.
    fn value(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Number for $type {
            #[allow(clippy::cast_lossless, reason = "not lossless for every type here")]
            fn value(self) -> f64 {
                self as f64
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, usize, i32, i64, f64);

/// Numbers that a setting may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    least: Bound,
    most: Bound,
    /// Whether `least` itself is not allowed.
    is_above: bool,
}

/// End of a range.
#[derive(Clone, Debug, PartialEq)]
struct Bound {
    value: f64,
    /// As it was written: a large whole number is not exact as a float.
    shown: String,
}

impl Bound {
    fn new<N: Number>(number: N) -> Self {
        Self { value: number.value(), shown: number.to_string() }
    }
}

impl Range {
    /// Returns the range of these numbers.
    pub(super) fn within<N: Number>(range: RangeInclusive<N>) -> Self {
        let least = Bound::new(*range.start());
        Self { least, most: Bound::new(*range.end()), is_above: false }
    }

    /// Returns the range of all finite numbers above `bound`.
    pub(super) fn above<N: Number>(bound: N) -> Self {
        Self { least: Bound::new(bound), most: Bound::new(f64::MAX), is_above: true }
    }

    /// Returns the range of all finite numbers.
    pub(super) fn finite() -> Self {
        Self::within(f64::MIN..=f64::MAX)
    }

    /// Returns the least number that is allowed, or that every one exceeds; `None` if there is
    /// none.
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        Some(self.least.value).filter(|least| *least > f64::MIN)
    }

    /// Returns the largest number that is allowed, if there is one.
    #[must_use]
    pub fn most(&self) -> Option<f64> {
        Some(self.most.value).filter(|most| *most < f64::MAX)
    }

    /// Returns whether the least number itself is not allowed.
    #[must_use]
    pub fn is_above(&self) -> bool {
        self.is_above
    }

    /// Returns whether a number is allowed. NaN never is.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        let is_enough =
            if self.is_above { number > self.least.value } else { number >= self.least.value };
        is_enough && number <= self.most.value
    }

    /// Returns the part of the range between two numbers, where they are given.
    pub(super) fn narrowed(&self, least: Option<f64>, most: Option<f64>) -> Self {
        let mut range = self.clone();
        if let Some(least) = least.filter(|least| *least > self.least.value) {
            range.least = Bound::new(least);
            range.is_above = false;
        }

        if let Some(most) = most.filter(|most| *most < self.most.value) {
            range.most = Bound::new(most);
        }
        range
    }

    /// Returns it in words. An end that is another setting's value is called by that name.
    pub(super) fn in_words(&self, least: Option<&str>, most: Option<&str>) -> String {
        let code = |name: &str| format!("`{name}`");
        let low = least.map(code).or(self.least().map(|_| self.least.shown.clone()));
        let high = most.map(code).or(self.most().map(|_| self.most.shown.clone()));
        match (low, high) {
            (Some(low), None) if self.is_above => format!("above {low}"),
            (Some(low), Some(high)) if self.is_above => format!("above {low}, up to {high}"),
            (Some(low), None) => format!("{low} or more"),
            (None, Some(high)) => format!("up to {high}"),
            (None, None) => "any finite number".into(),
            (Some(low), Some(high)) => format!("{low} to {high}"),
        }
    }
}
