//! Mistakes in configurations and command lines, in the words of those who made them.

use std::borrow::Cow;

/// Returns a question to append to a message about an unknown name, such as "; did you mean
/// \`braid\`?"; empty if no known name is near.
#[must_use]
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Returns the known name that is nearest to `name`, if at most a third of the longer one differs.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    let near = known.into_iter().filter_map(|known| {
        // A difference in length is one in letters: a name of a megabyte is not looked at.
        let own = known.chars().count();
        let longest = length.max(known.chars().count());
        if own.abs_diff(length) * 3 > longest {
            return None;
        }
        let distance = strsim::damerau_levenshtein(&name, &known.to_lowercase());
        (distance * 3 <= longest).then_some((distance, known))
    });

    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Returns a message of serde's in the user's words: which key, what it must be, with an example.
/// Asks whether a known name was meant in place of an unknown one. Other messages stay.
#[must_use]
pub fn in_words<'a>(key: Option<&str>, message: &'a str) -> Cow<'a, str> {
    if let Some(words) = wrong_type(key, message).or_else(|| too_large(key, message)) {
        return words.into();
    }
    match unknown(message) {
        Some(question) if !question.is_empty() => format!("{message}{question}").into(),
        _ => message.into(),
    }
}

/// Returns what a value of the wrong type, or a number that is too small or large, must be.
fn wrong_type(key: Option<&str>, message: &str) -> Option<String> {
    let of_type = message.strip_prefix("invalid type: ");
    let problem = of_type.or_else(|| message.strip_prefix("invalid value: "))?;

    // The value may itself contain the words that separate it from what was expected.
    let (value, expected) = problem.rsplit_once(", expected ")?;
    let wanted = match (expected, of_type) {
        ("u8" | "u16" | "u32" | "u64" | "usize" | "i64", Some(_)) => "a whole number such as 3",
        ("u8", None) => "a whole number from 0 to 255",
        ("u16", None) => "a whole number from 0 to 65535",
        ("u32", None) => "a whole number from 0 to 4294967295",
        ("u64" | "usize", None) => "a whole number from 0 to 9223372036854775807",
        // Other values are judged by their readers, whose messages are for people.
        (_, None) => return None,
        ("a sequence", _) => "a list such as [\"a\", \"b\"]",
        ("a string" | "path string", _) => "text in quotes such as \"a\"",
        ("f32" | "f64", _) => "a number such as 0.5",
        ("a boolean", _) => "true or false",
        ("a map", _) => "a table of keys and values",
        (table, _) if table.starts_with("struct ") => "a table of keys and values",
        (own, _) => own,
    };

    let kinds = [
        ("string ", "the text "),
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("boolean ", ""),
        ("sequence", "a list"),
        ("map", "a table"),
    ];

    // The parser names kinds in its own words. A kind that is not among these is shown unchanged.
    let found = kinds.iter().find_map(|(kind, ours)| Some((ours, value.strip_prefix(kind)?)));
    let value = found.map_or_else(|| value.to_owned(), |(ours, rest)| format!("{ours}{rest}"));
    let key = key.map_or_else(|| "the value".to_owned(), |key| format!("`{key}`"));
    Some(format!("{key} must be {wanted}, not {value}"))
}

/// Returns what is wrong with a number that the parser cannot hold.
fn too_large(key: Option<&str>, message: &str) -> Option<String> {
    let most = match message {
        "floating-point number overflowed" => "1.8e308",
        "integer number overflowed" => "9223372036854775807",
        _ => return None,
    };
    let key = key.map_or_else(|| "a number".to_owned(), |key| format!("`{key}`"));
    Some(format!("{key} is too large: numbers are at most {most}"))
}

/// Returns a question about an unknown key or variant, from the list in serde's message.
fn unknown(message: &str) -> Option<String> {
    let is_one = ["unknown field `", "unknown variant `"];
    let rest = is_one.iter().find_map(|head| message.strip_prefix(head))?;
    let (name, known) = rest.split_once("`, expected ")?;
    // Names stand between backticks: every second part.
    Some(did_you_mean(name, known.split('`').skip(1).step_by(2)))
}

/// Returns the key whose value begins at byte `at` of a TOML text, or which has it in its list.
#[must_use]
pub fn key_at(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?;
    let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
    let (key, _) = line.rsplit_once('=')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let key = key.trim_end().rsplit(|c| !is_plain(c)).next()?;
    (!key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_asked_for_and_a_far_one_is_not() {
        let schemes = ["braid", "forward", "core_nc", "mc2"];
        for (name, near) in [
            ("braidd", "; did you mean `braid`?"),
            ("Forwrad", "; did you mean `forward`?"),
            ("corenc", "; did you mean `core_nc`?"),
            ("carrot", ""),
            (&"braid".repeat(1_000_000), ""),
            ("x", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(name, schemes), near, "{name}");
        }
        assert_eq!(did_you_mean("x", ["a", "b"]), "");
        assert_eq!(did_you_mean("n1", ["n01", "n10", "n22"]), "; did you mean `n01`?");
    }

    #[test]
    fn messages_say_which_key_must_be_what() {
        for (key, message, words) in [
            (
                Some("to"),
                "invalid type: string \"r\", expected a sequence",
                "`to` must be a list such as [\"a\", \"b\"], not the text \"r\"",
            ),
            (
                Some("loss"),
                "invalid type: string \"map, expected x\", expected f64",
                "`loss` must be a number such as 0.5, not the text \"map, expected x\"",
            ),
            (
                None,
                "invalid type: floating point `1.5`, expected u16",
                "the value must be a whole number such as 3, not the number `1.5`",
            ),
            (
                Some("seed"),
                "invalid value: integer `-1`, expected u64",
                "`seed` must be a whole number from 0 to 9223372036854775807, not the number `-1`",
            ),
            (
                Some("rate"),
                "invalid value: string \"2X\", expected a bit rate such as \"2M\"",
                "invalid value: string \"2X\", expected a bit rate such as \"2M\"",
            ),
            (
                Some("medium"),
                "invalid type: integer `3`, expected struct Medium",
                "`medium` must be a table of keys and values, not the number `3`",
            ),
            (
                None,
                "unknown field `bitrate`, expected one of `phy`, `bit_rate`, `mtu`",
                "unknown field `bitrate`, expected one of `phy`, `bit_rate`, `mtu`; \
                 did you mean `bit_rate`?",
            ),
            (
                None,
                "unknown field `speed`, expected `phy`",
                "unknown field `speed`, expected `phy`",
            ),
            (
                Some("position"),
                "floating-point number overflowed",
                "`position` is too large: numbers are at most 1.8e308",
            ),
            (Some("x"), "missing field `name`", "missing field `name`"),
        ] {
            assert_eq!(in_words(key, message), words);
        }
    }

    #[test]
    fn the_key_before_a_value_is_found() {
        let text = "[a]\nto = \"r\"\nlist = [1, \"x\"]\nt = { node = 3 }\n[b]\n";
        let key = |value: &str| key_at(text, text.find(value).unwrap());
        assert_eq!(key("\"r\""), Some("to"));
        assert_eq!(key("\"x\""), Some("list"));
        assert_eq!(key("3"), Some("node"));
        assert_eq!(key("[b]"), None);
        assert_eq!(key_at("¥b = 1", 6), Some("b"));
        assert_eq!(key_at("¥ = 1", 5), None);
        assert_eq!(key_at("¥ = 1", 1), None, "no place where a letter begins");
        assert_eq!(key_at(text, 10_000), None);
    }
}
