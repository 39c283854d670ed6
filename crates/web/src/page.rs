//! A page that is one file: the console with recordings in it.

use crate::files;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Text in the built page that recordings replace.
const PLACE: &str = "NCMESH_RECORDINGS";

/// Returns a page that shows `recordings`, files as [`ncmesh_console::recording`] writes them.
/// `None` if this build has no such page.
///
/// Recordings are in it as base64, so nothing in them can be taken for HTML.
#[must_use]
pub fn with(recordings: &[&[u8]]) -> Option<String> {
    let page = std::str::from_utf8(files::find(files::STANDALONE)?).ok()?;
    let (before, after) = page.split_once(PLACE)?;
    let encoded: Vec<String> = recordings.iter().map(|bytes| STANDARD.encode(bytes)).collect();
    Some([before, &encoded.join("\n"), after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_recordings_and_nothing_of_them_is_html() {
        let page = with(&[b"</script><script>alert(1)</script>", b"two"]).expect("it is built");
        assert!(!page.contains("alert(1)") && !page.contains(PLACE));
        assert!(page.contains(&format!(
            "{}\n{}",
            STANDARD.encode("</script><script>alert(1)</script>"),
            "dHdv"
        )));
    }
}
