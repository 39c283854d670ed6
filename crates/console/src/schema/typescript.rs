//! Types in TypeScript of what [`declare`](super::declare) declares.

use super::field::Field;
use std::fmt::Write;

/// Longest line of a comment, without the marks before it.
const COMMENT_WIDTH: usize = 97;

/// A column of a table that is no counter.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    /// Type of its entries.
    pub(super) entry: &'static str,
}

/// Returns a text as a comment.
pub(super) fn comment(text: &str) -> String {
    let mut lines = vec![String::new()];
    // A word that is longer than a line is not split: it may be a path or a type.
    for word in text.split_whitespace() {
        let last = lines.last_mut().filter(|line| line.len() + word.len() < COMMENT_WIDTH);
        match last {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }

    format!("/**\n * {}\n */\n", lines.join("\n * "))
}

/// An interface while it is written.
pub(super) struct Interface(String);

impl Interface {
    pub(super) fn new() -> Self {
        Self("{\n".to_owned())
    }

    pub(super) fn field(&mut self, name: &str, meaning: &str, of: &str) {
        let _ = writeln!(self.0, "{}{name}: {of},", comment(meaning));
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Returns the fields of a state in a key. Those in `own` name its node.
pub(super) fn state(own: &[&str], fields: &[Field]) -> String {
    let mut interface = Interface::new();
    for name in own {
        interface.field(name, "Id of the node.", "number");
    }

    for field in fields {
        // A key leaves out a value that is not known.
        let types = (field.types)();
        let mark = if types.is_optional { "?" } else { "" };
        let of = if types.is_optional { format!("{} | null", types.key) } else { types.key };
        interface.field(&format!("{}{mark}", field.name), field.meaning(), &of);
    }

    interface.finish()
}

/// Returns the fields of a tick of a state.
pub(super) fn tick(id: &str, fields: &[Field]) -> String {
    let mut interface = Interface::new();
    interface.field(id, "Which one: its place in the list, or the id of its node.", "number");

    // A tick leaves out the values that stayed the same, so each of its fields may be absent.
    for field in fields {
        interface.field(&format!("{}?", field.name), field.meaning(), &(field.types)().tick);
    }

    interface.finish()
}

/// Returns the columns of a table in a key.
pub(super) fn table(counters: &[Field], beside: &[Column]) -> String {
    let mut interface = Interface::new();
    for field in counters {
        interface.field(field.name, field.meaning(), "(Count | null)[]");
    }

    for Column { name, meaning, entry } in beside {
        interface.field(name, meaning, &format!("{entry}[]"));
    }
    interface.finish()
}

/// Returns the columns of the ticks of a table.
pub(super) fn ticks(counters: &[Field], told: &[Column]) -> String {
    let mut interface = Interface::new();
    interface.field("row", "Places of the rows in the list, ascending.", "number[]");
    for field in counters {
        interface.field(&format!("{}?", field.name), field.meaning(), "number[]");
    }

    for Column { name, meaning, entry } in told {
        interface.field(&format!("{name}?"), meaning, &format!("{entry}[]"));
    }
    interface.finish()
}
