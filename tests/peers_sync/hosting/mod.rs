//! Proactive sync (GRASP-02) of a world of git hosting with relays of all makes: who knows one of them finds the others,
//! and holds exactly what is wanted, whatever the relays do meanwhile.

mod clock;
mod daemon;
mod hosts;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use relaysync::discover::DiscoverConfig;
use relaysync::engine::Phase;
use relaysync::protocol::hex;
use relaysync::sample::world::{Claim, Form, World, WorldConfig, WorldEvent};
use relaysync::serve::ServeConfig;

use self::daemon::Daemon;
use self::hosts::{Host, Make};
use crate::peers::PeerConfig;

/// For all of a large world, on a machine that is busy.
const ALL_MAX: Duration = Duration::from_secs(120);
/// For a few events more.
const FEW_MAX: Duration = Duration::from_secs(30);
const QUICK_ABSENCE: Duration = Duration::from_secs(2);
const LONG_ABSENCE: Duration = Duration::from_secs(20 * 60);

fn own(config: ServeConfig) -> Make {
    Make::Own(Box::new(config))
}

/// Four of our own and four of other people's; one of each sort has its ways.
fn eight_makes() -> Vec<Make> {
    let without_negentropy = ServeConfig { negentropy: false, page_events_max: 300, ..ServeConfig::default() };
    let small_pages = PeerConfig { page_cap: Some(200), ..PeerConfig::default() };
    vec![
        Make::RustNostr(PeerConfig::default()),
        own(ServeConfig::default()),
        Make::Npm(PeerConfig::default()),
        own(without_negentropy),
        Make::RustNostr(small_pages),
        own(ServeConfig::default()),
        Make::Npm(PeerConfig { page_cap: Some(500), ..PeerConfig::default() }),
        own(ServeConfig::default()),
    ]
}

/// Starts the relays, empty, and makes their world.
async fn start(makes: Vec<Make>, config: impl FnOnce(WorldConfig) -> WorldConfig) -> (Vec<Host>, World) {
    let mut hosts = Vec::new();
    for make in makes {
        hosts.push(Host::start(make).await);
    }
    let urls = hosts.iter().map(|host| host.url().clone()).collect();
    let deletions_at = (0..hosts.len()).filter(|relay| hosts[*relay].keeps_deletions()).collect();
    let world = World::new(config(WorldConfig { deletions_at, ..WorldConfig::small(urls) }));
    for (relay, host) in hosts.iter_mut().enumerate() {
        host.put(&world.held_by(relay).cloned().collect::<Vec<_>>()).await;
    }
    (hosts, world)
}

fn discovery(world: &World) -> DiscoverConfig {
    DiscoverConfig {
        service_urls: vec![world.config().service_url.clone()],
        bootstrap: vec![world.relays()[0].clone()],
        private_relays: true,
        batch_window: Duration::from_millis(500),
        ..DiscoverConfig::default()
    }
}

/// Puts what was posted where it is to be.
async fn deliver(hosts: &mut [Host], posted: &[WorldEvent]) {
    for (relay, host) in hosts.iter_mut().enumerate() {
        let here = posted.iter().filter(|posted| posted.relays.contains(&relay)).map(|posted| posted.event.clone());
        host.put(&here.collect::<Vec<_>>()).await;
    }
}

fn unix_secs() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later than 1970").as_secs()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_what_is_wanted_is_found_from_one_relay_and_after_absences() {
    let (mut hosts, mut world) =
        start(eight_makes(), |small| WorldConfig { repositories: 200, events: 20_000, ..small }).await;
    let begun = Instant::now();
    let daemon = Daemon::start(discovery(&world)).await;
    daemon.wait_for_exactly(&world, ALL_MAX).await;
    println!("{} of {} events from 8 relays in {:?}", world.wanted().len(), world.events().len(), begun.elapsed());
    let held = daemon.held().await;
    for form in Form::ALL {
        let reached = world.reached_only_by(form);
        assert!(reached.len() >= 100 && reached.is_subset(&held), "{form}: {}", reached.len());
    }
    let known: BTreeSet<_> = daemon.reports().into_iter().map(|report| report.relay).collect();
    assert_eq!(known, world.relays().iter().cloned().collect(), "all relays, and no others");
    daemon
        .wait_for("all relays to be live", FEW_MAX, |reports| {
            reports.iter().all(|report| matches!(report.phase, Phase::Live | Phase::Polling))
        })
        .await;

    // One of each make is away for a moment; one of ours and one of other people's for long, and gets what has an old
    // date meanwhile.
    for (absence, relays, age_secs) in [(QUICK_ABSENCE, vec![1, 4, 6], 0), (LONG_ABSENCE, vec![3, 4], 86_400)] {
        let begun = Instant::now();
        for relay in &relays {
            hosts[*relay].stop().await;
            daemon.wait_until_lost(&world.relays()[*relay]).await;
        }
        for relay in &relays {
            let posted = world.post(*relay, 40, unix_secs() - age_secs);
            deliver(&mut hosts, &posted).await;
        }
        daemon.let_pass(absence).await;
        for relay in &relays {
            hosts[*relay].start_again().await;
        }
        daemon.wait_for_exactly(&world, FEW_MAX).await;
        println!("{absence:?} away: complete again {:?} after the loss", begun.elapsed());
    }

    // A new repository at relays that are followed, and what is posted while all are there.
    let mut posted = world.found(&[5, 7], unix_secs());
    posted.extend(world.post(7, 20, unix_secs()));
    hosts[5].publish(&posted[..2]).await;
    hosts[7].publish(&posted[2..]).await;
    daemon.wait_for_exactly(&world, FEW_MAX).await;
    daemon.stop().await;
}

/// What can be found though the last relay gives nothing: no other relay is found by it, but some issues, patches and
/// pull requests are nowhere else, and then so is the way to what refers to them.
fn found_without_last(world: &World) -> BTreeSet<[u8; 32]> {
    let last = world.relays().len() - 1;
    let there = |held: &&WorldEvent| held.relays.iter().any(|relay| *relay != last);
    let roots: BTreeSet<String> = world
        .events()
        .iter()
        .filter(|held| !matches!(held.claim, Claim::Unwanted(_)) && there(held))
        .filter(|held| matches!(held.event.kind_number(), 1617 | 1618 | 1621))
        .map(|held| held.event.id.to_hex())
        .collect();
    let names_root = |held: &WorldEvent| {
        let mut values = held.event.tags.iter().filter_map(|tag| tag.as_slice().get(1));
        values.any(|value| roots.contains(value))
    };
    let is_found = |held: &&WorldEvent| match held.claim {
        Claim::Wanted(forms) => {
            let by_root = |form: &Form| matches!(form, Form::LowerE | Form::UpperE | Form::QuoteOfRoot);
            !forms.iter().all(by_root) || names_root(held)
        }
        _ => false,
    };
    world.events().iter().filter(there).filter(is_found).map(|held| held.event.id.to_bytes()).collect()
}

/// How long it takes until all is held that the last relay is not needed for, and whether that relay has limited us.
async fn time_without_last(requests_per_minute_max: u64) -> (Duration, bool) {
    let limited = ServeConfig { requests_per_minute_max, ..ServeConfig::default() };
    let makes = vec![
        Make::RustNostr(PeerConfig::default()),
        own(ServeConfig::default()),
        Make::Npm(PeerConfig::default()),
        own(limited),
    ];
    let (_hosts, world) = start(makes, |small| WorldConfig { repositories: 60, events: 4_000, ..small }).await;
    let expected = found_without_last(&world);
    assert!(expected.len() > 2_000, "{}", expected.len());
    let begun = Instant::now();
    let daemon = Daemon::start(discovery(&world)).await;
    daemon.wait_for_held(&expected, ALL_MAX).await;
    let took = begun.elapsed();
    let reports = daemon.reports();
    let last = reports.iter().find(|report| report.relay == world.relays()[3]).expect("it is known by now");
    let limits = last.counters.rate_limits;
    daemon.stop().await;
    (took, limits > 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_limits_how_much_it_is_asked_delays_no_other() {
    let (usual, limited) = time_without_last(ServeConfig::default().requests_per_minute_max).await;
    assert!(!limited, "it takes what it is asked");
    let (took, limited) = time_without_last(2).await;
    println!("all others are done in {took:?} beside a relay that limits, and in {usual:?} otherwise");
    assert!(limited, "two requests a minute are too few");
    assert!(took < usual * 3 / 2 + Duration::from_secs(2), "{took:?} beside a relay that limits, {usual:?} otherwise");
}

/// For messages: the ids in hexadecimal, a few of them.
fn some_of<'a>(ids: impl Iterator<Item = &'a [u8; 32]>) -> Vec<String> {
    ids.take(5).map(|id| hex::encode(id)).collect()
}
