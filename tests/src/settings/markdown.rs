//! Tables of settings, and that of the default schemes.
//!
//! Each table is between two marks, `<!-- settings: NAME -->` and `<!-- end of settings -->`. The
//! default schemes have the name `auto`.

use super::tables;
use ncmesh_engine::registry::{AUTO, ServiceKind};
use ncmesh_engine::settings::{Declared, Fallback, Kind, Toml};
use ncmesh_engines::{reason, registry};

const END: &str = "<!-- end of settings -->";
/// Digits from which on a number is written in groups of three.
const GROUPED: usize = 5;

/// Returns a page with all tables of settings written anew.
#[must_use]
pub fn document(written: &str) -> String {
    let mut out = renewed(written, AUTO, &defaults());
    for table in tables() {
        let head = format!("| {} | default | allowed | meaning |\n", table.head);
        let rows: String = table.settings.iter().map(row).collect();
        out = renewed(&out, &table.name, &format!("{head}| --- | --- | --- | --- |\n{rows}"));
    }
    out
}

/// Returns a page with the table of this name written anew, if the page has it.
fn renewed(page: &str, name: &str, table: &str) -> String {
    let mark = format!("<!-- settings: {name} -->\n");
    let Some((before, behind)) = page.split_once(&mark) else { return page.to_owned() };
    let rest = behind.split_once(END).map_or(behind, |(_, rest)| rest);
    format!("{before}{mark}\n{table}\n{END}{rest}")
}

/// Returns the table of the default schemes.
fn defaults() -> String {
    let row = |service: ServiceKind| {
        let choice = registry().choose(service, AUTO).ok()?;
        Some(format!("| {} | `{}` | {} |\n", service.name(), choice.entry.name, reason(choice)))
    };
    let services = ServiceKind::ALL;
    let rows: String = services.into_iter().filter_map(row).collect();
    format!("| service | `{AUTO}` is | as `ncmesh` says it |\n| --- | --- | --- |\n{rows}")
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
