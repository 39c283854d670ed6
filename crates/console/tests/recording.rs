//! Recordings: written and read, cut off, damaged, foreign, of another version.

mod common;

use common::{meta, state};
use flate2::Compression;
use flate2::write::GzEncoder;
use ncmesh_console::Sink;
use ncmesh_console::recording::{LONGEST_LINE, ReadError, Reader, Writer};
use ncmesh_console::schema::{Event, EventKind, KEY_S, Key, Message, SCHEMA, Tick};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Returns a short run.
fn messages() -> Vec<Message> {
    let ticks = (1..200).map(|tick| {
        let time_s = f64::from(tick) / 10.0;
        let now = state(time_s, &[tick * tick]);
        let before = state(0.0, &[(tick - 1) * (tick - 1)]);
        now.tick_since(&before).map_or(Message::Tick(Tick::default()), Message::Tick)
    });
    let end = Message::Event(Event { time_s: 20.0, node: None, what: EventKind::End });
    let begin = [Message::Meta(meta()), Message::Key(state(0.0, &[0]))];
    begin.into_iter().chain(ticks).chain([end]).collect()
}

fn written(messages: &[Message]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    messages.iter().for_each(|message| writer.tell(message).expect("memory"));
    writer.into_inner().expect("memory")
}

/// Returns lines of text, compressed.
fn compressed(text: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(text).expect("memory");
    out.finish().expect("memory")
}

/// Returns the messages of a file up to the first error, and that error.
fn read(file: &[u8]) -> (Vec<Message>, Option<ReadError>) {
    let mut messages = Vec::new();
    for message in Reader::new(file) {
        match message {
            Ok(message) => messages.push(message),
            Err(error) => return (messages, Some(error)),
        }
    }
    (messages, None)
}

#[test]
fn a_recording_is_read_as_it_was_written() {
    let (read, error) = read(&written(&messages()));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(read, messages());
}

#[test]
fn a_recording_cut_anywhere_is_an_error_and_never_a_wrong_message() {
    let file = written(&messages());
    let all = messages();
    for cut in (0..file.len()).step_by(29) {
        let (read, error) = read(&file[..cut]);
        assert!(error.is_some(), "cut at {cut}");
        assert_eq!(read, all[..read.len()]);
    }
    let (_, error) = read(&file[..file.len() / 2]);
    let text = error.expect("it is cut").to_string();
    assert!(text.starts_with("cut off after "), "{text}");
}

#[test]
fn a_run_without_an_end_was_cut_off() {
    let all = messages();
    let (_, error) = read(&written(&all[..all.len() - 1]));
    assert!(matches!(error, Some(ReadError::Cut { lines: 201 })), "{error:?}");
}

#[test]
fn a_damaged_byte_is_noticed() {
    let file = written(&messages());
    let all = messages();
    for at in (0..file.len()).step_by(7) {
        let mut file = file.clone();
        file[at] ^= 0x10;
        let (read, error) = read(&file);
        // Bytes of the header, such as its time, mean nothing to anybody.
        assert!(error.is_some() || read == all, "byte {at}");
    }
}

#[test]
fn foreign_files_are_named_as_such() {
    let inputs: [&[u8]; 5] =
        [b"", b"PK\x03\x04 a zip", b"{\"type\":\"meta\"}\n", &compressed(b""), &compressed(b"a\n")];
    for input in inputs {
        let (_, error) = read(input);
        assert!(matches!(error, Some(ReadError::Foreign)), "{input:?}: {error:?}");
    }
}

#[test]
fn another_version_is_named() {
    let file = compressed(b"{\"type\":\"meta\",\"schema\":77,\"new\":1}\n");
    let (_, error) = read(&file);
    let text = error.expect("it is refused").to_string();
    assert!(text.starts_with("schema 77 is not 1 to 4"), "{text}");
}

/// The console's tests have recordings of version 1.
#[test]
fn recordings_of_older_versions_open_and_their_ticks_fit_their_keys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/tests/fixtures");
    let files = ["building", "cross", "stream", "walkers"].map(|name| format!("{name}.ncrec"));
    let mut older = 0;
    for path in files.map(|file| folder.join(file)) {
        let mut viewed = Key::default();
        let mut keyed_s = 0.0;
        for message in Reader::new(File::open(&path).expect("it is there")) {
            match message.unwrap_or_else(|e| panic!("{}: {e}", path.display())) {
                Message::Meta(meta) => older += u32::from(meta.schema < SCHEMA),
                Message::Tick(tick) => viewed.apply(&tick).expect("it fits"),
                // A key that comes because it is time says what one more tick could.
                Message::Key(key) if key.time_s - keyed_s > KEY_S - 0.05 => {
                    assert!(key.tick_since(&viewed).is_ok(), "{} {keyed_s}", path.display());
                    keyed_s = key.time_s;
                    viewed = key;
                }
                Message::Key(key) => {
                    keyed_s = key.time_s;
                    viewed = key;
                }
                Message::Event(_) => {}
            }
        }
        assert!(viewed.time_s > 5.0, "{} has several keys", path.display());
    }
    assert!(older > 0);
}

#[test]
fn messages_in_the_wrong_order_are_refused() {
    let all = messages();
    let meta = &all[0];
    let key = &all[1];
    let end = all.last().expect("it has an end");
    for order in [vec![meta, end], vec![meta, meta], vec![meta, key, end, key]] {
        let order: Vec<_> = order.into_iter().cloned().collect();
        let (_, error) = read(&written(&order));
        assert!(matches!(error, Some(ReadError::Damaged { .. })), "{error:?}");
    }
    let (_, error) = read(&written(std::slice::from_ref(key)));
    assert!(matches!(error, Some(ReadError::Foreign)), "{error:?}");
}

#[test]
fn a_line_without_end_is_not_kept_in_memory() {
    // 33 MB of one letter are 33 kB compressed.
    let line = vec![b'a'; LONGEST_LINE + (1 << 20)];
    let (_, error) = read(&compressed(&line));
    assert!(matches!(error, Some(ReadError::TooLong { line: 1 })), "{error:?}");
}
