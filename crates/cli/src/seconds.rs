//! Times on the command line.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Parses a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    parsed(text).ok_or_else(|| "allowed are seconds, 0 or more".into())
}

/// Returns a parser of seconds in a range.
pub(crate) fn within_seconds(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let seconds = parsed(text).filter(|seconds| range.contains(&seconds.as_secs_f64()));
        seconds.ok_or_else(|| format!("allowed are {} to {} seconds", range.start(), range.end()))
    }
}

fn parsed(text: &str) -> Option<Duration> {
    text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}
