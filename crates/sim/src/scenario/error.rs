//! What can be wrong with a scenario, and where.

use std::fmt;
use std::ops::Range;

/// A file and, where known, a line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
}

impl Place {
    /// A whole file.
    pub(super) fn file(file: &str) -> Self {
        Self { file: file.to_owned(), line: None }
    }

    /// A line of a file, from 1.
    pub(super) fn line(file: &str, line: usize) -> Self {
        Self { file: file.to_owned(), line: Some(line) }
    }

    /// Where a span of bytes of `text` begins.
    pub(super) fn span(file: &str, text: &str, span: Option<Range<usize>>) -> Self {
        let before = span.and_then(|span| text.as_bytes().get(..span.start));
        let line = before.map(|before| before.iter().filter(|&&byte| byte == b'\n').count() + 1);
        Self { file: file.to_owned(), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// Why a scenario cannot be used. Each message is one line and says what would be allowed.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file is longer than any scenario needs.
    #[error("{path}: longer than {limit} bytes")]
    TooLong {
        /// The file.
        path: String,
        /// The most bytes read.
        limit: u64,
    },
    /// A file is not in its format, or has a key that does not exist or a value of the wrong type.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// A value is out of range, or contradicts another.
    #[error("{place}: {message}")]
    Value {
        /// Where.
        place: Place,
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// A scenario that came from no file is wrong: what, and what is allowed.
    #[error("{0}")]
    Table(String),
    /// A `key=value` override cannot be applied.
    #[error("override `{assignment}`: {message}")]
    Override {
        /// The override as given.
        assignment: String,
        /// What is wrong, and what is allowed.
        message: String,
    },
}

impl ScenarioError {
    /// A value error at `place`.
    pub(super) fn value(place: Place, message: impl Into<String>) -> Self {
        Self::Value { place, message: message.into() }
    }

    /// A syntax error of the TOML parser in `text`.
    pub(super) fn toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        Self::Syntax { place: Place::span(file, text, error.span()), message }
    }

    /// An error about `text`, which the user has not written, shows what stands at the place instead of where it
    /// is. Errors in other files are left as they are.
    pub(super) fn in_table(self, origin: &str, text: &str) -> Self {
        let (Self::Syntax { place, message } | Self::Value { place, message }) = &self else {
            return self;
        };
        if place.file != origin {
            return self;
        }
        let line = place.line.and_then(|line| text.lines().nth(line - 1));
        let shown = line.map(|line| line.chars().take(80).collect::<String>());
        Self::Table(shown.map_or(message.clone(), |shown| format!("{message}, in `{shown}`")))
    }

    /// The message without the place, for errors about values that came from no file.
    pub(super) fn into_message(self) -> String {
        match self {
            Self::Syntax { message, .. } | Self::Value { message, .. } => message,
            other => other.to_string(),
        }
    }
}
