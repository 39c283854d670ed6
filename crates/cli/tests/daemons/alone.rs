//! The command without a mesh: wrong usage, wrong configuration, no daemon.

use crate::support::{KEY, TIMEOUT, assert_fails, closed_pipe, ncmesh, run, wait_until};
use ncmesh_node::api::client::ApiClient;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};

#[test]
fn without_a_daemon_it_says_how_to_start_one() {
    for command in [&["status"][..], &["peers"], &["send", "x", "--to", "all"], &["receive"]] {
        let output = run(&[command, &["--api", "/nonexistent/api.sock"]].concat());
        assert_fails(&output, 4, &["/nonexistent/api.sock", "ncmesh node --config"]);
    }
}

#[test]
fn a_socket_of_another_user_is_not_a_missing_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    let _daemon = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o000)).unwrap();
    let program = ncmesh().get_program().to_owned();
    // The superuser passes over permissions.
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set=-dac_override,-dac_read_search").arg(program);
        command
    } else {
        Command::new(program)
    };
    let output = command.args(["status", "--api"]).arg(&socket).output().unwrap();
    assert_fails(&output, 5, &["no permission for", "api.sock", "group = true"]);
}

#[test]
fn wrong_usage_is_told_before_anything_is_tried() {
    assert_fails(&run(&["cancel", "7"]), 2, &["3-09ab12ff"]);
    assert_fails(&run(&["send", "x", "--to", "all,n2"]), 2, &["stands alone"]);
    assert_fails(&run(&["simulate", "buildng.toml"]), 3, &["did you mean `building`?"]);
    let misspelled = run(&["simulate", "building", "--from", "n1"]);
    assert_fails(&misspelled, 6, &["no node `n1`", "did you mean `n01`?"]);
    assert_eq!(run(&["send", "x"]).status.code(), Some(2));
    assert_eq!(run(&["frobnicate"]).status.code(), Some(2));
}

#[test]
fn only_commands_that_talk_to_a_daemon_name_one() {
    let alone = ["node", "keygen", "lab", "simulate", "replay", "demo", "completions", "man"];
    for command in alone {
        let help = String::from_utf8(run(&[command, "--help"]).stdout).unwrap();
        assert!(!help.contains("--api") && !help.contains("SOCKET"), "{command}: {help}");
    }
    for command in [&["peers"][..], &["stream", "list"], &["send"]] {
        let help = String::from_utf8(run(&[command, &["--help"]].concat()).stdout).unwrap();
        assert!(help.contains("--api") && help.contains("--config"), "{command:?}: {help}");
    }
    assert_fails(&run(&["--config", "node.toml", "keygen"]), 2, &["--config", "leave it out"]);
}

#[test]
fn a_configuration_says_where_its_daemon_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let asked = |text: &str, more: &[&str], variable: &str| {
        fs::write(&file, text).unwrap();
        let mut command = ncmesh();
        command.env("NCMESH_API", variable).args(["peers", "--config"]).arg(&file).args(more);
        command.output().unwrap()
    };

    // The key is none of a client's business.
    let state = "[node]\nstate_dir = \"state\"\nkey_file = \"/nonexistent\"\n";
    let its = |name: &str| dir.path().join(name).display().to_string();
    assert_fails(&asked(state, &[], "/from/env"), 4, &[&its("state/api.sock")]);
    let socket = format!("{state}[api]\nsocket = \"own.sock\"\n");
    assert_fails(&asked(&socket, &[], "/from/env"), 4, &[&its("own.sock")]);
    assert_fails(&asked(&socket, &["--api", "/from/api"], "/from/env"), 4, &["/from/api"]);
    assert_fails(&asked("[node]\nstate_dir = 7\n", &[], ""), 3, &["node.toml:2:"]);
    let absent = run(&["status", "--config", "/nonexistent.toml"]);
    assert_fails(&absent, 3, &["/nonexistent.toml", "cannot be read"]);
    let from_env = ncmesh().env("NCMESH_API", "/from/env").arg("status").output().unwrap();
    assert_fails(&from_env, 4, &["/from/env"]);
}

#[test]
fn every_subcommand_has_help_with_examples() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.contains("Exit codes"));
    for command in [
        "node",
        "send",
        "receive",
        "transfers",
        "peers",
        "status",
        "traceroute",
        "bandwidth",
        "cancel",
        "keygen",
    ] {
        let help = String::from_utf8(run(&[command, "--help"]).stdout).unwrap();
        assert!(help.contains("Examples:\n  ncmesh "), "{command}");
    }
}

#[test]
fn a_key_is_made_once_and_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    let path = file.to_str().unwrap();
    assert!(run(&["keygen", path]).status.success());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let key = fs::read_to_string(&file).unwrap();
    assert!(key.parse::<ncmesh_wire::Key>().is_ok());
    assert_fails(&run(&["keygen", path]), 5, &["not overwritten"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), key);
    assert_ne!(run(&["keygen"]).stdout, run(&["keygen"]).stdout);
}

#[test]
fn completions_and_man_pages_are_made() {
    let completions = String::from_utf8(run(&["completions", "bash"]).stdout).unwrap();
    assert!(completions.contains("transfers"));
    let dir = tempfile::tempdir().unwrap();
    assert!(run(&["man", dir.path().to_str().unwrap()]).status.success());
    assert!(dir.path().join("ncmesh-send.1").exists());
}

#[test]
fn output_that_cannot_be_written_is_no_panic() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let refused = ncmesh().args(["completions", "bash"]).stdout(full()).output().unwrap();
    assert_fails(&refused, 1, &["standard output cannot be written"]);
    let unread = ncmesh().args(["completions", "bash"]).stdout(closed_pipe()).output().unwrap();
    assert!(unread.status.success());
    let node = ["node", "--config", "/nonexistent/node.toml"];
    assert_eq!(ncmesh().args(node).stderr(closed_pipe()).status().unwrap().code(), Some(3));
}

#[test]
fn a_daemon_outlives_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let config = format!(
        "[node]\nid = 1\nkey = \"{KEY}\"\nstate_dir = \"state\"\n[radio]\nkind = \"udp\"\n\
         interface = \"lo\"\nport = 7119\nbroadcast = \"127.255.255.255\"\n"
    );
    fs::write(dir.path().join("node.toml"), config).unwrap();
    let mut daemon = ncmesh()
        .args(["node", "--config"])
        .arg(dir.path().join("node.toml"))
        .stderr(closed_pipe())
        .spawn()
        .unwrap();
    let socket = dir.path().join("state/api.sock");
    wait_until("the daemon is up", || UnixStream::connect(&socket).is_ok());
    let id = daemon.id().to_string();
    let config = dir.path().join("node.toml");
    assert!(run(&["status", "--config", config.to_str().unwrap()]).status.success());
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_journal_the_log_stays_on_standard_error() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let file = dir.path().join("node.toml");
    let config = format!(
        "[node]\nid = 6\nkey = \"{KEY}\"\n[radio]\nkind = \"udp\"\ninterface = \"nope9\"\n"
    );
    fs::write(&file, config).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let stderr = File::create(&log).unwrap();
    let place = stderr.metadata().unwrap();
    // systemd names standard error's socket, but nobody listens for entries in a container.
    let stream = format!("{}:{}", place.dev(), place.ino());
    let mut node = ncmesh();
    node.args(["node", "--config"]).arg(&file).env("JOURNAL_STREAM", stream);
    assert_eq!(node.stderr(stderr).status().unwrap().code(), Some(3));
    let text = fs::read_to_string(log).unwrap();
    assert!(text.contains("WARN") && text.contains("chmod 600"), "{text}");
}

#[test]
fn what_is_logged_changes_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let file = dir.path().join("node.toml");
    let write = |level: &str| {
        let config = format!(
            "[node]\nid = 7\nkey = \"{KEY}\"\nstate_dir = \"state\"\nlog = \"{level}\"\n\
             [radio]\nkind = \"udp\"\ninterface = \"lo\"\nport = 17120\n\
             broadcast = \"127.255.255.255\"\n"
        );
        fs::write(&file, config).unwrap();
    };
    let logged = || fs::read_to_string(&log).unwrap();
    let start = |variable: Option<(&str, &str)>| {
        let mut daemon = ncmesh();
        daemon.args(["node", "--config"]).arg(&file).envs(variable);
        let daemon = daemon.stderr(File::create(&log).unwrap()).spawn().unwrap();
        wait_until("the daemon is up", || {
            run(&["status", "--config", file.to_str().unwrap()]).status.success()
        });
        daemon
    };
    let reload = || run(&["reload", "--config", file.to_str().unwrap()]);

    write("warn");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut daemon = start(None);
    assert_eq!(logged(), "");
    write("info");
    let id = daemon.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    wait_until("the change is logged", || logged().contains("changed: [node] log"));
    let before = logged();
    write("error");
    assert_eq!(reload().stdout, b"changed: [node] log\n");
    write("loud");
    assert_fails(&reload(), 2, &["node.toml:5:", "loud", "allowed is error, warn"]);
    assert_eq!(logged(), before);
    daemon.kill().unwrap();
    daemon.wait().unwrap();

    // The variable goes before the file until the file changes.
    write("error");
    let mut daemon = start(Some(("NCMESH_LOG", "info")));
    assert!(logged().contains("is up"), "{}", logged());
    write("debug");
    assert_eq!(reload().stdout, b"changed: [node] log\n");
    daemon.kill().unwrap();
    daemon.wait().unwrap();

    // With a typing error in it the file holds, and the log says so.
    write("error");
    let mut daemon = start(Some(("NCMESH_LOG", "warning")));
    let log = logged();
    assert!(log.contains("NCMESH_LOG is ignored") && log.contains("did you mean `warn`?"), "{log}");
    assert!(!log.contains("is up"), "{log}");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn names_that_are_no_text_are_to_be_changed() {
    let name = OsStr::from_bytes(b"/tmp/photo\xff.jpg");
    let sent = ncmesh().arg("send").arg(name).args(["--to", "all"]).output().unwrap();
    assert_fails(&sent, 5, &["photo\\xFF.jpg", "rename it"]);
}

#[test]
fn configuration_errors_name_file_line_and_what_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let node = format!("[node]\nid = 1\nkey = \"{KEY}\"\nstate_dir = \"state\"\n");
    let radio = "[radio]\nkind = \"udp\"\ninterface = \"lo\"\nbroadcast = \"127.255.255.255\"\n";
    for (text, words) in [
        (format!("{node}{radio}[pacifier]\nknob = 7\n"), &["node.toml:10:", "knob", "0 to 1"][..]),
        (format!("{node}{radio}rate = \"fast\"\n"), &["node.toml:", "rate", "20M"]),
        (
            format!("{node}[radio]\nkind = \"udp\"\ninterface = \"nope9\"\n"),
            &["node.toml:7:", "nope9", "there are"],
        ),
        (format!("{node}{radio}mtu = 70000\n"), &["node.toml:9:", "mtu", "65507"]),
        (radio.to_owned(), &["node.toml", "node"]),
    ] {
        fs::write(&file, text).unwrap();
        let output = ncmesh().arg("node").arg("--config").arg(&file).output().unwrap();
        assert_fails(&output, 3, words);
    }
    assert_fails(
        &run(&["node", "--config", "/nonexistent/node.toml"]),
        3,
        &["/nonexistent/node.toml"],
    );
}

#[test]
fn a_supervisor_is_told_and_the_group_may_use_the_socket() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let config = format!(
        "[node]\nid = 3\nkey = \"{KEY}\"\nstate_dir = \"state\"\n[api]\ngroup = true\n\
         [radio]\nkind = \"udp\"\ninterface = \"lo\"\nport = 17117\n\
         broadcast = \"127.255.255.255\"\n"
    );
    fs::write(path("node.toml"), config).unwrap();
    let supervisor = UnixDatagram::bind(path("notify")).unwrap();
    supervisor.set_read_timeout(Some(TIMEOUT)).unwrap();
    let told = || {
        let mut message = [0; 64];
        let length = supervisor.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    };

    let mut daemon = ncmesh();
    daemon.args(["node", "--config"]).arg(path("node.toml")).env("NOTIFY_SOCKET", path("notify"));
    let mut daemon = daemon.stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(told(), "READY=1\n");
    // Once it is ready it answers, the group too.
    let socket = path("state/api.sock");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    assert!(run(&["status", "--api", socket.to_str().unwrap()]).status.success());
    let id = daemon.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(told(), "STOPPING=1\n");
    assert!(daemon.wait().unwrap().success());
}

#[test]
fn a_state_is_shown_again_until_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let config = format!(
        "[node]\nid = 4\nkey = \"{KEY}\"\nstate_dir = \"state\"\n[radio]\nkind = \"udp\"\n\
         interface = \"lo\"\nport = 17118\nbroadcast = \"127.255.255.255\"\n"
    );
    fs::write(&file, config).unwrap();
    let mut daemon = ncmesh();
    let mut daemon = daemon.args(["node", "--config"]).arg(&file).spawn().unwrap();
    let socket = dir.path().join("state/api.sock");
    wait_until("the daemon is up", || UnixStream::connect(&socket).is_ok());

    // `ncmesh top` reads these messages; it draws on a terminal only.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut messages = ApiClient::new(socket).follow("/v1/messages").await.unwrap();
        for kind in ["meta", "key", "tick"] {
            let message = messages.next().await.unwrap().unwrap();
            assert!(message.starts_with(&format!("{{\"type\":\"{kind}\"")), "{message}");
        }
    });
    let top = run(&["top", "--config", file.to_str().unwrap()]);
    assert_fails(&top, 2, &["on a terminal", "--watch"]);

    // Into a pipe, one after the other.
    for (args, each) in [
        (&["status", "--watch"][..], "node       n04"),
        (&["status", "--watch", "--json"], "\"id\":4,"),
        (&["peers", "--watch"], "no other node"),
    ] {
        let mut watch = ncmesh();
        watch.args(args).arg("--config").arg(&file).stdout(Stdio::piped());
        let mut watch = watch.spawn().unwrap();
        let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        let shown = lines.map(Result::unwrap).filter(|line| line.contains(each)).take(2);
        assert_eq!(shown.count(), 2, "{args:?}");
        let id = watch.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert_eq!(watch.wait().unwrap().code(), Some(0), "{args:?}");
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn a_report_has_everything_but_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let write = |key: &str| {
        let config = format!(
            "[node]\nid = 5\n{key}\nstate_dir = \"state\"\n[radio]\nkind = \"udp\"\n\
             interface = \"lo\"\nport = 17119\nbroadcast = \"127.255.255.255\"\n"
        );
        fs::write(&file, config).unwrap();
    };
    let report = |more: &[&str]| {
        let output = ncmesh().args(["doctor", "--config"]).arg(&file).args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(!all.to_lowercase().contains(&KEY[..16]), "{all}");
        text
    };

    // Without a daemon the report says so.
    write(&format!("key = \"{KEY}\""));
    let text = report(&[]);
    for part in ["## version", "## interfaces", "lo: ", "id = 5", "<removed>", "no daemon answers"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }

    // Wherever the key is: in a comment, in a name that is no name, in a file that is no TOML.
    write(&format!("key = \"{KEY}\" # {KEY}\nname = \"{KEY}\""));
    report(&[]);
    write(&format!("key = {KEY}"));
    assert!(report(&[]).contains("is not TOML"));
    let key = dir.path().join("network.key");
    fs::write(&key, KEY).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    write("key_file = \"network.key\"");
    let mut daemon = ncmesh();
    let mut daemon = daemon.args(["node", "--config"]).arg(&file).spawn().unwrap();
    let socket = dir.path().join("state/api.sock");
    wait_until("the daemon is up", || UnixStream::connect(&socket).is_ok());
    let json: serde_json::Value = serde_json::from_str(&report(&["--json"])).unwrap();
    assert_eq!((&json["status"]["name"], &json["peers"]), (&"n05".into(), &serde_json::json!([])));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}
