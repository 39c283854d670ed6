//! A recording: messages in a file, as lines of JSON, compressed with gzip.
//!
//! The first line is a meta, the second a key, and so on as [`schema`](crate::schema) says. The
//! last line is the event `end`: a recording without it was cut off. Browsers read it by their
//! `DecompressionStream`.

use crate::Sink;
use crate::schema::{EventKind, Message, OLDEST_SCHEMA, SCHEMA};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Read, Write};

/// Longest line, bytes. A key of 1,000 nodes with 60 neighbours each has some 4 MB.
pub const LONGEST_LINE: usize = 32 << 20;

/// Writer of a recording.
pub struct Writer<W: Write> {
    out: GzEncoder<W>,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Returns a writer to `out`.
    #[must_use]
    pub fn new(out: W) -> Self {
        Self { out: GzEncoder::new(out, Compression::best()), line: Vec::new() }
    }

    /// Writes what is left, and returns the file.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.finish()?;
        self.out.finish()
    }
}

impl<W: Write> Sink for Writer<W> {
    fn tell(&mut self, message: &Message) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, message)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.try_finish()?;
        self.out.get_mut().flush()
    }
}

/// Reason why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(io::Error),
    /// The file is something else.
    #[error("not a recording of ncmesh: it is not made by --record")]
    Foreign,
    /// It was made by another version of ncmesh.
    #[error(
        "schema {found} is not {OLDEST_SCHEMA} to {SCHEMA}: record the run again with this version \
         of ncmesh, or read it with a newer one"
    )]
    Version {
        /// Version of its schema.
        found: u32,
    },
    /// It ends in the middle.
    #[error("cut off after {lines} lines: copy the file again, or record the run again")]
    Cut {
        /// Lines that could be read.
        lines: usize,
    },
    /// A line is no message, or in the wrong place.
    #[error("line {line} is damaged: {problem}")]
    Damaged {
        /// Number of the line, from 1.
        line: usize,
        /// Defect of the recording.
        problem: String,
    },
    /// A line is longer than any message.
    #[error("line {line} is longer than {LONGEST_LINE} bytes")]
    TooLong {
        /// Number of the line, from 1.
        line: usize,
    },
}

/// Strict reader of a recording: an iterator over its messages. It keeps one line in memory, and
/// ends after the first error.
pub struct Reader<R: Read> {
    lines: BufReader<GzDecoder<BufReader<R>>>,
    line: Vec<u8>,
    /// Lines read so far.
    number: usize,
    order: Order,
    /// Whether the end or an error has been returned.
    is_over: bool,
}

/// Message that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// A meta, the first line.
    First,
    /// A key, after a meta.
    Key,
    /// Anything.
    Any,
    /// Nothing: the recording has ended.
    Nothing,
}

/// The fields of a meta that do not depend on the version of the schema.
#[derive(Deserialize)]
struct Head {
    r#type: String,
    schema: u32,
}

impl<R: Read> Reader<R> {
    /// Returns a reader of `file`.
    #[must_use]
    pub fn new(file: R) -> Self {
        let lines = BufReader::new(GzDecoder::new(BufReader::new(file)));
        Self { lines, line: Vec::new(), number: 0, order: Order::First, is_over: false }
    }

    /// Reads the next line, without its end. Returns whether there was one.
    fn read_line(&mut self) -> Result<bool, ReadError> {
        self.line.clear();
        // The limit keeps a line without an end from filling the memory. The byte beyond the
        // longest line tells that it went on.
        let limit = LONGEST_LINE as u64 + 1;
        let read = (&mut self.lines).take(limit).read_until(b'\n', &mut self.line);

        let lines = self.number;
        match read.map_err(|e| e.kind()) {
            Ok(0) => Ok(false),
            Ok(_) if self.line.last() == Some(&b'\n') => {
                self.number += 1;
                self.line.pop();
                Ok(true)
            }
            Ok(read) if read as u64 == limit => Err(ReadError::TooLong { line: lines + 1 }),
            // A file that is no gzip at all is not cut off; it never was a recording.
            Err(_) if lines == 0 && self.line.is_empty() => Err(ReadError::Foreign),
            Ok(_) | Err(io::ErrorKind::UnexpectedEof) => Err(ReadError::Cut { lines }),

            // The deflate stream is invalid, or the checksum at the end does not match.
            Err(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                let problem = "the compressed data are wrong".to_owned();
                Err(ReadError::Damaged { line: lines + 1, problem })
            }
            Err(kind) => Err(ReadError::Io(kind.into())),
        }
    }

    /// Returns the next message; `None` at the end.
    fn read(&mut self) -> Result<Option<Message>, ReadError> {
        if self.order == Order::Nothing {
            // The checksum at the end is checked when it is read.
            return match self.read_line()? {
                false => Ok(None),
                true => Err(self.damaged("nothing may follow the event `end`")),
            };
        }

        // Gzip ends properly in a file without a message, too: only the event `end` shows that
        // nothing is missing.
        if !self.read_line()? {
            let lines = self.number;
            let is_empty = self.order == Order::First;
            return Err(if is_empty { ReadError::Foreign } else { ReadError::Cut { lines } });
        }

        // The version comes first: lines of others need not be messages of this one.
        if self.order == Order::First {
            let head = serde_json::from_slice::<Head>(&self.line);
            let head = head.ok().filter(|head| head.r#type == "meta").ok_or(ReadError::Foreign)?;
            if !(OLDEST_SCHEMA..=SCHEMA).contains(&head.schema) {
                return Err(ReadError::Version { found: head.schema });
            }
        }

        // The order is part of the format: a tick changes the key before it, and a key has the rows
        // that the meta names.
        let message: Message =
            serde_json::from_slice(&self.line).map_err(|e| self.damaged(&e.to_string()))?;
        self.order = match (&message, self.order) {
            (Message::Meta(_), Order::First | Order::Any) => Order::Key,
            (Message::Key(_), Order::Key | Order::Any) => Order::Any,
            (Message::Event(event), Order::Any) if event.what == EventKind::End => Order::Nothing,
            (Message::Tick(_) | Message::Event(_), Order::Any) => Order::Any,
            _ => return Err(self.damaged("after a meta comes a key")),
        };

        Ok(Some(message))
    }

    fn damaged(&self, problem: &str) -> ReadError {
        ReadError::Damaged { line: self.number, problem: problem.to_owned() }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }

        let read = self.read();
        self.is_over = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}
