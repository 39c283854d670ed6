//! Means and percentiles.

use serde_json::{Value, json};

/// Returns mean, 95th percentile and maximum of `values`; null if there are none.
pub(crate) fn spread(values: &[f64]) -> Value {
    json!({ "mean": mean(values), "p95": percentile(values, 0.95), "max": percentile(values, 1.0) })
}

/// Returns the mean of `values`; `None` if there are none.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the least value that at least the share `p` of `values` do not exceed; `None` if there
/// are no values.
pub(crate) fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(percentile(&values, 0.5), Some(2.0));
        assert_eq!(percentile(&values, 0.95), Some(4.0));
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!((percentile(&[], 0.5), mean(&values)), (None, Some(2.5)));
    }
}
