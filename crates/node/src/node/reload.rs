//! A changed configuration file, without a restart.
//!
//! The whole new file is checked first, and nothing changes if anything in it is wrong. Settings
//! that can change take effect at once. The answer names all others that differ; they take effect
//! with the next start.

use super::{Node, PortChange, PortNews, Start, stack_config};
use crate::api::answers::Reloaded;
use crate::api::types::{ApiError, ErrorCode, TunnelChange};
use crate::config::{ConfigError, NodeConfig, PortEntry, PortPlace, RadioConfig};
use crate::identity::{IdentityError, revocations};
use ncmesh_engine::time::Instant;
use ncmesh_engines::registry;
use ncmesh_stack::Stack;
use ncmesh_stack::trust::TrustConfig;
use ncmesh_wire::Salt;
use ncmesh_wire::identity::Rejection;

/// Gives a node another configuration.
///
/// # Errors
/// The first setting that cannot be. Then nothing has changed.
pub(super) fn reload(node: &mut Node, new: &NodeConfig) -> Result<Reloaded, ApiError> {
    // Everything is checked before anything changes: a wrong file leaves the node as it was.
    check(new, node.clock.now()).map_err(|e| refused(&e))?;
    let list = revocations(new).map_err(|e| wrong_list(&e))?;
    let mut answer = Reloaded::default();

    // The list of revocations and the scheme first: no other change may be refused.
    let now = node.clock.now();
    if let Some(list) = list {
        let file = new.trust.revocations.clone().unwrap_or_default();
        match node.stack.at(now, &mut node.storage).revoke(list) {
            Ok(()) => answer.changed.push("[trust] revocations".into()),
            Err(Rejection::Old) => {}
            Err(why) => return Err(wrong_list(&IdentityError::Revocations(file, why))),
        }
    }
    if let (Some(old), Some(tunnel)) = (&node.configuration.tunnel, &new.tunnel)
        && old.scheme != tunnel.scheme
    {
        let scheme = tunnel.scheme.clone();
        node.change_tunnel(&TunnelChange { scheme: Some(scheme), relay: None, coding: None })?;
        answer.changed.push("[tunnel] scheme".into());
    }

    // From here on nothing fails. Each setting that differs is applied and named.
    let mut running = node.configuration.clone();
    running.trust.revocations.clone_from(&new.trust.revocations);
    let mut changed = |setting: &str| answer.changed.push(setting.to_owned());
    if update(&mut running.position, &new.position) {
        changed("[node] position");
    }
    if update(&mut running.display_name, &new.display_name) {
        changed("[node] display_name");
    }
    if update(&mut running.log, &new.log) {
        changed("[node] log");
        (node.set_log)(new.log);
    }

    if let Some(dir) = new.inbox.clone()
        && update(&mut running.inbox, &new.inbox)
    {
        changed("[inbox] dir");
        node.use_inbox(dir);
    }

    let old = running.inbox_limits.clone();
    let limits = &new.inbox_limits;
    if update(&mut running.inbox_limits, limits) {
        for (is_changed, setting) in [
            (old.space.max_bytes != limits.space.max_bytes, "[inbox] max_bytes"),
            (old.space.reserve != limits.space.reserve, "[inbox] reserve"),
            (old.naming != limits.naming, "[inbox] rename"),
            (old.allow_from != limits.allow_from, "[inbox] allow_from"),
            (old.keep != limits.keep, "[inbox] keep_days"),
        ] {
            if is_changed {
                changed(setting);
            }
        }

        node.inbox.limits = new.inbox_limits.clone();
        node.storage.limit(new.inbox_limits.space);
    }

    if update(&mut running.hook, &new.hook) {
        changed("[inbox] hook");
        node.hooks.use_command(new.hook.clone());
    }

    for setting in reload_ports(node, &mut running, new) {
        changed(&setting);
    }

    if let (Some(old), Some(new), Some(tunnel)) =
        (&mut running.tunnel, &new.tunnel, &mut node.tunnel)
    {
        old.scheme.clone_from(&new.scheme);
        if update(&mut old.clamp_mss, &new.clamp_mss) {
            changed("[tunnel] clamp_mss");
        }
        if update(&mut old.padding, &new.padding) {
            changed("[tunnel] padding");
        }
        if update(&mut old.queue, &new.queue) {
            changed("[tunnel] queue");
        }
        if update(&mut old.multicast, &new.multicast) {
            changed("[tunnel] multicast");
        }
        if update(&mut old.announce, &new.announce) {
            changed("[tunnel] announce");
        }

        // The kernel was told of all other routes through the device when it was made.
        if old.beyond_addresses().eq(new.beyond_addresses()) {
            if update(&mut old.routes, &new.routes) {
                changed("[tunnel] routes");
            }
            if update(&mut old.accept, &new.accept) {
                changed("[tunnel] accept");
            }
        }

        tunnel.gateway.adjust(old.gateway(tunnel.mtu, tunnel.whole));
        tunnel.config = old.clone();
    }

    node.stack.at(now, &mut node.storage).tell(running.profile());

    answer.restart = others(&running, new);
    tracing::info!("configuration read again: {answer}");
    node.configuration = running;
    Ok(answer)
}

/// Changes the ports to those of another configuration, and `running` with them: always their
/// rates, and all else where they are in `[[port]]` and keep the length of the largest frame.
/// Returns the names of what has changed.
fn reload_ports(node: &mut Node, running: &mut NodeConfig, new: &NodeConfig) -> Vec<String> {
    let mut changed = Vec::new();
    for old in &mut running.ports {
        let new = new.ports.iter().find(|new| is_same(old, new)).map(|new| &new.radio);
        let (RadioConfig::Port(radio), Some(RadioConfig::Port(new))) = (&mut old.radio, new) else {
            continue;
        };
        if radio.rate != new.rate {
            radio.rate = new.rate;
            let port = node.ports.find(&old.name).unwrap_or_default();
            node.ports.changes.push(PortChange::Rate(port, new.rate));
            changed.push(format!("{} rate", old.place));
        }
    }

    if !is_list(running) || !is_list(new) || running.mtu() != new.mtu() {
        return changed;
    }
    // Ports go before others come: these may need what those hold.
    let stays =
        |old: &PortEntry| new.ports.iter().any(|new| is_same(old, new) && old.radio == new.radio);
    for old in running.ports.iter().filter(|old| !stays(old)) {
        if let Some(port) = node.ports.find(&old.name) {
            node.handle_port_news(port, PortNews::default());
            node.ports.leave(port);
            changed.push(format!("[[port]] {}", old.name));
        }
    }
    for entry in &new.ports {
        if node.ports.find(&entry.name).is_none()
            && node.ports.take(entry, &mut node.stack, node.clock.now()).is_some()
            && !changed.iter().any(|name| *name == format!("[[port]] {}", entry.name))
        {
            changed.push(format!("[[port]] {}", entry.name));
        }
    }
    running.ports.clone_from(&new.ports);
    changed
}

/// Returns whether an entry of the new configuration is about a port of the old one.
fn is_same(old: &PortEntry, new: &PortEntry) -> bool {
    old.name == new.name || (old.place, new.place) == (PortPlace::Radio, PortPlace::Radio)
}

/// Returns whether all ports stand in `[[port]]`.
fn is_list(config: &NodeConfig) -> bool {
    config.ports.iter().all(|port| matches!(port.place, PortPlace::Port(_)))
}

/// Checks what only the stack and the engines can check.
fn check(new: &NodeConfig, now: Instant) -> Result<(), ConfigError> {
    let start = Start { salt: Salt([0; 16]), epoch: 0, seed: 0 };
    let stack = Stack::new(stack_config(new, &start, TrustConfig::Key), registry(), now);
    let tunnel = stack.and_then(|stack| super::Tunnel::new(new, &stack));
    tunnel.map(|_| ()).map_err(|e| new.blame(&e.section, &e.problem))
}

/// Sets `old` to `new`. Returns whether they differed.
fn update<T: PartialEq + Clone>(old: &mut T, new: &T) -> bool {
    let differs = old != new;
    if differs {
        old.clone_from(new);
    }
    differs
}

/// Returns the name of the section that the ports of a configuration stand in.
fn ports_section(new: &NodeConfig) -> &'static str {
    match new.ports[..] {
        [PortEntry { place: PortPlace::Radio, .. }] => "[radio]",
        _ => "[[port]]",
    }
}

/// Returns the sections and settings in which the new configuration still differs.
fn others(running: &NodeConfig, new: &NodeConfig) -> Vec<String> {
    let sections = [
        ("[node] id", running.id != new.id),
        ("[node] name", running.name != new.name),
        ("[node] key", running.key != new.key),
        ("[node] state_dir", running.state_dir != new.state_dir),
        ("[trust]", running.trust != new.trust),
        ("[inbox] dir", running.inbox != new.inbox),
        ("[fleet]", running.fleet != new.fleet),
        ("[api]", (&running.api_socket, running.api_group) != (&new.api_socket, new.api_group)),
        ("[web]", running.web != new.web),
        (ports_section(new), running.ports != new.ports),
        ("[tunnel]", running.tunnel != new.tunnel),
        ("[stream]", running.stream != new.stream),
        ("[link]", running.link != new.link),
        ("[route]", running.route != new.route),
        ("[limits]", running.limits != new.limits),
    ];

    // Settings of the schemes count one by one.
    let differing = sections.into_iter().filter(|(_, differs)| *differs);
    let mut names: Vec<String> = differing.map(|(name, _)| name.to_owned()).collect();

    let engines = registry().entries().map(|entry| entry.name);
    let differing = engines.filter(|name| running.engines.get(*name) != new.engines.get(*name));
    names.extend(differing.map(|name| format!("[{name}]")));
    names
}

fn wrong_list(e: &IdentityError) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, format!("[trust] revocations: {e}"))
}

/// Returns the error of a configuration that cannot be.
pub(crate) fn refused(e: &ConfigError) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, format!("nothing was changed: {e}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CONFIG, node};
    use super::*;
    use ncmesh_engine::Port;
    use std::path::Path;
    use std::sync::mpsc;

    fn read(text: &str) -> NodeConfig {
        NodeConfig::parse(Path::new("/etc/ncmesh/node.toml"), text).unwrap()
    }

    #[tokio::test]
    async fn what_can_change_does_and_the_rest_is_named() {
        let (mut node, _calls, dir) = node();
        let inbox = dir.path().join("in");
        let (set, log) = mpsc::channel();
        node.set_log = Box::new(move |level| set.send(level).unwrap());
        let own = "id = 3\nname = \"barn\"\nposition = [1, 2]\nlog = \"warn\"\n";
        let text = CONFIG.replace("id = 3\n", own)
            + &format!(
                "rate = \"5M\"\nport = 7000\n[inbox]\ndir = {inbox:?}\nhook = [\"true\"]\n\
                 max_bytes = \"1M\"\n[link]\nhello_s = 2.0\n[forward]\nqueue = 9\n"
            );
        let mut file = read(&text);
        file.state_dir.clone_from(&node.configuration().state_dir);
        file.api_socket.clone_from(&node.configuration().api_socket);
        let answer = node.reload(&file).unwrap();
        let changed = [
            "[node] position",
            "[node] log",
            "[inbox] dir",
            "[inbox] max_bytes",
            "[inbox] hook",
            "[radio] rate",
        ];
        assert_eq!(answer.changed, changed);
        let restart = ["[node] name", "[radio]", "[link]", "[forward]"];
        assert_eq!(answer.restart, restart);
        assert_eq!(log.try_recv(), Ok(tracing::Level::WARN));
        assert_eq!(node.inbox(), Some(&inbox));
        assert_eq!(node.inbox.limits.space.max_bytes, Some(1_000_000));
        let [PortChange::Rate(Port::FIRST, Some(rate))] = node.take_port_changes()[..] else {
            panic!("one rate has changed")
        };
        assert_eq!(rate.bits_per_second, 5e6);

        // Settings that wait for a restart are named each time, those that have changed are not.
        let again = node.reload(&file).unwrap();
        assert_eq!((again.changed.len(), again.restart.len()), (0, 4));
        assert_eq!(log.try_recv(), Err(mpsc::TryRecvError::Empty));
    }

    #[tokio::test]
    async fn a_file_with_a_mistake_changes_nothing() {
        let (mut node, _calls, _dir) = node();
        let text =
            CONFIG.replace("id = 3\n", "id = 3\nposition = [1, 2]\n") + "[forward]\nqueue = 0\n";
        let refused = node.reload(&read(&text)).unwrap_err();
        assert!(refused.error.contains("nothing was changed: /etc/ncmesh/node.toml:"), "{refused}");
        assert!(refused.error.contains("queue"), "{refused}");
        assert_eq!(node.configuration().position, None);
    }
}
