//! rust-nostr's relay. Prints its URL when ready, then obeys lines on standard input, answering each with one line:
//! `dump FILE` writes all events, `load FILE` adds events. It ends when standard input does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nostr_database::NostrDatabase;
use nostr_relay_builder::builder::{RateLimit, RelayBuilder, RelayBuilderNip42};
use nostr_relay_builder::local::LocalRelay;
use relaysync_test_peers::{Fault, dump, load, memory_database};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

const USAGE: &str = "rust-nostr-relay [--port N] [--page-cap EVENTS] [--auth] [--subscriptions-max N] \
                     [--events-per-minute-max N] [--load FILE]";

struct Options {
    port: u16,
    page_cap: Option<usize>,
    auth: bool,
    subscriptions_max: usize,
    events_per_minute_max: u32,
    load: Option<PathBuf>,
}

impl Options {
    fn parse() -> Result<Self, Fault> {
        use lexopt::prelude::*;

        let mut options = Self {
            port: 0,
            page_cap: None,
            auth: false,
            subscriptions_max: 500,
            // The library's own default, 60, is for people who type.
            events_per_minute_max: u32::MAX,
            load: None,
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("port") => options.port = parser.value()?.parse()?,
                Long("page-cap") => options.page_cap = Some(parser.value()?.parse()?),
                Long("auth") => options.auth = true,
                Long("subscriptions-max") => options.subscriptions_max = parser.value()?.parse()?,
                Long("events-per-minute-max") => options.events_per_minute_max = parser.value()?.parse()?,
                Long("load") => options.load = Some(parser.value()?.into()),
                _ => return Err(format!("{}\nusage: {USAGE}", argument.unexpected()).into()),
            }
        }
        Ok(options)
    }

    fn builder(&self, database: Arc<dyn NostrDatabase>) -> RelayBuilder {
        let mut builder = RelayBuilder::default()
            .database(database)
            .rate_limit(RateLimit { max_reqs: self.subscriptions_max, notes_per_minute: self.events_per_minute_max });
        if self.port != 0 {
            builder = builder.port(self.port);
        }
        if let Some(page_cap) = self.page_cap {
            builder = builder.max_filter_limit(page_cap).default_filter_limit(page_cap);
        }
        if self.auth {
            builder = builder.nip42(RelayBuilderNip42::default());
        }
        builder
    }
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let options = Options::parse()?;
    let database = memory_database();
    if let Some(path) = &options.load {
        load(&*database, path).await?;
    }
    let relay = LocalRelay::new(options.builder(database.clone()));
    relay.run().await?;
    println!("{}", relay.url().await);

    let mut commands = BufReader::new(stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        match command.split_once(' ') {
            Some(("dump", path)) => println!("dumped {}", dump(&*database, Path::new(path)).await?),
            Some(("load", path)) => println!("loaded {}", load(&*database, Path::new(path)).await?),
            _ => return Err(format!("unknown command {command:?}").into()),
        }
    }
    Ok(())
}
