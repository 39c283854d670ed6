//! `[inbox] hook`: a program that is run after each received file.
//!
//! The program is started without a shell. Environment variables tell it about the file. At most
//! [`MOST_RUNNING`] hooks run at a time, each for [`LONGEST`] at most; later files wait. The daemon
//! never waits for a hook. A file counts as received whatever its hook does.

use super::Handle;
use crate::api::types::Hooks as Counts;
use crate::state::to_hex;
use ncmesh_engine::file::Manifest;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::Instant;

/// Most hooks that run at a time.
const MOST_RUNNING: usize = 4;
/// Most files that wait for a hook. The hook of a file beyond that is skipped.
const MOST_WAITING: usize = 256;
/// Time after which a hook and what it started are killed.
const LONGEST: Duration = Duration::from_secs(60);

/// Time between two looks at what a hook left running.
const GROUP_PAUSE: Duration = Duration::from_millis(200);

/// Hooks of a node.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    /// The program and its arguments; empty if there is none.
    command: Vec<String>,
    waiting: VecDeque<Variables>,
    pub(super) counts: Counts,
}

/// Environment variables of one run.
pub(super) type Variables = Vec<(&'static str, OsString)>;

/// Reason why a hook failed.
#[derive(Debug)]
pub(super) enum HookError {
    /// It could not be started, or waited for.
    Start(io::Error),
    /// It ended otherwise than with exit code 0.
    Ended(ExitStatus),
    /// It was killed after [`LONGEST`].
    TooLong(Duration),
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(e) => write!(f, "{e}"),
            Self::Ended(status) => write!(f, "{status}"),
            Self::TooLong(longest) => write!(f, "killed after {} s", longest.as_secs()),
        }
    }
}

impl Hooks {
    /// Returns hooks that run `command`.
    pub(super) fn new(command: Vec<String>) -> Self {
        Self { command, ..Self::default() }
    }

    /// Runs another command from now on, also for files that wait. Without one their hooks are
    /// skipped.
    pub(super) fn use_command(&mut self, command: Vec<String>) {
        if command.is_empty() {
            self.counts.skipped += self.waiting.len() as u64;
            self.waiting.clear();
        }
        self.command = command;
    }

    /// Runs the hook for a file of `sender` that was received, at once or when another has ended.
    pub(super) fn begin(
        &mut self,
        manifest: &Manifest,
        path: PathBuf,
        sender: String,
        handle: &Handle,
    ) {
        if self.command.is_empty() {
            return;
        }
        // Bounded, so that hooks that hang cannot fill the memory with waiting files.
        if self.waiting.len() >= MOST_WAITING {
            self.counts.skipped += 1;
            tracing::warn!("{}: hook skipped, {MOST_WAITING} files wait for it", manifest.flow);
            return;
        }

        self.waiting.push_back(vec![
            ("NCMESH_PATH", path.into()),
            ("NCMESH_NAME", manifest.name.clone().into()),
            ("NCMESH_SIZE", manifest.geometry.size().to_string().into()),
            ("NCMESH_HASH", to_hex(&manifest.hash).into()),
            ("NCMESH_TRANSFER", manifest.flow.to_string().into()),
            ("NCMESH_SENDER", sender.into()),
            ("NCMESH_SENDER_ID", manifest.flow.source.to_string().into()),
        ]);
        self.run_waiting(handle);
    }

    fn run_waiting(&mut self, handle: &Handle) {
        while self.counts.running < MOST_RUNNING
            && let Some(variables) = self.waiting.pop_front()
        {
            self.counts.running += 1;
            let command = self.command.clone();
            let work = async move { run(&command, variables, LONGEST).await };
            handle.task(work, |node, ended| {
                // The place is free, so the next file that waits has its turn.
                node.hooks.note_ended(ended);
                node.hooks.run_waiting(&node.handle);
            });
        }
    }

    fn note_ended(&mut self, ended: Result<(), HookError>) {
        self.counts.running -= 1;
        match ended {
            Ok(()) => self.counts.succeeded += 1,
            Err(e) => {
                self.counts.failed += 1;

                // Without its arguments: they may be passwords.
                let program = self.command.first().map_or("", String::as_str);
                tracing::error!("[inbox] hook {program}: {e}");
            }
        }
    }
}

/// Runs a command for `longest` at most. None is as one that succeeds.
pub(super) async fn run(
    command: &[String],
    variables: Variables,
    longest: Duration,
) -> Result<(), HookError> {
    let Some(mut program) = program(command, variables) else { return Ok(()) };
    let mut child = program.spawn().map_err(HookError::Start)?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));

    let deadline = Instant::now() + longest;
    let ended = tokio::time::timeout_at(deadline, child.wait()).await;
    if ended.is_ok() && group.is_alive() {
        // Processes that the program left running have the rest of the time.
        tokio::spawn(async move {
            while Instant::now() < deadline && group.is_alive() {
                tokio::time::sleep(GROUP_PAUSE).await;
            }
        });
    } else {
        drop(group);
    }

    match ended {
        Ok(ended) => outcome(ended),
        Err(_) => {
            // The group was killed above, so the wait is short. It leaves no zombie.
            let _ = child.wait().await;
            Err(HookError::TooLong(longest))
        }
    }
}

/// Runs a command, which goes on if the daemon ends.
pub(super) async fn run_to_its_end(
    command: &[String],
    variables: Variables,
) -> Result<(), HookError> {
    let Some(mut program) = program(command, variables) else { return Ok(()) };

    // Nothing of the daemon's is left to it: a terminal or a log that ends with the daemon would
    // end the program, too.
    program.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = program.spawn().map_err(HookError::Start)?;
    outcome(child.wait().await)
}

/// Returns the program of a command with its arguments and variables; `None` if there is none.
fn program(command: &[String], variables: Variables) -> Option<Command> {
    let (program, arguments) = command.split_first()?;
    let mut program = Command::new(program);
    // A process group of its own, so that what the program starts can be ended with it, or is not
    // ended with the daemon's.
    program.args(arguments).envs(variables).stdin(Stdio::null()).process_group(0);
    Some(program)
}

/// Returns what a program made of its work, by how it ended.
fn outcome(ended: io::Result<ExitStatus>) -> Result<(), HookError> {
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(HookError::Ended(status)),
        Err(e) => Err(HookError::Start(e)),
    }
}

/// Process group of a hook that runs: the program and what it started. Dropping it kills them all,
/// after a timeout as when the daemon stops.
struct Group(Option<Pid>);

impl Group {
    /// Returns whether a process of the group is left. Without one the id is free for others, and
    /// nothing is killed any more.
    fn is_alive(&mut self) -> bool {
        self.0 = self.0.filter(|group| test_kill_process_group(*group).is_ok());
        self.0.is_some()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Node;
    use super::super::tests::node;
    use super::*;
    use ncmesh_engine::file::Geometry;
    use ncmesh_wire::{FlowId, NodeId};
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::path::Path;
    use tokio::net::unix::pipe::{OpenOptions, Receiver};

    fn manifest(serial: u32) -> Manifest {
        let flow = FlowId { source: NodeId(7), serial };
        let geometry = Geometry::new(1000, 32, 1400).unwrap();
        Manifest { flow, name: "a b".into(), geometry, root: [1; 32], hash: [2; 32] }
    }

    /// Tells the node that a file was received.
    fn begin(node: &mut Node, serial: u32, path: &str) {
        node.hooks.begin(&manifest(serial), path.into(), "7".into(), &node.handle);
    }

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).into()
    }

    #[tokio::test]
    async fn a_hook_knows_the_file_and_who_sent_it() {
        let (mut node, mut calls, dir) = node();
        let seen = dir.path().join("seen");
        let script = format!("env | grep ^NCMESH_ | sort > '{}'", seen.display());
        node.hooks = Hooks::new(shell(&script));
        // A name that a shell would take apart is one word of the environment.
        begin(&mut node, 1, "/in/a; touch b");
        calls.recv().await.unwrap()(&mut node);
        assert_eq!(node.status().hooks, Counts { succeeded: 1, ..Counts::default() });
        let seen = std::fs::read_to_string(seen).unwrap();
        let expected = [
            format!("NCMESH_HASH={}", "02".repeat(32)),
            "NCMESH_NAME=a b".into(),
            "NCMESH_PATH=/in/a; touch b".into(),
            "NCMESH_SENDER=7".into(),
            "NCMESH_SENDER_ID=7".into(),
            "NCMESH_SIZE=1000".into(),
            "NCMESH_TRANSFER=7-00000001".into(),
        ];
        let seen: Vec<&str> = seen.lines().filter(|line| !line.starts_with("NCMESH_LOG")).collect();
        assert_eq!(seen, expected);
        assert!(!Path::new("b").exists());
    }

    #[tokio::test]
    async fn failures_are_counted_and_do_not_hold_up_others() {
        let (mut node, mut calls, _dir) = node();
        node.hooks = Hooks::new(shell("test $NCMESH_TRANSFER != 7-00000002"));
        for serial in 0..6 {
            begin(&mut node, serial, "x");
        }
        let counts = node.status().hooks;
        assert_eq!((counts.running, node.hooks.waiting.len()), (MOST_RUNNING, 2));
        for _ in 0..6 {
            calls.recv().await.unwrap()(&mut node);
        }
        let expected = Counts { succeeded: 5, failed: 1, ..Counts::default() };
        assert_eq!(node.status().hooks, expected);
        node.hooks.use_command(vec!["/nowhere/at-all".into()]);
        begin(&mut node, 7, "x");
        calls.recv().await.unwrap()(&mut node);
        assert_eq!(node.status().hooks.failed, 2);
    }

    #[tokio::test]
    async fn as_many_wait_as_may() {
        let (mut node, _calls, _dir) = node();
        node.hooks = Hooks::new(vec!["true".into()]);
        for serial in 0..(MOST_RUNNING + MOST_WAITING + 3) as u32 {
            begin(&mut node, serial, "x");
        }
        assert_eq!(node.status().hooks.skipped, 3);
        // Without a command nothing is left to wait for.
        node.hooks.use_command(Vec::new());
        assert_eq!(node.status().hooks.skipped, 3 + MOST_WAITING as u64);
        assert!(node.hooks.waiting.is_empty());
    }

    /// Returns the length of what is written into a pipe next, 0 when the last writer is gone.
    async fn next_len(pipe: &Receiver) -> usize {
        loop {
            pipe.readable().await.unwrap();
            match pipe.try_read(&mut [0; 64]) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.unwrap(),
            }
        }
    }

    #[tokio::test]
    async fn a_hook_ends_with_its_children_when_nobody_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let pipe = OpenOptions::new().open_receiver(&path).unwrap();
        // The child alone holds the pipe open.
        let command = shell(&format!("(echo up; exec sleep 1000) > '{}' & wait", path.display()));
        let mut running = Box::pin(run(&command, Vec::new(), LONGEST));
        tokio::select! {
            ended = &mut running => panic!("{ended:?}"),
            read = next_len(&pipe) => assert_eq!(read, "up\n".len()),
        }
        drop(running);
        assert_eq!(next_len(&pipe).await, 0);
    }

    #[tokio::test]
    async fn what_a_hook_leaves_running_has_the_rest_of_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let pipe = OpenOptions::new().open_receiver(&path).unwrap();
        let command = shell(&format!("(echo up; exec sleep 1000) > '{}' &", path.display()));
        let begun = Instant::now();
        let longest = Duration::from_secs(1);
        assert!(run(&command, Vec::new(), longest).await.is_ok());
        assert!(begun.elapsed() < longest, "the hook has ended");
        assert_eq!(next_len(&pipe).await, "up\n".len());
        assert_eq!(next_len(&pipe).await, 0);
        assert!(begun.elapsed() >= longest);
    }

    #[tokio::test]
    async fn a_hook_that_takes_too_long_fails() {
        let command = shell("sleep 1000 & sleep 1000");
        let ended = run(&command, Vec::new(), Duration::from_millis(1)).await;
        assert!(matches!(ended, Err(HookError::TooLong(_))), "{ended:?}");
        let ended = run(&shell("exit 3"), Vec::new(), LONGEST).await.unwrap_err();
        assert!(ended.to_string().contains('3'), "{ended}");
    }
}
