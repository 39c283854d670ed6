//! The built files of the console.

/// Files by name, sorted.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Name of the page that is one file. It is not served.
pub(crate) const STANDALONE: &str = "standalone.html";

/// Returns a file of the console.
pub(crate) fn find(name: &str) -> Option<&'static [u8]> {
    let place = FILES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    FILES.get(place).map(|(_, bytes)| *bytes)
}

/// Returns the media type of a file by its ending.
pub(crate) fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" => "application/json",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_has_a_page_and_files_are_found_by_name() {
        assert!(find("index.html").is_some());
        assert!(FILES.is_sorted());
        assert!(FILES.iter().all(|(name, bytes)| find(name) == Some(bytes)));
        assert!(find("../Cargo.toml").is_none());
        assert!(FILES.iter().all(|(name, _)| media_type(name) != "application/octet-stream"));
    }
}
