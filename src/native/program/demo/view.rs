//! What is seen of the demo: how the layers fill, and what each relay is at.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::sync::watch;

use super::super::Failure;
use super::super::numbers::{count, counted};
use super::super::sync_run::print;
use crate::engine::{Phase, RelayReport};
use crate::native::admin::DaemonReport;
use crate::protocol::RelayUrl;
use crate::sample::world::{Claim, Form, World};

/// How often the view is drawn.
pub(super) const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The layers of what is wanted, as the daemon finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Announcements,
    Repositories,
    Roots,
}

impl Layer {
    const ALL: [Self; 3] = [Self::Announcements, Self::Repositories, Self::Roots];

    fn of(forms: &[Form]) -> Self {
        let is_of_repository = |form: &Form| matches!(form, Form::LowerA | Form::UpperA | Form::QuoteOfRepository);
        if forms.contains(&Form::Kind) {
            Self::Announcements
        } else if forms.iter().any(is_of_repository) {
            Self::Repositories
        } else {
            Self::Roots
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Announcements => "announcements and states",
            Self::Repositories => "what tags repositories",
            Self::Roots => "what tags issues, patches, pull requests",
        }
    }
}

/// The view: bars on a terminal; elsewhere only what is said.
pub(super) struct View {
    terminal: Option<MultiProgress>,
    reports: watch::Receiver<Arc<DaemonReport>>,
    layers: BTreeMap<Layer, ProgressBar>,
    relays: BTreeMap<RelayUrl, ProgressBar>,
    bootstrap: RelayUrl,
}

impl View {
    pub(super) fn new(world: &World, reports: watch::Receiver<Arc<DaemonReport>>) -> Self {
        let terminal = std::io::stderr().is_terminal().then(MultiProgress::new);
        let add = |layer: Layer| {
            let bar = match &terminal {
                Some(terminal) => terminal.add(ProgressBar::new(0)),
                None => ProgressBar::hidden(),
            };
            (layer, bar.with_style(layer_style()).with_prefix(layer.title()))
        };
        let layers = Layer::ALL.into_iter().map(add).collect();
        Self { terminal, reports, layers, relays: BTreeMap::new(), bootstrap: world.relays()[0].clone() }
    }

    /// Draws what is held, and says which relays have been found.
    pub(super) fn show(&mut self, world: &World, held: &BTreeSet<[u8; 32]>) -> Result<(), Failure> {
        let mut counts: BTreeMap<Layer, (u64, u64)> = BTreeMap::new();
        for event in world.events() {
            if let Claim::Wanted(forms) = event.claim {
                let (here, all) = counts.entry(Layer::of(forms)).or_default();
                *here += u64::from(held.contains(event.event.id.as_bytes()));
                *all += 1;
            }
        }
        for (layer, (here, all)) in counts {
            if let Some(bar) = self.layers.get(&layer) {
                bar.set_length(all);
                bar.set_position(here);
            }
        }
        let report = self.reports.borrow_and_update().clone();
        for relay in &report.relays {
            self.show_relay(relay)?;
        }
        Ok(())
    }

    fn show_relay(&mut self, report: &RelayReport) -> Result<(), Failure> {
        if !self.relays.contains_key(&report.relay) {
            let bar = match &self.terminal {
                Some(terminal) => terminal.add(ProgressBar::new_spinner()),
                None => ProgressBar::hidden(),
            };
            self.relays
                .insert(report.relay.clone(), bar.with_style(relay_style()).with_prefix(report.relay.to_string()));
            if report.relay != self.bootstrap {
                self.say(&format!("Found {}, which an announcement names.\n", report.relay))?;
            }
        }
        if let Some(bar) = self.relays.get(&report.relay) {
            bar.set_message(told(report));
            bar.tick();
        }
        Ok(())
    }

    /// Waits until the daemon has noticed that a relay is gone.
    pub(super) async fn wait_until_lost(&mut self, relay: &RelayUrl, wait_max: Duration) -> Result<(), Failure> {
        let is_lost = |report: &DaemonReport| {
            let mut reports = report.relays.iter();
            reports.any(|report| report.relay == *relay && matches!(report.phase, Phase::Waiting | Phase::Connecting))
        };
        self.wait_until(is_lost, &format!("the loss of {relay} was not noticed"), wait_max).await.map(drop)
    }

    /// Waits until so many relays are followed live.
    pub(super) async fn wait_until_live(
        &mut self,
        relays: usize,
        wait_max: Duration,
    ) -> Result<Arc<DaemonReport>, Failure> {
        let are_live = |report: &DaemonReport| {
            report.relays.iter().filter(|relay| relay.phase == Phase::Live && relay.complete).count() == relays
        };
        self.wait_until(are_live, "not all relays are followed again", wait_max).await
    }

    async fn wait_until(
        &mut self,
        is_so: impl Fn(&DaemonReport) -> bool,
        fault: &str,
        wait_max: Duration,
    ) -> Result<Arc<DaemonReport>, Failure> {
        let waiting = self.reports.wait_for(|report| is_so(report));
        match tokio::time::timeout(wait_max, waiting).await {
            Ok(Ok(report)) => Ok(report.clone()),
            Ok(Err(_)) | Err(_) => Err(Failure::new(fault)),
        }
    }

    /// Says something, above the bars.
    pub(super) fn say(&self, text: &str) -> Result<(), Failure> {
        match &self.terminal {
            Some(terminal) => terminal.suspend(|| print(text)),
            None => print(text),
        }
    }

    /// Leaves the layers as they are, and takes the relays off the screen.
    pub(super) fn finish(self) {
        self.layers.into_values().for_each(|bar| bar.abandon());
        self.relays.into_values().for_each(|bar| bar.finish_and_clear());
    }
}

/// What a relay is at, in a few words.
fn told(report: &RelayReport) -> String {
    let phase = match report.phase {
        Phase::Waiting => "away".to_owned(),
        Phase::Connecting => "connecting".to_owned(),
        Phase::Syncing => format!("fetching · {}", counted(report.counters.pages + report.counters.rounds, "request")),
        Phase::Cooldown => "resting".to_owned(),
        Phase::Live | Phase::Polling => "live".to_owned(),
        Phase::Done => "done".to_owned(),
    };
    format!("{phase} · {} events", count(report.counters.received))
}

fn layer_style() -> ProgressStyle {
    style(ProgressStyle::with_template("  {prefix:40} {bar:32} {pos:>5} of {len}"))
}

fn relay_style() -> ProgressStyle {
    style(ProgressStyle::with_template("  {spinner} {prefix:38} {wide_msg}"))
}

fn style(parsed: Result<ProgressStyle, indicatif::style::TemplateError>) -> ProgressStyle {
    parsed.unwrap_or_else(|_| ProgressStyle::default_bar())
}
