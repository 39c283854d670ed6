//! Finds the line of a setting in a configuration file, for errors that do not carry one.

/// Line of the form `key = value`.
struct Setting<'a> {
    line: usize,
    key: &'a str,
    /// The value without quotes and comment.
    value: &'a str,
}

/// Returns the line (from 1) of `key` in `[section]`, or of the section's header if the key is
/// absent.
pub(super) fn line_of(text: &str, section: &str, key: &str) -> Option<usize> {
    let (head, settings) = settings(text, section, 0)?;
    let line = |setting: &Setting<'_>| (setting.key == key).then_some(setting.line);
    Some(settings.iter().find_map(line).unwrap_or(head))
}

/// Returns the line (from 1) that a one-line `problem` in `[section]` is about.
///
/// This is the line of the key that the problem begins with or quotes first, or the only setting
/// with the value that it quotes first. Otherwise it is the section's header.
#[must_use]
pub fn line_of_problem(text: &str, section: &str, problem: &str) -> Option<usize> {
    line_of_entry(text, section, 0, problem)
}

/// Returns the line (from 1) that a one-line `problem` is about, in the `[[section]]` that `before`
/// others of this name stand before.
pub(super) fn line_of_entry(
    text: &str,
    section: &str,
    before: usize,
    problem: &str,
) -> Option<usize> {
    let (head, settings) = settings(text, section, before)?;
    let quoted = first_quoted(problem);
    let by_key = |key: &str| settings.iter().find(|setting| setting.key == key);
    if let Some(setting) = by_key(first_word(problem)).or_else(|| by_key(quoted?)) {
        return Some(setting.line);
    }
    // Only problems with a value quote it; another quoted word may be a value by chance.
    let is_about_value = ["invalid", "unknown variant"].iter().any(|p| problem.starts_with(p));
    let mut same = settings.iter().filter(|s| is_about_value && Some(s.value) == quoted);
    // Two settings of the same value leave it open which one is meant.
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only.line),
        _ => Some(head),
    }
}

/// Returns the setting that a problem begins with, or an empty word.
fn first_word(problem: &str) -> &str {
    let end = problem.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    &problem[..end.unwrap_or(problem.len())]
}

fn first_quoted(problem: &str) -> Option<&str> {
    let (_, rest) = problem.split_once(['`', '"'])?;
    rest.split(['`', '"']).next()
}

/// Returns the line of a section's header, and the section's settings, of the one that `before`
/// others of this name stand before.
fn settings<'a>(text: &'a str, section: &str, before: usize) -> Option<(usize, Vec<Setting<'a>>)> {
    let mut lines = (1..).zip(text.lines().map(str::trim));
    let mut heads = lines.by_ref().filter(|(_, line)| section_name(line) == Some(section));
    let (head, _) = heads.nth(before)?;
    let rest = lines.take_while(|(_, line)| section_name(line).is_none());
    let settings = rest.filter_map(|(line, text)| {
        let (key, value) = text.split_once('=')?;
        Some(Setting { line, key: key.trim(), value: plain(value.trim()) })
    });
    Some((head, settings.collect()))
}

/// Returns the name of the section whose header is this line, `[name]` or `[[name]]`.
pub(super) fn section_name(line: &str) -> Option<&str> {
    let (name, _) = line.trim().strip_prefix('[')?.split_once(']')?;
    let name = name.strip_prefix('[').unwrap_or(name);
    Some(name.trim())
}

/// Returns the key of a line of the form `key = value`.
pub(super) fn key_on(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

fn plain(value: &str) -> &str {
    let (quote, rest) = value.split_at(usize::from(value.starts_with(['"', '\''])));
    let end = if quote.is_empty() { rest.find('#') } else { rest.find(quote) };
    rest[..end.unwrap_or(rest.len())].trim()
}

#[cfg(test)]
mod tests {
    use super::{line_of, line_of_entry, line_of_problem};

    #[test]
    fn finds_keys_in_their_own_section_only() {
        let text = "# node\n[node]\nid = 1\n\n[link]\n fast = 2\nid = 9\n[route]\n";
        assert_eq!(line_of(text, "node", "id"), Some(3));
        assert_eq!(line_of(text, "link", "id"), Some(7));
        assert_eq!(line_of(text, "link", "absent"), Some(5));
        assert_eq!(line_of(text, "route", "x"), Some(8));
        assert_eq!(line_of(text, "none", "x"), None);
    }

    #[test]
    fn finds_the_entry_of_a_list_of_tables() {
        let text = "[[port]]\nmtu = 1\n[[port]]\nrate = 2\nmtu = 3\n[link]\nmtu = 4\n";
        let line = |before, problem| line_of_entry(text, "port", before, problem);
        assert_eq!([line(0, "mtu"), line(1, "mtu"), line(1, "x")], [Some(2), Some(5), Some(3)]);
        assert_eq!(line(2, "mtu"), None);
    }

    #[test]
    fn finds_what_a_problem_is_about() {
        let text = "[a]\nkey = 300 # much\nname = \"x\"\nother = 1\nmore = 1\n[b]\nlast = 2\n";
        for (problem, line) in [
            ("name = \"y\": allowed is z", 3),
            ("unknown field `other`, expected `o`", 4),
            ("invalid value: integer `300`, expected u8", 2),
            ("invalid type: string \"x\", expected f64", 3),
            ("unknown variant `x`, expected `y`", 3),
            ("invalid type: integer `1`, expected a string", 1),
            ("missing field `x`", 1),
            ("invalid type: integer `2`, expected a string", 1),
            ("invalid type: sequence", 1),
        ] {
            assert_eq!(line_of_problem(text, "a", problem), Some(line), "{problem}");
        }
    }
}
