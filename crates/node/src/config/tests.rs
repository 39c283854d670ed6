//! Tests of `node.toml`: what it accepts, and the messages for mistakes.

use super::*;
use ipnet::IpNet;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::registry::Settings;
use ncmesh_host::gateway::Target;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn parse(text: &str) -> Result<NodeConfig, ConfigError> {
    NodeConfig::parse(Path::new("/etc/ncmesh/node.toml"), &text.replace("KEY", KEY))
}

const SMALLEST: &str =
    "[node]\nid = 3\nkey = \"KEY\"\n[radio]\nkind = \"udp\"\ninterface = \"wlan0\"\n";

#[test]
fn the_smallest_file_has_sensible_defaults() {
    let config = parse(SMALLEST).unwrap();
    assert_eq!((config.id, config.name.as_str()), (NodeId(3), "n03"));
    assert_eq!(config.inbox, None);
    assert_eq!(config.api_socket, config.state_dir.join("api.sock"));
    let port = config.ports[0].port().unwrap();
    assert_eq!(port.kind, Some(PortKind::Udp));
    assert_eq!((port.port(), port.mtu, port.broadcast), (7117, 1472, None));
    assert_eq!(port.rate, None);
}

#[test]
fn paths_are_relative_to_the_file() {
    let more = "[inbox]\ndir = \"in\"\n[api]\nsocket = \"/run/x.sock\"\n";
    let config = parse(&format!("{SMALLEST}{more}")).unwrap();
    assert_eq!(config.inbox.unwrap(), Path::new("/etc/ncmesh/in"));
    assert_eq!(config.inbox_limits, InboxLimits::default());
    assert_eq!(config.api_socket, Path::new("/run/x.sock"));
    assert!(!config.api_group);
    let grouped = parse(&format!("{SMALLEST}[api]\ngroup = true\n")).unwrap();
    assert!(grouped.api_group);
    assert_eq!(grouped.api_socket, grouped.state_dir.join("api.sock"));
}

#[test]
fn paths_are_absolute_with_homes_and_variables_expanded() {
    let home = std::env::var("HOME").unwrap();
    let text = SMALLEST.replace("id = 3", "id = 3\nstate_dir = \"~/st\"");
    let more = "[inbox]\ndir = \"$HOME/in\"\nhook = [\"~/bin/got\", \"$HOME\", \"~\"]\n\
                [api]\nsocket = \"${HOME}/x.sock\"\n";
    let text = text.replace("KEY", KEY) + more;
    let config = NodeConfig::parse(Path::new("node.toml"), &text).unwrap();
    assert_eq!(config.state_dir, Path::new(&home).join("st"));
    assert_eq!(config.inbox.unwrap(), without_links(&Path::new(&home).join("in")));
    assert_eq!(config.api_socket, Path::new(&home).join("x.sock"));
    let program = format!("{home}/bin/got");
    assert_eq!(config.hook, [program.as_str(), "$HOME", "~"], "arguments stay as they are");

    // A client finds the same socket.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    std::fs::write(&file, &text).unwrap();
    assert_eq!(NodeConfig::socket(&file).unwrap().unwrap(), Path::new(&home).join("x.sock"));

    // A configuration of a relative name has absolute paths all the same.
    let text = SMALLEST.replace("id = 3", "id = 3\nstate_dir = \"st\"").replace("KEY", KEY);
    let text = text + "[inbox]\ndir = \"in\"\nhook = [\"./got\"]\n";
    let config = NodeConfig::parse(Path::new("conf/node.toml"), &text).unwrap();
    let here = std::env::current_dir().unwrap().join("conf");
    assert_eq!(config.state_dir, here.join("st"));
    assert_eq!(config.inbox.unwrap(), without_links(&here.join("in")));
    assert_eq!(Path::new(&config.hook[0]), here.join("got"));
    assert_eq!(config.api_socket, here.join("st/api.sock"));

    for (line, problem) in [
        ("state_dir = \"~bob/st\"", "homes of other users are not known"),
        ("state_dir = \"$NCMESH_UNSET/st\"", "the variable NCMESH_UNSET is not set"),
    ] {
        let error = parse(&SMALLEST.replace("id = 3", &format!("id = 3\n{line}"))).unwrap_err();
        assert_eq!(error.line, Some(3));
        assert!(error.problem.contains("state_dir") && error.problem.contains(problem), "{error}");
    }
}

#[test]
fn byte_order_marks_are_skipped() {
    assert_eq!(parse(&format!("\u{feff}{SMALLEST}")).unwrap().id, NodeId(3));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let key = dir.path().join("net.key");
    std::fs::write(&key, format!("\u{feff}{KEY}\r\n")).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let text = SMALLEST.replace("key = \"KEY\"", "key_file = \"net.key\"");
    std::fs::write(&file, format!("\u{feff}{text}")).unwrap();
    assert_eq!(NodeConfig::read(&file).unwrap().id, NodeId(3));
    let token = dir.path().join("token");
    std::fs::write(&token, "\u{feff}0123456789abcdef\n").unwrap();
    assert_eq!(read_token(&token).unwrap(), "0123456789abcdef");
}

#[test]
fn names_say_what_is_allowed_and_people_have_another() {
    let named = |lines: &str| parse(&SMALLEST.replace("id = 3", &format!("id = 3\n{lines}")));
    let config = named("name = \"roof\"\ndisplay_name = \"Größe 屋根 דוח\\u200E\"").unwrap();
    assert_eq!(config.display_name.as_deref(), Some("Größe 屋根 דוח\u{200E}"));
    assert_eq!(parse(SMALLEST).unwrap().display_name, None);
    for name in ["größe", "roof east", "", "屋根", "a/b"] {
        let error = named(&format!("name = \"{name}\"")).unwrap_err();
        let allowed = "1 to 63 of a-z, A-Z, 0-9, '.', '_' and '-'; `display_name` takes letters";
        assert!(error.line == Some(3) && error.problem.contains(allowed), "{error}");
    }
    for name in ["", " ", "a\\u001b[2J", "a\\u202Eb", &"ö".repeat(64)] {
        let error = named(&format!("display_name = \"{name}\"")).unwrap_err();
        assert!(error.problem.contains("1 to 63 characters"), "{error}");
    }
}

#[test]
fn the_inbox_has_limits() {
    let limits = |more: &str| {
        parse(&format!("{SMALLEST}[inbox]\ndir = \"in\"\n{more}")).map(|config| config.inbox_limits)
    };
    let all =
        "max_bytes = \"2G\"\nreserve = 5_000\nallow_from = [\"barn\", 7, \"8\"]\nkeep_days = 1\n";
    let all = limits(all).unwrap();
    assert_eq!(all.space, SpaceLimits { max_bytes: Some(2_000_000_000), reserve: Some(5000) });
    assert_eq!(all.keep, std::time::Duration::from_secs(86_400));
    let allowed = all.allow_from.unwrap();
    let is_allowed = |node, name| allowed.iter().any(|sender| sender.is(NodeId(node), name));
    assert!(is_allowed(7, None) && is_allowed(8, None) && is_allowed(9, Some("barn")));
    assert!(!is_allowed(9, None) && !is_allowed(9, Some("n9")));
    for (bad, word) in [
        ("max_bytes = \"2X\"\n", "64M"),
        ("reserve = -1\n", "64M"),
        ("keep_days = 9999\n", "0 to 3650"),
        ("allow = []\n", "allow_from"),
        ("allow_from = [70000]\n", "names and ids 1 to 65534"),
        ("hook = []\n", "a program and its arguments"),
        ("hook = [\"\"]\n", "a program and its arguments"),
        ("hook = [\"a\", \"\\u0000\"]\n", "a program and its arguments"),
        ("hook = \"a b\"\n", "must be a list"),
    ] {
        let problem = limits(bad).unwrap_err();
        assert_eq!(problem.line, Some(9), "{problem}");
        assert!(problem.to_string().contains(word), "{problem}");
    }
}

#[test]
fn a_hook_named_by_a_path_is_relative_to_the_file() {
    let hook = |words: &str| {
        parse(&format!("{SMALLEST}[inbox]\ndir = \"in\"\nhook = {words}\n")).unwrap().hook
    };
    assert_eq!(hook("[\"bin/got\", \"a/b\"]"), ["/etc/ncmesh/bin/got", "a/b"]);
    assert_eq!(hook("[\"/bin/got\"]"), ["/bin/got"]);
    assert_eq!(hook("[\"logger\"]"), ["logger"]);
    assert!(parse(SMALLEST).unwrap().hook.is_empty());
}

#[test]
fn positions_are_metres_or_degrees() {
    let position = |text: &str| {
        let whole = SMALLEST.replace("id = 3\n", &format!("id = 3\nposition = {text}\n"));
        parse(&whole).map(|config| config.position)
    };
    assert_eq!(parse(SMALLEST).unwrap().position, None);
    assert_eq!(position("[12.5, -3]").unwrap(), Position::plan([12.5, -3.0, 0.0]));
    assert_eq!(position("[1, 2, 3]").unwrap(), Position::plan([1.0, 2.0, 3.0]));
    let earth = "{ latitude = -52.5, longitude = 13.405 }";
    assert_eq!(position(earth).unwrap(), Position::earth(-52.5, 13.405));
    for (bad, word) in [
        ("[1]", "in metres"),
        ("[1, 2, 3, 4]", "in metres"),
        ("\"here\"", "latitude ="),
        ("[nan, 0]", "2000000"),
        ("[1e400, 0]", "position = [inf, 0]: allowed is metres from -2000000 to 2000000"),
        ("[0, 2000001]", "2000000"),
        ("{ latitude = 1 }", "longitude"),
        ("{ latitude = 1, longitude = 2, height = 3 }", "height"),
        ("{ latitude = 91, longitude = 0 }", "-90 to 90"),
    ] {
        let problem = position(bad).unwrap_err();
        assert_eq!(problem.line, Some(3), "{problem}");
        assert!(problem.to_string().contains(word), "{problem}");
    }
}

#[test]
fn rates_have_units() {
    let rate = |text: &str| text.parse::<Rate>().map(|r| r.bits_per_second);
    assert_eq!(rate("500k"), Ok(5e5));
    assert_eq!(rate("5.5M"), Ok(5.5e6));
    assert_eq!(rate("1G"), Ok(1e9));
    assert_eq!(rate("6000000"), Ok(6e6));
    for bad in ["", "M", "-1M", "20 Mbit", "0", "NaN", "infM", "1T", "é"] {
        assert!(rate(bad).is_err(), "{bad}");
    }
}

#[test]
fn errors_name_the_line_and_what_is_allowed() {
    for (text, line, word) in [
        ("[node]\nid = 3\nnmae = \"x\"\n", 3, "`name`"),
        ("[node]\nid = 70000\n", 2, "1 to 65534"),
        ("[node]\nid = 0\n", 2, "1 to 65534"),
        ("[node]\nid = 3\nlog = \"warning\"\n", 3, "or trace; did you mean `warn`?"),
        (
            "[node]\nid = 3\nkey = \"abc\"\n[radio]\nkind = \"udp\"\ninterface = \"w\"\n",
            3,
            "64 hex",
        ),
        ("[node]\nid = 3\n[radio]\nkind = \"udp\"\ninterface = \"w\"\n", 1, "ncmesh keygen"),
        ("[node]\nid = 3\nkey = \"KEY\"\n[link]\nhello = 1\n", 5, "`hello_s`"),
        ("[node\n", 1, ""),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, Some(line), "{error}");
        assert!(error.problem.contains(word), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert!(error.to_string().starts_with(&format!("/etc/ncmesh/node.toml:{line}: ")));
    }
}

#[test]
fn errors_in_the_radio_are_placed_and_say_what_is_allowed() {
    for (setting, word) in [
        ("port = 0", "port = 0: allowed is 1 to 65535"),
        ("port = 65536", "allowed is 1 to 65535"),
        ("port = \"x\"", "`port` must be a whole number such as 3, not the text \"x\""),
        ("mtu = -5", "mtu = -5: allowed is 256 to 65507"),
        ("mtu = 70000", "allowed is 256 to 65507"),
        (
            "rate = 8e6",
            "rate = 8000000: allowed is \"1k\" to \"100G\" (bits per second, in quotes)",
        ),
        ("rate = \"fast\"", "allowed is \"1k\" to \"100G\""),
        ("broadcast = \"all\"", "broadcast = \"all\": allowed is an IPv4 address"),
        ("prot = 7117", "did you mean `port`?"),
        ("ethertype = 0x88B5", "ethertype: a setting of kind = \"link\", not \"udp\""),
        ("group = \"ff05::1\"", "allowed is a link-local IPv6 group"),
        ("peers = [\"fe80::1:7117\"]", "allowed is up to 64 of \"HOST:PORT\""),
        ("peers = [\"a:0\"]", "allowed is up to 64 of \"HOST:PORT\""),
        ("dscp = 64", "dscp = 64: allowed is 0 to 63"),
        (
            "broadcast_rate = \"best\"",
            "broadcast_rate = \"best\": allowed is \"auto\", \"leave\", or a",
        ),
        ("broadcast_rate = \"600M\"", "allowed is \"auto\", \"leave\", or a rate"),
    ] {
        let error = parse(&format!("{SMALLEST}# more\n{setting} # here\n[link]\n")).unwrap_err();
        assert_eq!(error.line, Some(8), "{error}");
        assert!(error.problem.contains(word), "{error}");
    }
}

#[test]
fn a_router_keeps_less_for_others() {
    let limits = |text: &str| parse(text).map(|config| config.limits.profile.file_limits());
    assert_eq!(limits(SMALLEST).unwrap(), FileLimits::default());
    let router = format!("{SMALLEST}[limits]\nprofile = \"router\"\n");
    assert_eq!(limits(&router).unwrap(), FileLimits { kept: 16, memory: 4 << 20 });
    let error = limits(&router.replace("router", "toaster")).unwrap_err();
    assert!(error.problem.contains("\"host\", \"router\""), "{error}");
    assert_eq!(error.line, Some(8), "{error}");
}

#[test]
fn settings_of_a_kind_choose_it_and_do_not_mix() {
    let radio = |settings: &str| {
        let text = SMALLEST.replace("kind = \"udp\"", settings);
        parse(&text).map(|config| config.ports[0].port().and_then(PortConfig::chosen_kind))
    };
    assert_eq!(radio(""), Ok(None));
    assert_eq!(radio("ethertype = 0x88B6"), Ok(Some(PortKind::Link)));
    for setting in ["port = 7000", "peers = [\"[fd00::1]:7117\", \"a.b:1\"]", "dscp = 46"] {
        assert_eq!(radio(setting), Ok(Some(PortKind::Udp)), "{setting}");
    }
    for (mixed, word) in [
        ("ethertype = 0x88B6\nport = 7000", "port: a setting of kind = \"udp\", not \"link\""),
        ("kind = \"link\"\ndscp = 0", "dscp: a setting of kind = \"udp\", not \"link\""),
        ("peers = []\ngroup = \"ff12::1\"", "peers: frames go by group already"),
    ] {
        let error = radio(mixed).unwrap_err();
        assert!(error.problem.contains(word), "{error}");
    }
}

#[test]
fn a_misspelled_section_is_answered_with_the_one_that_was_meant() {
    let error = parse(&format!("{SMALLEST}[inbx]\ndir = \"inbox\"\n")).unwrap_err();
    assert_eq!(error.problem, "[inbx] no such section; did you mean `inbox`?");
    assert_eq!(error.line, Some(7), "{error}");
    let error = parse(&SMALLEST.replace("[radio]", "[radoi]")).unwrap_err();
    assert_eq!(error.problem, "[radoi] no such section; did you mean `radio`?");
}

/// Returns a configuration with these ports in place of `[radio]`.
fn with_ports(ports: &str) -> Result<NodeConfig, ConfigError> {
    parse(&format!("[node]\nid = 3\nkey = \"KEY\"\n{ports}"))
}

#[test]
fn each_port_has_the_settings_of_a_radio_and_a_name() {
    let config = with_ports(
        "[[port]]\ninterface = \"wlan*\"\nrate = \"6M\"\n\
         [[port]]\nname = \"roof\"\ninterface = \"eth1\"\nmtu = 1400\n",
    )
    .unwrap();
    let names: Vec<&str> = config.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!((names, config.mtu()), (vec!["wlan*", "roof"], 1400));
    assert_eq!(config.ports[1].port().unwrap().interface, "eth1");
    // The short form is a port, too.
    let short = parse(SMALLEST).unwrap();
    assert_eq!((short.ports[0].name.as_str(), short.ports[0].place), ("wlan0", PortPlace::Radio));
}

#[test]
fn ports_that_cannot_be_are_answered_with_their_line() {
    let port = |settings: &str| format!("[[port]]\n{settings}\n");
    let first = port("interface = \"eth0\"");
    let nine: String = (0..9).map(|n| port(&format!("interface = \"eth{n}\""))).collect();
    for (ports, line, word) in [
        (String::new(), None, "no port: write [radio] with an interface, or a [[port]]"),
        ("[port]\ninterface = \"eth0\"\n".into(), Some(4), "double brackets: [[port]]"),
        (format!("[radio]\ninterface = \"w\"\n{first}"), Some(6), "short for the only port"),
        (nine, Some(20), "[[port]] a node has at most 8 ports"),
        (first.repeat(2), Some(6), "name = \"eth0\": another port has it"),
        (
            first.clone() + &port("name = \"b\"\ninterface = \"eth0\""),
            Some(8),
            "the port eth0 has it already",
        ),
        (first.clone() + &port("name = \"a b\"\ninterface = \"b\""), Some(7), "1 to 63"),
        (first.clone() + &port("rate = \"6M\""), Some(6), "missing field `interface`"),
        (first.clone() + &port("interface = \"b\"\nmtu = 9"), Some(8), "mtu = 9"),
        (first + &port("interface = \"b\"\nratee = 9"), Some(8), "did you mean `rate`?"),
    ] {
        let error = with_ports(&ports).unwrap_err();
        assert!(error.line == line && error.problem.contains(word), "{error}: {word}");
    }
}

#[test]
fn an_unknown_kind_of_radio_is_answered_with_the_known_ones() {
    let error = parse("[node]\nid = 3\nkey = \"KEY\"\n[radio]\nkind = \"lora\"\n").unwrap_err();
    assert!(error.problem.contains("udp") && error.problem.contains("link"), "{error}");
    assert_eq!(error.line, Some(5), "{error}");
}

#[test]
fn later_findings_are_placed_too() {
    let config = parse(&format!("{SMALLEST}[pacifier]\nknob = 3\n")).unwrap();
    let error = config.blame("pacifier", "knob = 3: allowed is 0 to 1");
    assert_eq!(
        error.to_string(),
        "/etc/ncmesh/node.toml:8: [pacifier] knob = 3: allowed is 0 to 1"
    );
}

#[test]
fn a_key_file_is_read_and_must_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("node.toml");
    let text = SMALLEST.replace("key = \"KEY\"", "key_file = \"net.key\"");
    let missing = NodeConfig::parse(&file, &text).unwrap_err();
    assert!(missing.line == Some(3) && missing.problem.contains("net.key"), "{missing}");
    let key = dir.path().join("net.key");
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    for (mode, is_read) in [(0o644, false), (0o604, false), (0o602, false), (0o640, true)] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let parsed = NodeConfig::parse(&file, &text);
        let is_refused = |e: &ConfigError| e.problem.contains("chmod 600") && e.line == Some(3);
        assert_eq!(parsed.as_ref().is_ok(), is_read, "{mode:o}");
        assert!(is_read || parsed.is_err_and(|e| is_refused(&e)), "{mode:o}");
    }
    assert_eq!(NodeConfig::parse(&file, &text).unwrap().key, KEY.parse().unwrap());
}

/// A line of a configuration, the header of a section or a setting.
fn is_setting(line: &str) -> bool {
    let key = line.split_once('=').map(|(key, _)| key.trim().trim_matches('"'));
    let is_key = |key: &str| {
        !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || "0123456789_".contains(c))
    };
    key.is_some_and(is_key) || section_name(line).is_some()
}

/// Returns each commented setting of a file: the number of its line, and the line without its mark.
fn commented(text: &str) -> Vec<(usize, &str)> {
    let without_mark = text.lines().map(|line| line.strip_prefix("# ")).enumerate();
    without_mark
        .filter_map(|(at, line)| Some((at, line.filter(|line| is_setting(line))?)))
        .collect()
}

/// Returns the text with the commented settings that `is_wanted` chooses by their lines.
fn uncommented(text: &str, is_wanted: impl Fn(usize) -> bool) -> String {
    let commented = commented(text);
    let line = |(at, line): (usize, &str)| {
        let known = commented.iter().find(|(found, _)| *found == at && is_wanted(at));
        known.map_or(line, |(_, setting)| setting).to_owned() + "\n"
    };
    text.lines().enumerate().map(line).collect()
}

/// Reads a file, and checks the sections of its engines as the daemon does at its start.
fn load(text: &str) -> Result<(), String> {
    let text = text.replace("key_file = \"network.key\"", "key = \"KEY\"");
    let config = parse(&text).map_err(|error| error.to_string())?;
    for entry in registry().entries() {
        let Some(toml::Value::Table(section)) = config.engines.get(entry.name) else { continue };
        let settings = Settings { section, file: FileLimits::default() };
        entry.engine(&settings).map_err(|problem| format!("[{}] {problem}", entry.name))?;
    }
    Ok(())
}

/// A commented section's settings need its header, and a section may need more than one setting:
/// a header is uncommented together with all settings behind it, and a setting together with the
/// header before it if that is a comment.
#[test]
fn each_commented_setting_of_a_shipped_file_is_accepted() {
    let packaged = include_str!("../../../../packaging/node.toml");
    let reference = include_str!("../../../../docs/reference/configuration.md");
    let guide = include_str!("../../../../docs/guide/nodes.md");
    let files = [packaged, blocks(reference).next().unwrap(), blocks(guide).next().unwrap()];
    let mut count = 0;
    for file in files {
        let all = commented(file);
        load(&uncommented(file, |_| false)).unwrap();
        load(&uncommented(file, |_| true)).unwrap();
        for (at, line) in &all {
            count += 1;
            let behind = all.iter().filter(|(other, _)| other > at);
            let section: Vec<usize> = behind
                .take_while(|(_, other)| section_name(other).is_none())
                .map(|(other, _)| *other)
                .collect();
            let of_header = section_name(line).map_or(Vec::new(), |_| section);
            let before = file.lines().take(*at).enumerate();
            let header = before
                .map(|(other, line)| (other, line.trim_start_matches("# ")))
                .filter(|(_, other)| section_name(line).is_none() && section_name(other).is_some())
                .last();
            let is_wanted = |other: usize| {
                other == *at
                    || of_header.contains(&other)
                    || header.is_some_and(|(h, _)| h == other)
            };
            if let Err(problem) = load(&uncommented(file, is_wanted)) {
                panic!("{line}: {problem}");
            }
        }
    }
    assert!(count > 20, "{count} settings");
}

#[test]
fn the_documented_example_is_a_configuration() {
    let document = include_str!("../../../../docs/reference/configuration.md");
    let example = document.split("```").nth(1).unwrap().strip_prefix("toml").unwrap();
    let config = parse(&example.replace("key_file = \"network.key\"", "key = \"KEY\"")).unwrap();
    let port = config.ports[0].port().unwrap();
    assert_eq!((port.port(), port.mtu), (7117, 1472));
    assert_eq!((config.link, config.route), (LinkConfig::default(), RouteConfig::default()));
}

/// Returns the TOML blocks of a document.
fn blocks(document: &str) -> impl Iterator<Item = &str> {
    document.split("```").filter_map(|block| block.strip_prefix("toml\n"))
}

#[test]
fn the_examples_of_the_guide_are_configurations() {
    let nodes = include_str!("../../../../docs/guide/nodes.md");
    let whole = blocks(nodes).next().unwrap();
    parse(&whole.replace("key_file = \"network.key\"", "key = \"KEY\"")).unwrap();

    let is_recipe = |block: &&str| ["[radio]", "[[port]]"].iter().any(|h| block.starts_with(h));
    let recipes: Vec<&str> = blocks(nodes).filter(is_recipe).collect();
    assert_eq!(recipes.len(), 4, "routers of one and of two ports, beside batman-adv, and a VPN");
    let (node, _) = SMALLEST.split_once("[radio]").unwrap();
    for recipe in recipes {
        parse(&format!("{node}{recipe}")).unwrap();
    }

    let tunnel = include_str!("../../../../docs/guide/tunnel.md");
    let streams = include_str!("../../../../docs/guide/streams.md");
    let sections = blocks(tunnel).chain(blocks(streams)).filter(|block| block.starts_with('['));
    let mut count = 0;
    let smallest = SMALLEST.replace("id = 3", "id = 9");
    for section in sections {
        parse(&format!("{smallest}{section}")).unwrap();
        count += 1;
    }
    assert_eq!(count, 5, "a tunnel, networks announced and accepted, multicast, and streams");
}

const TUNNEL: &str = "[tunnel]\naddress = [\"10.44.0.3/24\", \"fd44::3/64\"]\n";

#[test]
fn the_smallest_tunnel_has_sensible_defaults() {
    let config = parse(&format!("{SMALLEST}{TUNNEL}")).unwrap();
    let tunnel = config.tunnel.unwrap();
    assert_eq!((tunnel.scheme.as_str(), tunnel.device.as_str()), ("auto", "ncmesh0"));
    assert_eq!((tunnel.mtu, tunnel.clamp_mss, tunnel.namespace), (None, true, None));
    assert_eq!(tunnel.routes, Default::default());
    assert_eq!(parse(SMALLEST).unwrap().tunnel, None);
}

#[test]
fn routes_name_nodes_by_name_or_id() {
    let routes = "[tunnel.routes]\n\"10.44.0.5\" = \"barn\"\n\"fd44:7::/48\" = 7\n";
    let tunnel = parse(&format!("{SMALLEST}{TUNNEL}{routes}")).unwrap().tunnel.unwrap();
    let route = |prefix: &str, target| (prefix.parse().unwrap(), target);
    let expected = [
        route("10.44.0.5/32", Target::Name("barn".into())),
        route("fd44:7::/48", Target::Id(NodeId(7))),
    ];
    assert_eq!(tunnel.routes.0, expected);
}

#[test]
fn a_network_stands_for_the_address_by_id_in_it() {
    let with_id = |id: u16, address: &str| {
        let smallest = SMALLEST.replace("id = 3", &format!("id = {id}"));
        let tunnel = parse(&format!("{smallest}[tunnel]\naddress = [\"{address}\"]\n"));
        tunnel.map(|config| config.tunnel.unwrap().address[0].to_string())
    };
    for (id, given, own) in [
        (3, "10.44.0.0/16", "10.44.0.3/16"),
        (700, "10.44.0.0/16", "10.44.2.188/16"),
        (254, "10.44.0.0/24", "10.44.0.254/24"),
        (65534, "fd44::/64", "fd44::fffe/64"),
        (3, "10.44.0.9/24", "10.44.0.9/24"),
        // Each address of so small a network is one of a host.
        (3, "10.44.0.0/31", "10.44.0.0/31"),
    ] {
        assert_eq!(with_id(id, given).unwrap(), own, "{id} in {given}");
    }
    for (id, given) in [(255, "10.44.0.0/24"), (700, "10.44.0.0/24")] {
        let problem = with_id(id, given).unwrap_err().problem;
        assert!(problem.contains("does not fit into 10.44.0.0/24"), "{problem}");
    }
}

#[test]
fn what_is_announced_and_accepted_is_told_to_the_gateway() {
    let more = "announce = [\"192.168.7.0/24\"]\naccept = [\"0.0.0.0/0\", \"10.44.0.0/25\"]\n";
    let config = parse(&format!("{SMALLEST}{TUNNEL}{more}")).unwrap();
    let texts = |all: &[IpNet]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let own = ["10.44.0.3/32", "fd44::3/128", "192.168.7.0/24"];
    assert_eq!(texts(&config.profile().prefixes), own);
    let tunnel = config.tunnel.unwrap();
    let gateway = tunnel.gateway(1400, 1400);
    assert_eq!(texts(&gateway.announce), own);
    let accepted = ["10.44.0.0/24", "fd44::/64", "0.0.0.0/0", "10.44.0.0/25"];
    assert_eq!(texts(&gateway.accept), accepted);
    // The kernel knows from the addresses where the rest is.
    assert_eq!(texts(&tunnel.beyond_addresses().collect::<Vec<_>>()), ["0.0.0.0/0"]);
}

#[test]
fn errors_in_the_tunnel_are_placed_and_say_what_is_allowed() {
    for (setting, word) in [
        ("scheme = \"pacifier\"", "there are: auto, braid, forward"),
        ("device = \"much-too-long-a-name\"", "allowed is 1 to 15 of letters"),
        ("device = \"a/b\"", "allowed is 1 to 15 of letters"),
        ("namespace = \"../x\"", "`ip netns list`"),
        ("mtu = 500", "mtu = 500: allowed is 576 to 65535"),
        ("queue = 0", "allowed is 1 to 10000"),
        ("clamp = true", "unknown field `clamp`"),
        ("announce = [\"10.0.0.1/24\"]", "announce: \"10.0.0.1/24\" has bits beyond"),
        ("accept = [\"10.0.0.0/8\", \"10.0.0.0/8\"]", "accept: 10.0.0.0/8 stands there twice"),
        ("accept = [\"ten\"]", "an address or a prefix"),
        ("routes = { \"10.0.0.1/24\" = 5 }", "write \"10.0.0.0/24\""),
        ("routes = { \"10.0.0.0/33\" = 5 }", "an address or a prefix"),
        ("routes = { \"10.0.0.1\" = 5, \"10.0.0.1/32\" = 6 }", "stands there twice"),
        ("routes = { \"10.0.0.1\" = 0 }", "ids 1 to 65534"),
        ("routes = { \"10.0.0.1\" = 3 }", "leads to this very node"),
        ("routes = { \"10.0.0.1\" = \"n03\" }", "leads to this very node"),
        ("routes = { \"10.0.0.1\" = \"my barn\" }", "no node can be named"),
        ("routes = { \"10.0.0.1\" = true }", "a node's name or its id"),
    ] {
        let error = parse(&format!("{SMALLEST}{TUNNEL}{setting} # here\n[link]\n")).unwrap_err();
        assert!(error.problem.contains(word), "{error}");
        assert_eq!(error.line, Some(9), "{error}");
    }
}

#[test]
fn a_tunnel_needs_addresses_that_hosts_can_have() {
    for (address, word) in [
        ("[]", "address: the list is empty"),
        ("[\"10.44.0.3\"]", "with the length of its prefix"),
        ("[\"224.0.0.1/4\"]", "a host's address"),
        ("[\"127.0.0.1/8\"]", "a host's address"),
        ("[\"::/0\"]", "a host's address"),
        ("[\"10.44.0.3/24\", \"10.44.0.3/16\"]", "stands there twice"),
    ] {
        let error = parse(&format!("{SMALLEST}[tunnel]\naddress = {address}\n")).unwrap_err();
        assert!(error.problem.contains(word), "{error}");
        assert_eq!(error.line, Some(8), "{error}");
    }
    let error = parse(&format!("{SMALLEST}[tunnel]\n")).unwrap_err();
    assert!(error.problem.contains("missing field `address`"), "{error}");
}

#[test]
fn multicast_has_further_groups_of_the_link_and_a_rate() {
    let tunnel = |more: &str| {
        let text = format!("{SMALLEST}[tunnel]\naddress = [\"10.44.0.3/24\"]\n{more}");
        parse(&text).map(|config| config.tunnel.unwrap().gateway(1300, 1300).multicast.unwrap())
    };
    assert_eq!(tunnel("").unwrap().rate_bps, 2_000_000);
    let set = "[tunnel.multicast]\ngroups = [\"224.0.0.252\", \"ff02::1:3\"]\nrate = \"500k\"\n";
    let multicast = tunnel(set).unwrap();
    assert_eq!((multicast.groups.len(), multicast.rate_bps), (2, 500_000));
    for (wrong, why) in [
        ("multicast = { groups = [\"239.1.2.3\"] }", "no group of the local link"),
        ("multicast = { rate = \"x\" }", "rate"),
        ("multicast = { group = [] }", "unknown field"),
    ] {
        let said = tunnel(wrong).unwrap_err().to_string();
        assert!(said.contains(why), "{wrong}: {said}");
    }
}

#[test]
fn a_node_that_takes_part_in_roll_outs_says_how() {
    let key = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
    let all = format!(
        "[fleet]\nmodel = \"cpe210\"\nversion_file = \"version\"\nname = \"town\"\n\
         keys = [\"{key}\", \"{key}\"]\noperators = [\"{key}\"]\nmax_bytes = \"16M\"\n\
         apply = [\"./install\", \"now\"]\nrollback = [\"back\"]\n"
    );
    let fleet = parse(&format!("{SMALLEST}{all}")).unwrap().fleet.unwrap();
    assert_eq!(fleet.operator_key, None);
    let member = fleet.member.unwrap();
    assert_eq!(member.version_file, Path::new("/etc/ncmesh/version"));
    assert_eq!((member.channel.as_str(), member.max_bytes), ("stable", Some(16_000_000)));
    assert_eq!(member.hooks.apply, ["/etc/ncmesh/install", "now"]);
    assert!(member.dir.ends_with("fleet") && member.hooks.stage.is_empty());

    // Nothing that has no sensible value may be left out.
    for (line, problem) in [
        ("version_file", "version_file is required with model"),
        ("name", "name is required with model"),
        ("keys", "keys is required with model"),
        ("operators", "operators is required with model"),
        ("apply", "apply is required with model"),
        ("rollback", "rollback is required with model"),
        ("model", "set model for a node that takes part"),
    ] {
        let left: Vec<&str> = all.lines().filter(|text| !text.starts_with(line)).collect();
        let error = parse(&format!("{SMALLEST}{}\n", left.join("\n"))).unwrap_err();
        assert!(error.problem.contains(problem), "{error}");
    }
    for (from, to, problem) in [
        ("keys =", "need = 2\nkeys =", "need: 2 signatures are needed, but only 1 different"),
        ("\"cpe210\"", "\"cpe 210\"", "model: it is 1 to 64 characters"),
        ("[\"back\"]", "[]", "a program and its arguments"),
    ] {
        let error = parse(&format!("{SMALLEST}{}", all.replace(from, to))).unwrap_err();
        assert!(error.problem.contains(problem), "{error}");
    }
    let leads = format!("{SMALLEST}[fleet]\noperator_key = \"dora.key\"\n");
    assert_eq!(parse(&leads).unwrap().fleet.unwrap().member, None);
}
