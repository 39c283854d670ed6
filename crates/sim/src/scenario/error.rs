//! Errors of scenario files, each with the file and line it is about.

use ncmesh_engine::wording::{in_words, key_at};
use std::fmt;
use std::ops::Range;

/// A file and, where known, a line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the file, as the user gave it.
    pub file: String,
    /// Number of the line, from 1; `None` if the error is about the whole file.
    pub line: Option<usize>,
}

impl Place {
    /// Returns the place of a whole file.
    pub(super) fn file(file: &str) -> Self {
        Self { file: file.to_owned(), line: None }
    }

    /// Returns the place of a line, counted from 1.
    pub(super) fn line(file: &str, line: usize) -> Self {
        Self { file: file.to_owned(), line: Some(line) }
    }

    /// Returns the line on which a span of bytes of `text` begins.
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

/// Reason why a scenario cannot be used. Each message is one line and says what is allowed.
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
    /// A file is longer than the limit.
    #[error("{path}: longer than {limit} bytes")]
    TooLong {
        /// The file.
        path: String,
        /// Length of the longest file that is read, bytes.
        limit: u64,
    },
    /// A file is not in its format, or has an unknown key or a value of the wrong type.
    #[error("{place}: {message}")]
    Syntax {
        /// File and line.
        place: Place,
        /// Message of the parser.
        message: String,
    },
    /// A value is out of range, or contradicts another.
    #[error("{place}: {message}")]
    Value {
        /// File and line.
        place: Place,
        /// Problem, and what is allowed.
        message: String,
    },
    /// A scenario given as a table, not as a file, is wrong. The text is the problem and what is
    /// allowed.
    #[error("{0}")]
    Table(String),
    /// A `key=value` override cannot be applied.
    #[error("override `{assignment}`: {message}")]
    Override {
        /// The override, as the user gave it.
        assignment: String,
        /// Problem, and what is allowed.
        message: String,
    },
}

impl ScenarioError {
    /// Returns a value error at `place`.
    pub(super) fn value(place: Place, message: impl Into<String>) -> Self {
        Self::Value { place, message: message.into() }
    }

    /// Returns a syntax error that the TOML parser found in `text`.
    pub(super) fn toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        let key = error.span().and_then(|span| key_at(text, span.start));
        let message = in_words(key, &message).into_owned();
        Self::Syntax { place: Place::span(file, text, error.span()), message }
    }

    /// Replaces the place of an error in `text` by the line at that place: the user wrote a table,
    /// not `text`, so its line numbers mean nothing to them. Errors in other files stay unchanged.
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

    /// Returns the message without the place, for values that do not come from a file.
    pub(super) fn into_message(self) -> String {
        match self {
            Self::Syntax { message, .. } | Self::Value { message, .. } => message,
            other => other.to_string(),
        }
    }
}
