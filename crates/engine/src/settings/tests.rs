//! Tests of a declared section: values it reads, values it refuses, and its description.

use super::{Fallback, Kind, Mismatch, Section, Toml};

crate::choices! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Order {
        Weight = "weight",
        Random = "random",
    }
}

crate::settings! {
    /// `[example]`.
    #[derive(Clone, Debug, PartialEq)]
    struct Example {
        /// Packets that a node queues.
        /// More delay packets.
        queue: usize = 64, within 1..=100, unit "packets";
        // A comment is no part of the meaning.
        /// Least share.
        low: f64 = 0.1, within 0.0..=1.0;
        high: f64 = 0.2, within 0.0..=1.0, at_least "low";
        size: Option<u16> = None, absent "as large as fits";
        speed: f64 = 1.0, above 0, unit "m/s";
        order: Order = Order::Weight;
        coding: bool = true;
        pair: Vec<u8> = Vec::new(), read pair, allowed "two numbers";
    }
}

crate::settings! {
    #[derive(Debug, PartialEq)]
    struct Required {
        name: String;
        level: u8 = 3;
    }
}

fn pair(value: Toml) -> Result<Vec<u8>, Mismatch> {
    let allowed = || Mismatch::Value("two numbers".into());
    let Toml::Array(list) = value else { return Err(allowed()) };
    match list.as_slice() {
        [Toml::Integer(a), Toml::Integer(b)] => Ok(vec![*a as u8, *b as u8]),
        _ => Err(allowed()),
    }
}

fn refused(text: &str) -> String {
    toml::from_str::<Example>(text).unwrap_err().message().to_owned()
}

#[test]
fn what_is_left_out_has_its_default() {
    let example: Example = toml::from_str("queue = 7\nsize = 9\norder = \"random\"").unwrap();
    let changed = Example { queue: 7, size: Some(9), order: Order::Random, ..Example::default() };
    assert_eq!(example, changed);
    assert_eq!(toml::from_str::<Example>("").unwrap(), Example::default());
    let required: Required = toml::from_str("name = \"a\"").unwrap();
    assert_eq!(required, Required { name: "a".into(), level: 3 });
    let error = toml::from_str::<Required>("level = 1").unwrap_err();
    assert_eq!(error.message(), "missing field `name`");
}

#[test]
fn values_that_are_not_allowed_are_refused_with_key_value_range_and_unit() {
    for (text, problem) in [
        ("queue = 0", "queue = 0: allowed is 1 to 100 packets"),
        ("queue = -1", "queue = -1: allowed is 1 to 100 packets"),
        ("queue = 1e300", "queue = 1e300: allowed is 1 to 100 packets"),
        ("queue = 1.5", "`queue` must be a whole number such as 3, not the number `1.5`"),
        ("queue = \"a\"", "`queue` must be a whole number such as 3, not the text \"a\""),
        ("low = nan", "low = nan: allowed is 0 to 1"),
        ("low = -inf", "low = -inf: allowed is 0 to 1"),
        ("high = 0.05", "high = 0.05: allowed is 0.1 to 1"),
        ("low = 0.3", "high = 0.2: allowed is 0.3 to 1"),
        ("high = 2", "high = 2: allowed is `low` to 1"),
        ("size = 65536", "size = 65536: allowed is 0 to 65535"),
        ("speed = 0", "speed = 0: allowed is above 0 m/s"),
        ("speed = inf", "speed = inf: allowed is above 0 m/s"),
        (
            "order = \"rndom\"",
            "order = \"rndom\": allowed is \"weight\", \"random\"; did you mean `random`?",
        ),
        ("order = 1", "`order` must be text in quotes such as \"a\", not the number `1`"),
        ("coding = 1", "`coding` must be true or false, not the number `1`"),
        ("pair = [1]", "pair = [1]: allowed is two numbers"),
        ("pair = \"a\\nb\"", "pair = \"a\\nb\": allowed is two numbers"),
        ("pair = [\"a\\nb\"]", "pair = [\"\"\" a b\"\"\"]: allowed is two numbers"),
    ] {
        assert_eq!(refused(text), problem);
    }
    assert!(refused("quue = 1").starts_with("unknown field `quue`, expected one of `queue`, "));
}

#[test]
fn errors_have_the_place_of_the_value() {
    let text = "coding = true\nqueue = 300\n";
    let error = toml::from_str::<Example>(text).unwrap_err();
    assert_eq!(error.span().map(|span| &text[span]), Some("300"));
    let text = "coding = true\nquue = 3\n";
    let error = toml::from_str::<Example>(text).unwrap_err();
    assert_eq!(error.span().map(|span| &text[span]), Some("quue"));
}

#[test]
fn a_section_that_was_made_in_code_is_checked_too() {
    assert_eq!(Example::default().check(), Ok(()));
    let wrong = Example { low: f64::NAN, ..Example::default() };
    assert_eq!(wrong.check().unwrap_err().to_string(), "low = nan: allowed is 0 to 1");
}

#[test]
fn the_declaration_says_what_documents_need() {
    let all = Example::settings();
    assert_eq!(all.iter().map(|one| one.key).collect::<Vec<_>>(), Example::KEYS);
    let [queue, low, high, size, speed, order, coding, pair] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(queue.meaning, "Packets that a node queues. More delay packets.");
    assert_eq!((queue.kinds, &queue.default), (&[Kind::Whole][..], &Fallback::Value(64.into())));
    assert_eq!(queue.range.as_ref().unwrap().most(), Some(100.0));
    assert_eq!(low.meaning, "Least share.");
    assert_eq!(high.allowed, "`low` to 1");
    assert_eq!(size.default, Fallback::Words("as large as fits"));
    assert_eq!(speed.allowed, "above 0 m/s");
    assert_eq!(order.choices, ["weight", "random"]);
    assert_eq!(coding.default, Fallback::Value(true.into()));
    assert_eq!((pair.default.clone(), pair.allowed.as_str()), (Fallback::Nothing, "two numbers"));
    assert_eq!(Required::settings()[0].default, Fallback::Required);
}
