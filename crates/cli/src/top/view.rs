//! The screen of `ncmesh top`.

use super::{Tab, Top};
use ncmesh_console::schema::{Key, Meta, Stage, Unit};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, Tabs};

/// Lines for what happened, at the bottom.
const EVENT_LINES: u16 = 5;

/// Width of the bars of airtime, characters.
const BAR: usize = 30;

const HELP: &str = "\
Tab, Right  next page
Left        previous page
Up, Down    scroll (also k, j)
?           this help
q, Ctrl-C   end

Rates are means of the last three seconds. IN and OUT are the
shares of frames that arrive from and at a neighbour. NEW is the
share of its data frames that brought something new. STATE of a
flow has the values that `ncmesh status` shows, but for its
counters. On the page Airtime, - is control, = data and # coded
frames.";

/// Draws the whole screen.
pub(crate) fn draw(top: &mut Top, frame: &mut Frame<'_>) {
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(EVENT_LINES + 1),
        Constraint::Length(1),
    ]);

    let [title, tabs, body, events, keys] = areas.areas(frame.area());
    frame.render_widget(Line::from(top.title()), title);
    let selected = Tab::ALL.iter().position(|tab| *tab == top.tab);
    frame.render_widget(Tabs::new(Tab::ALL.map(Tab::name)).select(selected), tabs);

    let (head, widths, rows) = top.page();

    // The heading takes a line.
    let visible = usize::from(body.height.saturating_sub(1));
    top.scrolled = top.scrolled.min(rows.len().saturating_sub(visible));
    if rows.is_empty() {
        frame.render_widget(Paragraph::new(top.nothing()), body);
    } else {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let head = Row::new(head.into_iter().map(Cell::from)).style(bold);
        let shown = rows.into_iter().skip(top.scrolled).take(visible).map(Row::new);
        frame.render_widget(Table::new(shown, widths).header(head), body);
    }

    // The latest events are at the bottom, where lines are added on any terminal.
    let latest = top.events.iter().rev().take(usize::from(EVENT_LINES)).rev();
    let lines: Vec<Line<'_>> = latest.map(|text| Line::from(text.as_str())).collect();
    let block = Block::new().borders(ratatui::widgets::Borders::TOP).title("Events");
    frame.render_widget(Paragraph::new(lines).block(block), events);
    frame.render_widget(Line::from("Tab page  Up/Down scroll  ? help  q end"), keys);

    // Help covers the rest, so it is drawn last.
    if top.shows_help {
        draw_help(frame);
    }
}

/// Draws the help over the middle of the screen.
fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    // On a small terminal the help is cut off, not drawn beyond the screen.
    let height = (HELP.lines().count() as u16 + 2).min(area.height);
    let width = 66.min(area.width);
    let at = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title("Help")), at);
}

/// Heading, widths and rows of a page.
type Page = (Vec<&'static str>, Vec<Constraint>, Vec<Vec<String>>);

impl Top {
    /// Returns the first line.
    fn title(&self) -> String {
        // Nothing is known until the first meta, which names the nodes.
        let Some(meta) = &self.meta else { return "ncmesh top".into() };
        let observer = meta.observer.map(|id| format!("  {} (id {id})", self.name(id)));
        let time = self.states.back().map_or(0.0, |key| key.time_s);
        let up = self.states.back().map_or(0, |key| key.nodes.up.iter().filter(|up| **up).count());
        format!("ncmesh {}{}  {up} nodes  {time:.0} s", meta.version, observer.unwrap_or_default())
    }

    /// Returns the text of a page without rows.
    fn nothing(&self) -> &'static str {
        match (self.states.is_empty(), self.tab) {
            (true, _) => "waiting for the first state",
            (_, Tab::Peers) => "no other node is known; `ncmesh status` shows what may be wrong",
            (_, Tab::Flows) => "no files, flows or streams",
            (_, Tab::Airtime) => "no node",
        }
    }

    fn page(&self) -> Page {
        let (Some(meta), Some(key)) = (&self.meta, self.states.back()) else {
            return (Vec::new(), Vec::new(), Vec::new());
        };

        match self.tab {
            Tab::Peers => self.peers(meta, key),
            Tab::Flows => self.traffic(meta, key),
            Tab::Airtime => self.air(meta),
        }
    }

    /// Returns a row for each node but the one that observes, if one does.
    fn peers(&self, meta: &Meta, key: &Key) -> Page {
        let head = vec!["NAME", "ID", "STATE", "OUT", "IN", "FRAMES/S", "NEW"];
        let widths = [20, 6, 6, 6, 6, 9, 6].map(Constraint::Length).to_vec();
        let me = meta.observer;
        let link = |from: Option<u16>, to: Option<u16>| {
            meta.links.iter().position(|link| Some(link.from) == from && Some(link.to) == to)
        };

        let delivery = |place: Option<usize>| {
            let share = place.and_then(|place| key.links.delivery.get(place));
            share.copied().flatten().map_or_else(dash, |share| Unit::Share.show(share))
        };

        let others = meta.nodes.iter().enumerate().filter(|(_, node)| Some(node.id) != me);
        let rows = others.map(|(place, node)| {
            let into = link(Some(node.id), me);
            let out = link(me, Some(node.id));
            let heard = into.and_then(|place| self.rate(|key| *key.links.heard.get(place)?));
            let useful = into.and_then(|place| {
                // Both counters must be known: a daemon knows only the frames that it heard itself.
                let new = key.links.innovative.get(place)?.as_ref()?.0 as f64;
                let all = new + key.links.redundant.get(place)?.as_ref()?.0 as f64;
                (all > 0.0).then(|| Unit::Share.show(new / all))
            });

            let is_up = key.nodes.up.get(place).copied().unwrap_or(false);
            vec![
                self.name(node.id),
                node.id.to_string(),
                if is_up { "up" } else { "down" }.into(),
                delivery(out),
                delivery(into),
                heard.map_or_else(dash, |rate| format!("{rate:.0}")),
                useful.unwrap_or_else(dash),
            ]
        });

        (head, widths, rows.collect())
    }

    /// Returns a row for each flow, stream, and receiver of a file, the latest first.
    fn traffic(&self, meta: &Meta, key: &Key) -> Page {
        let head = vec!["WHAT", "FROM", "TO", "BY", "RATE", "STATE"];
        let mut widths = [15, 10, 10, 9, 11].map(Constraint::Length).to_vec();
        widths.push(Constraint::Min(12));
        let mut rows = Vec::new();
        for (place, (flow, state)) in meta.flows.iter().zip(&key.flows).enumerate() {
            let rate = self.rate(|key| key.flows.get(place)?.bits);

            // Counters are shown as rates.
            let levels = state.numbers().filter(|(field, _)| !field.is_counter());
            let levels: Vec<String> = levels.map(|(field, value)| field.show(value)).collect();
            rows.push(vec![
                "flow".into(),
                self.name(flow.from),
                self.name(flow.to),
                state.scheme.clone(),
                rate.map_or_else(dash, kbit_s),
                levels.join(", "),
            ]);
        }

        for (place, (stream, state)) in meta.streams.iter().zip(&key.streams).enumerate().rev() {
            for (at, receiver) in state.receivers.iter().enumerate() {
                let bits = |key: &Key| {
                    let receiver = key.streams.get(place)?.receivers.get(at)?;
                    Some(receiver.bits.iter().map(|bits| bits.0).sum::<u64>().into())
                };

                rows.push(vec![
                    format!("stream {}", stream.group),
                    self.name(stream.from),
                    self.name(receiver.node),
                    stream.scheme.clone(),
                    self.rate(bits).map_or_else(dash, kbit_s),
                    if receiver.problem.is_empty() { "ok" } else { &receiver.problem }.into(),
                ]);
            }
        }

        for (place, (file, state)) in meta.transfers.iter().zip(&key.transfers).enumerate().rev() {
            for (at, receiver) in state.receivers.iter().enumerate() {
                let bytes = |key: &Key| Some(key.transfers.get(place)?.receivers.get(at)?.bytes);

                // A receiver that is done has no rate.
                let is_open = matches!(receiver.stage, Stage::Open);
                let rate = self.rate(bytes).filter(|_| is_open);
                let done = receiver.bytes.0 as f64 / file.bytes.0.max(1) as f64;
                rows.push(vec![
                    file.name.clone(),
                    self.name(file.from),
                    self.name(receiver.node),
                    file.scheme.clone(),
                    rate.map_or_else(dash, |bytes| kbit_s(bytes * 8.0)),
                    if is_open { Unit::Share.show(done) } else { receiver.stage.words().into() },
                ]);
            }
        }

        (head, widths, rows)
    }

    /// Returns a row for each node whose time on the air is known: with a daemon, its own.
    fn air(&self, meta: &Meta) -> Page {
        let head = vec!["NAME", "CONTROL", "DATA", "CODED", "SHARE OF THE TIME"];
        let mut widths = [20, 8, 8, 8].map(Constraint::Length).to_vec();
        widths.push(Constraint::Length(BAR as u16 + 2));
        let rows = meta.nodes.iter().enumerate().filter_map(|(place, node)| {
            let shares = self.airtime(place)?;
            let [control, data, coded] = shares.map(|share| format!("{:.1} %", 100.0 * share));
            Some(vec![self.name(node.id), control, data, coded, bar(shares)])
        });

        (head, widths, rows.collect())
    }
}

/// Returns a bar of shares, a character for each kind.
fn bar(shares: [f64; 3]) -> String {
    let mut bar = String::new();
    for (share, c) in shares.into_iter().zip(['-', '=', '#']) {
        let length = (share * BAR as f64).round() as usize;
        bar.extend(std::iter::repeat_n(c, length.min(BAR - bar.len())));
    }
    format!("[{bar:BAR$}]")
}

fn kbit_s(bits_s: f64) -> String {
    format!("{:.0} kbit/s", bits_s / 1e3)
}

fn dash() -> String {
    "-".into()
}
