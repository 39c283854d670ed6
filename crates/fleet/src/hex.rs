//! Bytes of lower-case hexadecimal digits.

pub(crate) use ncmesh_wire::hex;

/// Returns the bytes of exactly as many digits; `None` for anything else.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    unhex_all(text)?.try_into().ok()
}

/// Returns the bytes of an even number of digits; `None` for anything else.
pub(crate) fn unhex_all(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Returns the value of a lower-case digit. Upper-case digits would be a second way to write one
/// number, and a signed text has one form.
fn digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    }
}
