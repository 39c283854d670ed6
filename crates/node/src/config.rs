//! Configuration of a daemon: `node.toml`, read and checked completely before anything starts.

mod fleet;
mod inbox;
mod limits;
mod locate;
mod log;
mod ports;
mod position;
mod radio;
mod trust;
mod tunnel;
mod web;

use fleet::FleetSection;
pub use fleet::{FleetConfig, FleetHooks, MemberConfig};
pub use inbox::{InboxLimits, Sender, SpaceLimits};
pub use locate::line_of_problem;
pub use log::{UnknownLevel, level};

use crate::root::without_links;
use crate::stream::StreamSection;
use inbox::InboxSection;
pub use limits::{LimitsConfig, Machine};
use locate::{key_on, line_of, line_of_entry, section_name};
use log::LogLevel;
use ncmesh_engine::name::{MAX_NODE_NAME, NODE_NAMES, harmless_file_name, is_node_name};
use ncmesh_engine::path::expand;
use ncmesh_engine::settings::{Declared, Mismatch, Section, Toml, Value, parse};
use ncmesh_engine::text::unmarked;
use ncmesh_engine::topology::{Position, Profile, USUAL_FRAME};
use ncmesh_engine::wording::{did_you_mean, in_words, key_at};
use ncmesh_engines::registry;
pub use ncmesh_host::gateway::V6_LEAST;
use ncmesh_stack::MTUS;
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_stack::share::ShareConfig;
use ncmesh_wire::{Key, NodeId};
use ports::WrongPort;
pub use ports::{PortEntry, PortPlace};
use position::Place;
pub use radio::{AirConfig, BroadcastRate, PortConfig, PortKind, RadioConfig, Rate};
use serde::Deserialize;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tracing::Level;
use trust::TrustSection;
pub use trust::TrustSettings;
pub use tunnel::TunnelConfig;
pub(crate) use tunnel::choose;
pub use web::{Readers, TokenError, WebConfig, read_token, token_warning};
use zeroize::Zeroizing;

/// Name of a file with the key, in warnings.
const NETWORK_KEY: &str = "the network's key";

/// Name of the API's socket in the state directory.
pub const SOCKET: &str = "api.sock";

/// Smallest MTU of a tunnel, bytes: every host on the Internet accepts packets of this length (RFC
/// 791).
pub const TUNNEL_MTU_MIN: usize = 576;

/// Configuration of a daemon. Relative paths in the file are relative to the file, `~` and
/// variables are expanded. All paths here are absolute.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Id of the node, 1 to 65,534, unique in the network.
    pub id: NodeId,
    /// Name of the node, announced to the others.
    pub name: String,
    /// Name in any language, for people at this node.
    pub display_name: Option<String>,
    /// Where the node is, announced to the others.
    pub position: Option<Position>,
    /// Key of the network.
    pub key: Key,
    /// `[trust]`.
    pub trust: TrustSettings,
    /// Directory for what must survive a restart.
    pub state_dir: PathBuf,
    /// Least severe messages that are logged.
    pub log: Level,
    /// Directory for received files. Without it, files are refused.
    pub inbox: Option<PathBuf>,
    /// Limits on received files.
    pub inbox_limits: InboxLimits,
    /// Program that is run after each received file, with its arguments. Empty for none.
    pub hook: Vec<String>,
    /// `[fleet]`, if this node takes part in roll-outs or leads them.
    pub fleet: Option<FleetConfig>,
    /// Path of the HTTP API's Unix socket.
    pub api_socket: PathBuf,
    /// Whether members of the daemon's group may use that socket too.
    pub api_group: bool,
    /// `[web]`, if the console is served.
    pub web: Option<WebConfig>,
    /// `[radio]`, or each `[[port]]`: at least one.
    pub ports: Vec<PortEntry>,
    /// `[tunnel]`, if this node is an end of the tunnel.
    pub tunnel: Option<TunnelConfig>,
    /// `[stream]`: streams sent and received from the start on.
    pub stream: StreamSection,
    /// `[link]`.
    pub link: LinkConfig,
    /// `[route]`.
    pub route: RouteConfig,
    /// `[share]`.
    pub share: ShareConfig,
    /// `[limits]`.
    pub limits: LimitsConfig,
    /// Sections of the engines, by engine name.
    pub engines: toml::Table,
    source: ConfigText,
}

/// Text of a configuration file, for errors that name a line.
#[derive(Clone, Debug)]
struct ConfigText {
    file: PathBuf,
    text: String,
}

/// Error in a configuration, displayed as one line: the file, the line if known, and what is
/// allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Number of the line, from 1, if known.
    pub line: Option<usize>,
    /// Message: the mistake, and what is allowed.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// Settings that a client of the daemon needs. Everything else is the daemon's business.
#[derive(Deserialize)]
struct Places {
    node: Option<StatePlace>,
    api: Option<SocketPlace>,
}

#[derive(Deserialize)]
struct StatePlace {
    state_dir: Option<String>,
}

#[derive(Deserialize)]
struct SocketPlace {
    socket: Option<String>,
}

#[derive(Deserialize)]
struct FileSections {
    node: NodeSection,
    radio: Option<RadioConfig>,
    port: Option<Toml>,
    inbox: Option<InboxSection>,
    fleet: Option<FleetSection>,
    api: Option<ApiSection>,
    web: Option<WebConfig>,
    tunnel: Option<TunnelConfig>,
    #[serde(default)]
    trust: TrustSection,
    #[serde(default)]
    stream: StreamSection,
    #[serde(default)]
    link: LinkConfig,
    #[serde(default)]
    route: RouteConfig,
    #[serde(default)]
    share: ShareConfig,
    #[serde(default)]
    limits: LimitsConfig,
    #[serde(flatten)]
    engines: toml::Table,
}

ncmesh_engine::settings! {
    /// `[node]` as it is written.
    struct NodeSection {
        /// Id of the node, unique in the network.
        id: u16, within 1..=u16::MAX - 1;
        /// Where the node is: told to all nodes, shown on maps and in exports. A list is in metres
        /// east, north and up; two numbers in degrees would not say which is the latitude.
        position: Option<Place> = None, allowed "`[x, y]` or `[x, y, z]`, each up to 2,000,000 m \
            from the origin; or `{ latitude, longitude }`, degrees";
        /// Name that people are shown.
        name: Option<String> = None, absent "`n` and the id", read node_name,
            allowed "1 to 63 of a-z, A-Z, 0-9, `.`, `_` and `-`";
        /// Name in any language, which this node's own `status` and map show beside `name`. Other
        /// nodes do not learn it.
        display_name: Option<String> = None, read display_name,
            allowed "1 to 63 characters, none of which controls terminals or directions of text";
        /// Key of the network, if `key_file` does not name a file that holds it. One of the two is
        /// required.
        key: Option<String> = None, allowed "64 hexadecimal digits, not all equal";
        /// File that holds the key of the network, from `ncmesh keygen`.
        key_file: Option<PathBuf> = None, allowed "a file";
        /// Directory for what must survive a restart, see [files on disk](#files-on-disk).
        state_dir: Option<PathBuf> = None, allowed "a directory",
            absent "`/var/lib/ncmesh` for root, else `$XDG_STATE_HOME/ncmesh` or \
                `~/.local/state/ncmesh`";
        /// Least severe messages that are logged. If the environment variable `NCMESH_LOG` is set,
        /// the daemon starts with its value instead: a level, or levels of parts too
        /// (`warn,ncmesh_stack=debug`). With a typing error it is ignored, and the log says so.
        log: LogLevel = LogLevel(Level::INFO), allowed log::ALLOWED;
    }
}

ncmesh_engine::settings! {
    /// `[api]` as it is written.
    struct ApiSection {
        /// Socket of the [HTTP API](api.md).
        socket: Option<PathBuf> = None, absent "`api.sock` in `state_dir`", allowed "a file";
        /// Whether members of the daemon's group may use it too.
        group: bool = false;
    }
}

/// A section of a configuration, and what is declared of its settings.
#[derive(Clone, Debug)]
pub struct SectionSettings {
    /// Its name.
    pub name: &'static str,
    /// Its settings, in the order of their declaration.
    pub settings: Vec<Declared>,
}

/// Returns the sections of a configuration, besides those of the engines.
#[must_use]
pub fn sections() -> Vec<SectionSettings> {
    let section = |name, settings| SectionSettings { name, settings };

    vec![
        section("node", NodeSection::settings()),
        section("trust", TrustSection::settings()),
        section("radio", RadioConfig::settings()),
        section("port", ports::settings()),
        section("inbox", InboxSection::settings()),
        section("fleet", FleetSection::settings()),
        section("api", ApiSection::settings()),
        section("web", WebConfig::settings()),
        section("tunnel", TunnelConfig::settings()),
        section("stream", StreamSection::settings()),
        section("link", LinkConfig::settings()),
        section("route", RouteConfig::settings()),
        section("share", ShareConfig::settings()),
        section("limits", LimitsConfig::settings()),
    ]
}

impl NodeConfig {
    /// Returns what the node tells the others of itself.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let prefixes = self.tunnel.as_ref().map(TunnelConfig::announced).unwrap_or_default();
        let longest_frame = u16::try_from(self.mtu()).ok().filter(|mtu| *mtu != USUAL_FRAME);
        Profile { position: self.position, prefixes, longest_frame, ..Profile::default() }
    }

    /// Returns the length of the largest frame, bytes: that of the port with the smallest.
    #[must_use]
    pub fn mtu(&self) -> usize {
        self.ports.iter().map(|port| port.radio.mtu()).min().unwrap_or(*MTUS.start())
    }

    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] if the file is unreadable or not TOML, if a setting is unknown or out of
    /// range, or without a usable key.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let ConfigText { file, text } = ConfigText::read(file)?;
        Self::parse(&file, &text)
    }

    /// Checks the contents of a configuration file. Paths in it are relative to `file`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let text = unmarked(text).to_owned();
        let source = ConfigText { file: file.to_owned(), text };
        let syntax = |e| source.toml_error(&e);
        // The names of sections are checked first: a misspelt one is otherwise taken for an
        // engine's.
        source.check_sections(&parse(&source.text).map_err(syntax)?)?;
        let sections: FileSections = parse(&source.text).map_err(syntax)?;
        let FileSections {
            node,
            radio,
            port,
            trust,
            inbox,
            fleet,
            api,
            web,
            tunnel,
            stream,
            link,
            route,
            share,
            limits,
            engines,
        } = sections;

        let ports = ports::read(radio, port.as_ref()).map_err(|wrong| source.wrong_port(&wrong))?;
        let key = source.key(&node)?;

        // The directory of the state comes first: other paths have their defaults in it.
        let state_dir = node.state_dir.map_or_else(default_state_dir, |dir| source.resolve(&dir));
        let trust = TrustSettings {
            mode: trust.mode,
            networks: trust.networks.0,
            certificate: trust
                .certificate
                .map_or_else(|| state_dir.join("certificate"), |file| source.resolve(&file)),
            revocations: trust.revocations.map(|file| source.resolve(&file)),
        };

        let resolve = |path: &Path| source.resolve(path);
        let fleet = fleet
            .map(|fleet| fleet.checked(&state_dir, resolve, |words| source.command(words)))
            .transpose()
            .map_err(|problem| source.blame("fleet", &problem))?;

        // The tunnel may need the id and the name, for the address and for routes to this node.
        let id = NodeId(node.id);
        let name = node.name.unwrap_or_else(|| format!("n{:02}", node.id));
        let tunnel = tunnel.map(|tunnel| tunnel.completed(id, &name)).transpose();
        let tunnel = tunnel.map_err(|problem| source.blame("tunnel", &problem))?;

        Ok(Self {
            id,
            name,
            display_name: node.display_name,
            position: node.position.map(|place| place.0),
            key,
            trust,
            inbox_limits: inbox.as_ref().map(InboxLimits::from).unwrap_or_default(),
            hook: inbox.as_ref().map(|section| source.command(&section.hook)).unwrap_or_default(),
            inbox: inbox.map(|section| without_links(&source.resolve(&section.dir))),
            fleet,
            api_group: api.as_ref().is_some_and(|api| api.group),
            api_socket: api
                .and_then(|api| api.socket)
                .map_or_else(|| state_dir.join(SOCKET), |socket| source.resolve(&socket)),
            state_dir,
            log: node.log.0,
            web,
            ports,
            tunnel,
            stream,
            link,
            route,
            share,
            limits,
            engines,
            source,
        })
    }

    /// Returns the API socket that a configuration file names, itself or by its `state_dir`; `None`
    /// if it leaves both to their defaults.
    ///
    /// The key is not read: it may be for the daemon's eyes only.
    ///
    /// # Errors
    /// [`ConfigError`] if the file is unreadable or not TOML.
    pub fn socket(file: &Path) -> Result<Option<PathBuf>, ConfigError> {
        let source = ConfigText::read(file)?;
        let Places { node, api } = parse(&source.text).map_err(|e| source.toml_error(&e))?;
        let place = |section, key, path: String| {
            let wrong = |problem| source.error(section, key, problem);
            expand(&path).map(|path| source.resolve(&path)).map_err(wrong)
        };

        // The own setting wins; without it the socket is in the state directory.
        if let Some(socket) = api.and_then(|api| api.socket) {
            return place("api", "socket", socket).map(Some);
        }

        let state = node.and_then(|node| node.state_dir);
        let state = state.map(|dir| place("node", "state_dir", dir)).transpose()?;
        Ok(state.map(|dir| dir.join(SOCKET)))
    }

    /// Returns the state directory that a configuration file names, or the default one. The key is
    /// not read.
    ///
    /// # Errors
    /// [`ConfigError`] if the file is unreadable or not TOML.
    pub fn state_dir(file: &Path) -> Result<PathBuf, ConfigError> {
        let source = ConfigText::read(file)?;
        let Places { node, .. } = parse(&source.text).map_err(|e| source.toml_error(&e))?;
        let Some(dir) = node.and_then(|node| node.state_dir) else {
            return Ok(default_state_dir());
        };
        let wrong = |problem| source.error("node", "state_dir", problem);
        expand(&dir).map(|dir| source.resolve(&dir)).map_err(wrong)
    }

    /// Reads the token of the console's commands, the first line of a file.
    ///
    /// # Errors
    /// [`ConfigError`] if it cannot be read, or has no token of some length.
    pub fn token(&self, file: &Path) -> Result<String, ConfigError> {
        let file = self.source.resolve(file);
        let error = |e| self.source.error("web", "token_file", format!("[web] token_file {e}"));
        let token = read_token(&file).map_err(error)?;
        warn(token_warning(&file));
        Ok(token)
    }

    /// Returns the file that it was read from.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.source.file
    }

    /// Returns an error that was found later in `section`, with its place in the file.
    #[must_use]
    pub fn blame(&self, section: &str, problem: &str) -> ConfigError {
        self.source.blame(section, problem)
    }

    /// Returns an error of a port that was found later, with its place in the file.
    #[must_use]
    pub fn blame_port(&self, place: PortPlace, problem: &str) -> ConfigError {
        match place {
            PortPlace::Radio => self.source.blame("radio", problem),
            PortPlace::Port(place) => self.source.blame_entry(place, problem),
        }
    }
}

impl ConfigText {
    fn read(file: &Path) -> Result<Self, ConfigError> {
        let failed = |e| ConfigError {
            file: file.to_owned(),
            line: None,
            problem: format!("cannot be read: {e}"),
        };
        let text = ncmesh_engine::text::read(file).map_err(failed)?;
        Ok(Self { file: file.to_owned(), text })
    }

    fn blame(&self, section: &str, problem: &str) -> ConfigError {
        let line = line_of_problem(&self.text, section, problem);
        let problem = format!("[{section}] {problem}");
        ConfigError { file: self.file.clone(), line, problem }
    }

    /// Returns an error of the `[[port]]` at this place.
    fn blame_entry(&self, place: usize, problem: &str) -> ConfigError {
        let line = line_of_entry(&self.text, "port", place, problem);
        let key = line.and_then(|line| key_on(self.text.lines().nth(line - 1)?));
        let problem = format!("[[port]] {}", in_words(key, problem));
        ConfigError { file: self.file.clone(), line, problem }
    }

    fn wrong_port(&self, wrong: &WrongPort) -> ConfigError {
        let WrongPort { place, problem } = wrong;
        match place {
            Some(place) => self.blame_entry(*place, problem),
            None => ConfigError { file: self.file.clone(), line: None, problem: problem.clone() },
        }
    }

    fn error(&self, section: &str, key: &str, problem: String) -> ConfigError {
        ConfigError { file: self.file.clone(), line: line_of(&self.text, section, key), problem }
    }

    fn toml_error(&self, e: &toml::de::Error) -> ConfigError {
        let problem = e.message().trim_end().replace('\n', "; ");
        let line = |at: usize| self.text[..at.min(self.text.len())].matches('\n').count();
        let line = e.span().map(|span| line(span.start));
        // If the parser knows only the section, the message may name the setting.
        let section = line.and_then(|line| section_name(self.text.lines().nth(line)?));
        let found = section.and_then(|name| line_of_problem(&self.text, name, &problem));
        let line = found.or(line.map(|line| line + 1));

        // Where the parser does not know the key, the line that was found does.
        let by_span = e.span().and_then(|span| key_at(&self.text, span.start));
        let on_line = || key_on(self.text.lines().nth(line? - 1)?);
        let problem = in_words(by_span.or_else(on_line), &problem).into_owned();
        ConfigError { file: self.file.clone(), line, problem }
    }

    /// Refuses a section that is unknown and whose name is like that of a known one. What it was
    /// meant to be would be missed otherwise. Other unknown sections are left to the stack.
    fn check_sections(&self, all: &toml::Table) -> Result<(), ConfigError> {
        let is_own = |name: &str| sections().iter().any(|section| section.name == name);
        let is_known = |name: &str| is_own(name) || registry().entry(name).is_some();
        for name in all.keys().filter(|name| !is_known(name)) {
            let question = did_you_mean(name, sections().iter().map(|section| section.name));
            if !question.is_empty() {
                return Err(self.blame(name, &format!("no such section{question}")));
            }
        }
        Ok(())
    }

    /// Returns a command, with a program that is named by a path resolved. Any other is looked for
    /// as the system does (`PATH`).
    fn command(&self, words: &[String]) -> Vec<String> {
        let mut words = words.to_vec();
        if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
            *program = self.resolve(Path::new(program)).display().to_string();
        }
        words
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        // Hooks, clients and other threads have other working directories.
        let path = self.file.parent().unwrap_or(Path::new("")).join(path);
        std::path::absolute(&path).unwrap_or(path)
    }

    fn key(&self, node: &NodeSection) -> Result<Key, ConfigError> {
        match (&node.key, &node.key_file) {
            (Some(key), None) => {
                // A key in the configuration file is only as secret as the file.
                warn(shared(&self.file, 0o004, NETWORK_KEY));
                key.parse().map_err(|e| self.error("node", "key", format!("[node] key: {e}")))
            }
            (None, Some(file)) => self.key_from(&self.resolve(file)),
            (Some(_), Some(_)) => {
                let problem = "[node] has both key and key_file; leave one of them out".into();
                Err(self.error("node", "key_file", problem))
            }
            (None, None) => {
                let problem = "[node] has no key: set key_file = \"FILE\" and make FILE with \
                               `ncmesh keygen FILE`, the same on every node";
                Err(self.error("node", "", problem.into()))
            }
        }
    }

    fn key_from(&self, file: &Path) -> Result<Key, ConfigError> {
        let shown = file.display();
        let error = |problem| self.error("node", "key_file", problem);
        if let Some(problem) = shared(file, 0o007, NETWORK_KEY) {
            return Err(error(format!("[node] key_file {problem}")));
        }
        let text = ncmesh_engine::text::read(file)
            .map(Zeroizing::new)
            .map_err(|e| error(format!("[node] key_file {shown} cannot be read: {e}")))?;
        // A group may be the daemon's own.
        warn(shared(file, 0o070, NETWORK_KEY));
        text.parse().map_err(|e| error(format!("[node] key_file {shown}: {e}")))
    }
}

/// Reads the name of a node.
fn node_name(value: Toml) -> Result<Option<String>, Mismatch> {
    let name = String::from_toml(value)?;
    if is_node_name(&name) {
        return Ok(Some(name));
    }
    let allowed = format!("{NODE_NAMES}; `display_name` takes letters of all languages");
    Err(Mismatch::Value(allowed))
}

/// Reads a name for people.
fn display_name(value: Toml) -> Result<Option<String>, Mismatch> {
    let name = String::from_toml(value)?;
    // The name is shown in terminals and logs, so it may not control them.
    let is_plain = harmless_file_name(&name) == name && !name.trim().is_empty();
    if is_plain && name.chars().count() <= MAX_NODE_NAME {
        return Ok(Some(name));
    }

    let allowed = "1 to 63 characters, none of which controls terminals or directions of text";
    Err(Mismatch::Value(allowed.into()))
}

/// Returns a problem if others than the owner may use a file that holds a secret. `others` are the
/// mode bits to check.
fn shared(file: &Path, others: u32, secret: &str) -> Option<String> {
    let mode = std::fs::metadata(file).map(|m| m.permissions().mode());
    let file = file.display();
    let is_shared = mode.is_ok_and(|mode| mode & others != 0);
    is_shared.then(|| format!("{file} holds {secret} and others can read it: chmod 600 {file}"))
}

fn warn(problem: Option<String>) {
    if let Some(problem) = problem {
        tracing::warn!("{problem}");
    }
}

/// Returns the default state directory: `/var/lib/ncmesh` for root, otherwise
/// `$XDG_STATE_HOME/ncmesh` or `~/.local/state/ncmesh`.
#[must_use]
pub fn default_state_dir() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/ncmesh");
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    // The specification of base directories ignores relative ones.
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let base = state.filter(|state| state.is_absolute()).or_else(home);
    base.unwrap_or_else(|| PathBuf::from("/var/lib")).join("ncmesh")
}

#[cfg(test)]
mod tests;
