//! Where a setting stands in a configuration file, for errors that are found after parsing.

/// The line (from 1) of `key` in `[section]`; of the section's head where the key is not found.
pub(super) fn line_of(text: &str, section: &str, key: &str) -> Option<usize> {
    let mut head = None;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            if head.is_some() {
                return head;
            }
            head = (name.0.trim() == section).then_some(i + 1);
        } else if head.is_some() && line.split_once('=').is_some_and(|(k, _)| k.trim() == key) {
            return Some(i + 1);
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn finds_keys_in_their_own_section_only() {
        let text = "# node\n[node]\nid = 1\n\n[link]\n fast = 2\nid = 9\n[route]\n";
        assert_eq!(line_of(text, "node", "id"), Some(3));
        assert_eq!(line_of(text, "link", "id"), Some(7));
        assert_eq!(line_of(text, "link", "absent"), Some(5));
        assert_eq!(line_of(text, "route", "x"), Some(8));
        assert_eq!(line_of(text, "none", "x"), None);
    }
}
