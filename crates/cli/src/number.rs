//! Numbers on the command line: every error says what is allowed.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Returns a parser of numbers in a range.
pub(crate) fn within<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("allowed is {} to {}", range.start(), range.end()))
    }
}

/// Parses a finite number that is not negative.
pub(crate) fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "allowed is a number, 0 or more".into())
}

/// Returns a command whose options take numbers below zero as their values. They are refused with
/// what is allowed, not as options that are unknown.
pub(crate) fn with_negatives(command: clap::Command) -> clap::Command {
    let names: Vec<String> =
        command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        if takes_values && !arg.is_positional() { arg.allow_negative_numbers(true) } else { arg }
    });
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_negatives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_range_in_the_error() {
        let count = within::<u8>(0..=20);
        assert_eq!(count("20"), Ok(20));
        for text in ["21", "-1", "300", "1.5", "x", ""] {
            assert_eq!(count(text).unwrap_err(), "allowed is 0 to 20", "{text}");
        }
        assert_eq!(not_negative("1.5"), Ok(1.5));
        for text in ["-1", "nan", "inf", "1e400", "x"] {
            assert_eq!(not_negative(text).unwrap_err(), "allowed is a number, 0 or more", "{text}");
        }
    }
}
