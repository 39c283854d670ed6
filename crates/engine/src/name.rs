//! Names of nodes, and text from the network.
//!
//! A name from the network is shown on terminals and in logs, so characters that terminals obey or
//! that hide other characters are replaced before it is stored.

/// Most characters of a node's name. Longer names from the network are cut. Even characters of four
/// bytes each fit a length field of one byte.
pub const MAX_NODE_NAME: usize = 63;

/// Names that nodes may have, in words.
pub const NODE_NAMES: &str = "1 to 63 of a-z, A-Z, 0-9, '.', '_' and '-'";

/// Returns whether `name` is allowed for a node: 1 to [`MAX_NODE_NAME`] letters, digits, `.`, `_`
/// and `-`.
#[must_use]
pub fn is_node_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=MAX_NODE_NAME).contains(&name.len()) && name.chars().all(plain)
}

/// Returns a node's name from the network, made [`harmless`] and cut to [`MAX_NODE_NAME`].
pub fn heard(bytes: &[u8]) -> String {
    harmless(&String::from_utf8_lossy(bytes)).chars().take(MAX_NODE_NAME).collect()
}

/// Returns text from the network that is safe to show on a terminal: U+FFFD replaces deceptive
/// characters.
#[must_use]
pub fn harmless(text: &str) -> String {
    text.replace(is_deceptive, "\u{FFFD}")
}

/// Returns the name of a file that is safe to show on a terminal, as [`harmless`] does. It keeps
/// marks of direction, which names in Hebrew and Arabic have.
#[must_use]
pub fn harmless_file_name(name: &str) -> String {
    name.replace(|c| is_control(c) || turns_text(c), "\u{FFFD}")
}

/// Returns whether a character deceives the reader: terminals obey control characters, and
/// bidirectional controls make one name look like another.
pub fn is_deceptive(c: char) -> bool {
    let is_mark = matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}');
    c.is_control() || is_mark || turns_text(c)
}

/// Returns whether terminals obey a character, or begin a line with it.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether a character turns the direction of all text behind it, so that `gpj.exe` is read
/// as another name.
pub(crate) fn turns_text(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_the_network_are_harmless_on_a_terminal() {
        assert_eq!(heard(b"roof-east"), "roof-east");
        assert_eq!(heard("Dach Süd".as_bytes()), "Dach Süd");
        assert_eq!(heard(b"\x1b[2Ja\r\nb\0"), "\u{FFFD}[2Ja\u{FFFD}\u{FFFD}b\u{FFFD}");
        assert_eq!(heard("a\u{202E}b\u{2066}c\u{9B}".as_bytes()), "a\u{FFFD}b\u{FFFD}c\u{FFFD}");
        assert_eq!(heard(&[b'a', 0xFF]), "a\u{FFFD}");
    }

    #[test]
    fn long_names_are_cut_and_still_fit_a_frame() {
        let cut = heard("\u{1F600}".repeat(100).as_bytes());
        assert_eq!(cut.chars().count(), MAX_NODE_NAME);
        assert!(cut.len() <= 255);
        assert_eq!(heard(&[0xFF; 255]).chars().count(), MAX_NODE_NAME);
    }

    #[test]
    fn an_allowed_name_arrives_unchanged() {
        assert!(NODE_NAMES.contains(&MAX_NODE_NAME.to_string()));
        let longest = "n".repeat(MAX_NODE_NAME);
        assert!(is_node_name(&longest));
        assert_eq!(heard(longest.as_bytes()), longest);
        for bad in ["", "a b", "é", &"n".repeat(MAX_NODE_NAME + 1)] {
            assert!(!is_node_name(bad), "{bad:?}");
        }
    }
}
