//! Names: what a node may be called, and which characters are never shown or stored.

/// The most characters of a node's name. A longer one from the network is cut there; of four bytes each they
/// still fit a length of one byte.
pub const MAX_NODE_NAME: usize = 63;

/// Whether a node may be called so: 1 to [`MAX_NODE_NAME`] letters, digits, `.`, `_` and `-`.
#[must_use]
pub fn is_node_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=MAX_NODE_NAME).contains(&name.len()) && name.chars().all(plain)
}

/// A node's name as heard from the network, made harmless and cut to [`MAX_NODE_NAME`].
pub fn heard(bytes: &[u8]) -> String {
    harmless(&String::from_utf8_lossy(bytes)).chars().take(MAX_NODE_NAME).collect()
}

/// Text from the network, fit to be shown on a terminal: U+FFFD takes the place of what is deceptive.
#[must_use]
pub fn harmless(text: &str) -> String {
    text.replace(is_deceptive, "\u{FFFD}")
}

/// Control characters, which terminals obey, and bidirectional controls, which make a name look like another.
pub fn is_deceptive(c: char) -> bool {
    let is_bidi_control = matches!(
        c,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || is_bidi_control
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
    fn a_name_that_may_be_given_arrives_as_it_is() {
        let longest = "n".repeat(MAX_NODE_NAME);
        assert!(is_node_name(&longest));
        assert_eq!(heard(longest.as_bytes()), longest);
        for bad in ["", "a b", "é", &"n".repeat(MAX_NODE_NAME + 1)] {
            assert!(!is_node_name(bad), "{bad:?}");
        }
    }
}
