//! Text of files that people and other programs write.

/// Reason why bytes are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// A byte that UTF-8 does not have there.
    #[error("line {line} is not UTF-8: save the file as UTF-8")]
    Utf8 {
        /// Line of the byte, from 1.
        line: usize,
    },
    /// Marked as UTF-16, and not of it.
    #[error("it is marked as UTF-16 and is damaged: save the file as UTF-8")]
    Utf16,
}

/// Byte order mark. Editors and spreadsheets under Windows begin UTF-8 with it.
const MARK: char = '\u{feff}';

/// Returns the text without the byte order mark that it may begin with.
#[must_use]
pub fn unmarked(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Returns the text of a file without its byte order mark: UTF-8, or UTF-16 if it is marked so.
///
/// # Errors
/// [`NotText`] if it is neither.
pub fn decode(bytes: Vec<u8>) -> Result<String, NotText> {
    let utf16 = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let pairs = bytes.chunks_exact(2);
        let is_whole = pairs.remainder().is_empty();
        let units: Vec<u16> = pairs.map(|pair| read([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok().filter(|_| is_whole).ok_or(NotText::Utf16)
    };

    // A byte order mark tells UTF-16, as PowerShell writes it.
    if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        return utf16(rest, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(&[0xfe, 0xff]) {
        return utf16(rest, u16::from_be_bytes);
    }

    let text = String::from_utf8(bytes).map_err(|error| {
        // The line of the first wrong byte is what helps to find it.
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        NotText::Utf8 { line: before.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })?;

    Ok(match text.strip_prefix(MARK) {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Reads a text file, as [`decode`] does.
///
/// # Errors
/// That of the operating system, or [`NotText`].
pub fn read(file: &std::path::Path) -> std::io::Result<String> {
    let bytes = std::fs::read(file)?;
    decode(bytes).map_err(|problem| std::io::Error::new(std::io::ErrorKind::InvalidData, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_are_no_text() {
        let utf16 = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
            mark.into_iter().chain("a,ö\n".encode_utf16().flat_map(bytes)).collect::<Vec<u8>>()
        };
        for bytes in [
            b"a,\xc3\xb6\n".to_vec(),
            b"\xef\xbb\xbfa,\xc3\xb6\n".to_vec(),
            utf16([0xff, 0xfe], u16::to_le_bytes),
            utf16([0xfe, 0xff], u16::to_be_bytes),
        ] {
            assert_eq!(decode(bytes.clone()).as_deref(), Ok("a,ö\n"), "{bytes:?}");
        }
        assert_eq!(unmarked("\u{feff}a"), "a");
        assert_eq!(unmarked("a\u{feff}"), "a\u{feff}");
    }

    #[test]
    fn bytes_that_are_no_text_have_a_reason() {
        assert_eq!(decode(b"a\nb\xff\n".to_vec()), Err(NotText::Utf8 { line: 2 }));
        assert_eq!(decode(b"\xff\xfea".to_vec()), Err(NotText::Utf16));
        assert_eq!(decode(b"\xff\xfe\x00\xd8".to_vec()), Err(NotText::Utf16));
    }
}
