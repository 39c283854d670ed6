//! Tables of settings.
//!
//! Each table is between two marks, `<!-- settings: NAME -->` and `<!-- end of settings -->`.

use super::tables;
use ncmesh_engine::settings::{Declared, Fallback, Kind, Toml};

const END: &str = "<!-- end of settings -->";
/// Digits from which on a number is written in groups of three.
const GROUPED: usize = 5;

/// Returns a page with all tables of settings written anew.
#[must_use]
pub fn document(written: &str) -> String {
    let mut out = written.to_owned();
    for table in tables() {
        let mark = format!("<!-- settings: {} -->\n", table.name);
        let Some((before, behind)) = out.split_once(&mark) else { continue };
        let rest = behind.split_once(END).map_or(behind, |(_, rest)| rest);
        let head = format!("| {} | default | allowed | meaning |\n", table.head);
        let rows: String = table.settings.iter().map(row).collect();
        out = format!("{before}{mark}\n{head}| --- | --- | --- | --- |\n{rows}\n{END}{rest}");
    }
    out
}

fn row(setting: &Declared) -> String {
    let cell = |text: String| text.replace('|', "\\|");
    let default = cell(default(setting));
    let allowed = cell(allowed(setting));
    let meaning = cell(setting.meaning.clone());
    format!("| `{}` | {default} | {allowed} | {meaning} |\n", setting.key)
}

fn default(setting: &Declared) -> String {
    match &setting.default {
        Fallback::Required => "required".into(),
        Fallback::Words(words) => (*words).to_owned(),
        Fallback::Nothing => "none".into(),
        Fallback::Value(Toml::Integer(number)) => grouped(&number.to_string()),
        Fallback::Value(Toml::Float(number)) => grouped(&number.to_string()),
        Fallback::Value(value) => format!("`{value}`"),
    }
}

fn allowed(setting: &Declared) -> String {
    if !setting.choices.is_empty() {
        let names: Vec<String> = setting.choices.iter().map(|one| format!("`\"{one}\"`")).collect();
        return names.join(", ");
    }
    match setting.kinds {
        [Kind::Boolean] => "`true`, `false`".into(),
        _ if setting.range.is_some() => grouped(&setting.allowed),
        _ => setting.allowed.clone(),
    }
}

/// Returns a text whose long whole numbers are written in groups of three.
fn grouped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits =
            rest[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - start);
        let (number, behind) = rest[start..].split_at(digits);
        out += &rest[..start];
        let is_fraction = rest[..start].ends_with('.');
        for (at, digit) in number.chars().enumerate() {
            let is_group = at > 0 && (digits - at).is_multiple_of(3);
            if is_group && digits >= GROUPED && !is_fraction {
                out.push(',');
            }
            out.push(digit);
        }
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn long_numbers_are_written_in_groups() {
        assert_eq!(grouped("1 to 10000 packets"), "1 to 10,000 packets");
        assert_eq!(grouped("0.12345 to 1000"), "0.12345 to 1000");
        assert_eq!(grouped("1234567"), "1,234,567");
        assert_eq!(grouped("none"), "none");
    }
}
