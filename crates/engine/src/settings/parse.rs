//! Texts with numbers that no parser of TOML can hold.

use serde::de::DeserializeOwned;

/// Reads a text in TOML.
///
/// A number that is too large for its type is read as the nearest float, so that the range of its
/// setting refuses it, with the name of the setting.
///
/// # Errors
/// That of the parser, or of the type's reader.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, toml::de::Error> {
    toml::from_str(text).or_else(|error| {
        let message = error.message();
        let is_number = ["overflowed", "i128", "u128"].iter().any(|word| message.contains(word));
        if is_number { toml::from_str(&held(text)) } else { Err(error) }
    })
}

/// Part of a text that is being scanned for numbers.
#[derive(Clone, Copy)]
enum Part {
    Plain,
    Comment,
    /// Text in quotes, which ends with these.
    Quoted(&'static str),
}

/// Returns a text of the same length in which every number can be held.
fn held(text: &str) -> String {
    let mut held = String::with_capacity(text.len());
    let mut part = Part::Plain;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match part {
            Part::Comment if c == '\n' => part = Part::Plain,
            // A quote that is escaped does not end the text.
            Part::Quoted("\"" | "\"\"\"") if c == '\\' => {
                length += rest[1..].chars().next().map_or(0, char::len_utf8);
            }
            Part::Quoted(end) if rest.starts_with(end) => {
                length = end.len();
                part = Part::Plain;
            }
            Part::Comment | Part::Quoted(_) => {}
            Part::Plain => {
                // Three quotes are looked for before one, which they begin with.
                let quotes = ["\"\"\"", "'''", "\"", "'"];
                if let Some(quote) = quotes.iter().find(|quote| rest.starts_with(**quote)) {
                    length = quote.len();
                    part = Part::Quoted(quote);
                } else if c == '#' {
                    part = Part::Comment;
                } else if is_of_word(c) {
                    length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());

                    // A key may look like a number, too. It is left unchanged.
                    let behind = rest[length..].trim_start_matches([' ', '\t']);
                    if let Some(float) = float(&rest[..length])
                        && !behind.starts_with('=')
                    {
                        // The same length keeps lines and columns of later errors right.
                        held.push_str(&format!("{float:<length$}"));
                        rest = &rest[length..];
                        continue;
                    }
                }
            }
        }

        held.push_str(&rest[..length]);
        rest = &rest[length..];
    }

    held
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')
}

/// Returns the float that stands for a number that does not fit its type; `None` if it fits, or is
/// none.
fn float(word: &str) -> Option<String> {
    let digits = word.replace('_', "");
    let value: f64 = digits.parse().ok()?;

    // Rust reads words such as `inf` as floats, but none of them is a number that is too large.
    let is_number = word.starts_with(['+', '-']) || word.starts_with(|c: char| c.is_ascii_digit());
    let unsigned = digits.trim_start_matches(['+', '-']);
    if !is_number || unsigned == "inf" || unsigned == "nan" {
        return None;
    }

    let is_whole = unsigned.bytes().all(|byte| byte.is_ascii_digit());
    match (is_whole, value.is_infinite()) {
        (_, true) => Some(if value > 0.0 { "inf" } else { "-inf" }.into()),
        (true, false) if digits.parse::<i64>().is_err() => Some(format!("{value:.0e}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_too_large_become_floats() {
        let text = "a = 99999999999999999999 # 99999999999999999999\n\
                    b = [1e400, -1e400, 3, 1e3]\n\
                    c = \"99999999999999999999 \\\" 1e999\"\n\
                    d = '1e999' \n\
                    e = \"\"\"\n1e999 \" 1e999\"\"\"\n\
                    99999999999999999999 = 1\n\
                    f = { x = -340282366920938463463374607431768211456, y = inf }\n";
        let table: toml::Table = parse(text).unwrap();
        assert_eq!(table["a"].as_float(), Some(1e20));
        let b: Vec<Option<f64>> =
            table["b"].as_array().unwrap().iter().map(toml::Value::as_float).collect();
        assert_eq!(b, [Some(f64::INFINITY), Some(f64::NEG_INFINITY), None, Some(1e3)]);
        assert_eq!(table["c"].as_str(), Some("99999999999999999999 \" 1e999"));
        assert_eq!(table["d"].as_str(), Some("1e999"));
        assert_eq!(table["e"].as_str(), Some("1e999 \" 1e999"));
        assert_eq!(table["99999999999999999999"].as_integer(), Some(1));
        assert_eq!(table["f"]["x"].as_float(), Some(-3e38));
        assert_eq!(held(text).len(), text.len());
    }

    #[test]
    fn the_range_of_the_setting_refuses_them() {
        crate::settings! {
            /// Settings of this test.
            struct Example {
                /// A number.
                size: u8 = 1, within 1..=100, unit "packets";
                /// Any number.
                place: f64 = 0.0, within -5..=5, unit "m";
            }
        }
        for (text, message) in [
            ("size = 99999999999999999999", "size = 1e20: allowed is 1 to 100 packets"),
            ("place = -1e400", "place = -inf: allowed is -5 to 5 m"),
            ("size = 1e400", "size = inf: allowed is 1 to 100 packets"),
        ] {
            assert_eq!(parse::<Example>(text).err().unwrap().message(), message);
        }
        assert!(parse::<Example>("size = ").err().unwrap().message().contains("value"));
        let read: Example = parse("size = 3\nplace = 1.5").unwrap();
        assert_eq!((read.size, read.place), (3, 1.5));
    }
}
