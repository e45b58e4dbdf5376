//! `relaysync status`.

mod text;

pub(super) use text::{printable, words};

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;

use super::{Exit, Failure, config, interrupted, lines};
use crate::native::SocketConfig;
use crate::native::admin::DaemonReport;
use crate::native::http::{HttpClient, HttpUrl};

/// The largest report taken, in bytes: some thousand relays with all their gaps.
const REPORT_BYTES_MAX: usize = 64 << 20;
/// A daemon that does not answer within this time is not there.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a daemon publishes a report.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// Puts a terminal's cursor into the upper left corner, and clears what is behind it.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Show what a running daemon is at: what is complete, syncing, waiting, and what is missing for which reasons.
///
/// Ends with status 0 if everything is complete, 3 if something is missing or under way, 1 if no daemon answers.
#[derive(Debug, Clone, Args)]
pub(super) struct StatusArguments {
    /// Where the daemon answers, as http://127.0.0.1:9464; by default what the configuration says (http.listen).
    #[arg(long, value_name = "URL", value_parser = HttpUrl::parse, conflicts_with = "config")]
    url: Option<HttpUrl>,
    /// The daemon's configuration; by default RELAYSYNC_CONFIG or relaysync.toml.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Print the whole report as one line of JSON.
    #[arg(long)]
    json: bool,
    /// Show it again every two seconds, until Ctrl-C.
    #[arg(long)]
    watch: bool,
}

/// What a daemon has answered: as it came, and read.
struct Answer {
    json: Bytes,
    report: DaemonReport,
}

pub(super) async fn run(arguments: StatusArguments) -> Result<Exit, Failure> {
    let client = HttpClient::new(SocketConfig::default()).map_err(Failure::new)?;
    let url = match arguments.url {
        Some(url) => url,
        None => configured(arguments.config.as_deref())?,
    };
    let url = url.join("status");
    let answer = ask(&client, &url).await?;
    let exit = exit(&answer.report);
    if !arguments.watch {
        lines::write(shown(&answer, arguments.json)).await?;
        return Ok(exit);
    }
    tokio::select! {
        exit = watch(&client, &url, arguments.json, answer) => exit,
        signal = interrupted() => signal.map(|_| exit),
    }
}

/// Where the daemon with this configuration answers.
fn configured(path: Option<&Path>) -> Result<HttpUrl, Failure> {
    let (file, loaded) = config::settings(path, Vec::new())?;
    let Some(listen) = loaded.settings.http.listen else {
        let file = file.map_or_else(|| "the configuration".to_owned(), |path| path.display().to_string());
        return Err(Failure::usage(format!(
            "{file} has no http.listen, at which a daemon answers: set it, or give --url"
        )));
    };
    url_of(listen).map_err(Failure::new)
}

/// Whoever listens on all addresses listens on this machine's own, too.
fn url_of(listen: SocketAddr) -> Result<HttpUrl, String> {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    HttpUrl::parse(&format!("http://{}", SocketAddr::new(ip, listen.port())))
}

/// Shows one answer after the other, until nobody reads any more. A daemon that stops answering may be starting again.
async fn watch(client: &HttpClient, url: &HttpUrl, json: bool, first: Answer) -> Result<Exit, Failure> {
    let clears = !json && std::io::stdout().is_terminal();
    let mut answer = Ok(first);
    let mut last = Exit::Partial;
    loop {
        let mut out = if clears { CLEAR.as_bytes().to_vec() } else { Vec::new() };
        match &answer {
            Ok(answer) => {
                last = exit(&answer.report);
                out.extend(shown(answer, json));
                if !json && !clears {
                    out.push(b'\n');
                }
            }
            Err(failure) => eprintln!("{failure}"),
        }
        if !lines::write(out).await? {
            return Ok(last);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
        answer = ask(client, url).await;
    }
}

async fn ask(client: &HttpClient, url: &HttpUrl) -> Result<Answer, Failure> {
    let answer = client.get(url, REPORT_BYTES_MAX, ANSWER_TIME_MAX).await.map_err(|error| {
        Failure::new(format!("no daemon answers at {url} ({error}): is `relaysync run` running, with this address?"))
    })?;
    if !answer.status.is_success() || !answer.is_whole {
        return Err(Failure::new(format!("what answers at {url} is no daemon of relaysync: {}", answer.status)));
    }
    match serde_json::from_slice(&answer.body) {
        Ok(report) => Ok(Answer { json: answer.body, report }),
        Err(error) => Err(Failure::new(format!(
            "what answers at {url} is no daemon of relaysync, or one of another version: {error}"
        ))),
    }
}

fn shown(answer: &Answer, json: bool) -> Vec<u8> {
    if json { [&answer.json[..], b"\n"].concat() } else { text::of(&answer.report).into_bytes() }
}

fn exit(report: &DaemonReport) -> Exit {
    if report.is_complete() { Exit::Complete } else { Exit::Partial }
}

#[cfg(test)]
mod tests {
    use super::url_of;

    #[test]
    fn a_listening_address_says_where_to_ask() {
        for (listen, url) in [
            ("127.0.0.1:9464", "http://127.0.0.1:9464/"),
            ("0.0.0.0:80", "http://127.0.0.1/"),
            ("[::]:9464", "http://[::1]:9464/"),
            ("192.0.2.7:9464", "http://192.0.2.7:9464/"),
        ] {
            assert_eq!(url_of(listen.parse().unwrap()).unwrap().to_string(), url);
        }
    }
}
