//! Writes the tables of the reference that are made from the API's types and from the metrics.

use ncmesh_node::api::reference::Page;

fn main() -> std::io::Result<()> {
    for page in Page::all() {
        let text = std::fs::read_to_string(&page.path)?;
        let lacks_marks = || std::io::Error::other("a page lacks the marks of its tables");
        std::fs::write(&page.path, page.renew(&text).ok_or_else(lacks_marks)?)?;
    }
    Ok(())
}
