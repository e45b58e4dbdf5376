//! What `/metrics` says of a daemon that has something to do.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use relaysync::native::admin::GRAFANA_DASHBOARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::events::note;
use crate::world::{Client, PATIENCE, SERVICE, announcement, embedded, holds, of_repository, patiently, relay, start};

/// What the events, clients and deliveries of this test leave no choice about.
const MOVING: &[&str] = &[
    "bound_hits_total{bound=\"clients_max\"}",
    "bound_hits_total{bound=\"events_per_minute_max\"}",
    "bound_hits_total{bound=\"page_events_max\"}",
    "build_info{",
    "connection_attempts_total{",
    "discovery_batches_total ",
    "discovery_interests_total{change=\"added\"}",
    "discovery_judged_total{result=\"wanted\"}",
    "discovery_judged_total{result=\"unrelated\"}",
    "discovery_relays ",
    "discovery_repositories ",
    "discovery_roots ",
    "engine_subscriptions ",
    "events_synced_total ",
    "feed_events_total ",
    "feed_lags_total ",
    "hook_deliveries_total{result=\"taken\"}",
    "hook_events_total ",
    "ready ",
    "relay_bytes_total{",
    "relay_connected{",
    "relay_events_total{",
    "relay_requests_total{",
    "relay_status{",
    "relays_complete ",
    "relays_connected_total ",
    "relays_tracked_total ",
    "service_clients_connected ",
    "service_clients_total ",
    "service_clients_turned_away_total ",
    "service_events_refused_total{reason=\"rate_limited\"}",
    "service_events_refused_total{reason=\"unwanted\"}",
    "service_events_total{result=\"received\"}",
    "service_events_total{result=\"refused\"}",
    "service_events_total{result=\"stored\"}",
    "service_frames_total ",
    "service_pages_capped_total ",
    "service_rate_limited_total{what=\"event\"}",
    "service_requests_total{kind=\"req\",result=\"accepted\"}",
    "start_time_seconds ",
    "store_commits_total{result=\"success\"}",
    "store_file_bytes ",
];

async fn page(admin: SocketAddr) -> String {
    let mut socket = TcpStream::connect(admin).await.unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut page = String::new();
    patiently(socket.read_to_string(&mut page)).await.unwrap();
    page
}

/// Do samples that begin like this come to more than nothing?
fn moves(page: &str, beginning: &str) -> bool {
    let samples = page.lines().filter_map(|line| line.strip_prefix("relaysync_")?.strip_prefix(beginning));
    samples.filter_map(|rest| rest.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>() > 0
}

/// The names of metrics in the dashboard's queries.
fn dashboard() -> BTreeSet<String> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let name = |text: &str| text.split(|char| !is_name(char)).next().unwrap_or_default().to_owned();
    GRAFANA_DASHBOARD.split("${prefix}_").skip(1).map(name).filter(|name| !name.is_empty()).collect()
}

#[tokio::test]
async fn every_metric_of_the_dashboard_is_there_and_what_must_move_does() {
    let directory = tempfile::tempdir().unwrap();
    let other = relay(&[]).await;
    let ours = announcement(1, "ours", &[SERVICE, other.url().as_str()]);
    let far = relay(std::slice::from_ref(&ours)).await;
    let mut settings = embedded(directory.path(), &[far.url()]);
    settings.http.listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    settings.hook.command = vec!["true".to_owned()];
    settings.daemon.feed.events_max = 0;
    settings.relay.service.clients_max = 8;
    settings.relay.service.serve.events_per_minute_max = 2;
    settings.relay.service.serve.page_events_max = 1;
    let daemon = start(settings).await;
    let url = daemon.relay_url().unwrap();
    holds(&url, &[&ours]).await;

    let (mut first, mut second) = (Client::connect(&url).await, Client::connect(&url).await);
    let issue = of_repository(&ours, "ours", 1621).sign();
    assert_eq!(first.publish(&issue).await, "");
    assert!(first.publish(&note(1).sign()).await.starts_with("blocked: "));
    assert!(first.publish(&note(2).sign()).await.starts_with("rate-limited: "));
    assert_eq!(second.subscribe().await.len(), 1, "of two");
    let mut crowd = Vec::new();
    for _ in 0..12 {
        crowd.push(TcpStream::connect((url.host(), url.port())).await.unwrap());
    }

    let admin = daemon.admin_addr().unwrap();
    let still = |page: &str| MOVING.iter().copied().filter(|name| !moves(page, name)).collect::<Vec<_>>();
    let mut read = page(admin).await;
    let moved = tokio::time::timeout(PATIENCE, async {
        while !still(&read).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            read = page(admin).await;
        }
    });
    if moved.await.is_err() {
        panic!("{:?} stay at nothing", still(&read));
    }
    let names = dashboard();
    assert!(names.len() > 30, "{names:?}");
    let lacking = names.iter().filter(|name| !read.contains(&format!("# TYPE relaysync_{name} ")));
    assert_eq!(lacking.collect::<Vec<_>>(), [""; 0]);
    assert!(daemon.shutdown().await);
}
