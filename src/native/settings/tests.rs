use std::ffi::OsString;
use std::time::Duration;

use proptest::prelude::*;

use super::{Flag, Loaded, Mistake, Origin, Settings, Sources, load, sections, template};
use crate::discover::Accept;
use crate::protocol::RelayUrl;

const FILE: &str = "relaysync.toml";
const KEY: &str = "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4";

fn sources(text: &str) -> Sources {
    Sources { file: Some((FILE.to_owned(), text.to_owned())), ..Sources::default() }
}

fn variables(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[track_caller]
fn loaded(sources: &Sources) -> Loaded {
    load(sources).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn mistakes(sources: &Sources) -> Vec<Mistake> {
    load(sources).err().map_or_else(Vec::new, |mistakes| mistakes.mistakes)
}

/// The template with every setting in force.
fn uncommented() -> String {
    let template = template();
    let lines = template.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if setting.starts_with(|first: char| first.is_ascii_lowercase()) => setting,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_written_file_changes_nothing() {
    let Loaded { settings, origins } = loaded(&sources(&template()));
    assert!(settings.differences(&Settings::default()).is_empty() && origins.is_empty());
    assert!(loaded(&Sources::default()).settings.differences(&Settings::default()).is_empty());
}

#[test]
fn every_line_of_the_written_file_is_right_when_it_is_put_in_force() {
    // The example of relay.urls is in a list that is empty by default.
    let text = uncommented().replace("\nurls = []", "\nurls = [\"wss://relay.example\"]");
    let names = sections::names();
    // Examples of all that is not set by default contradict each other in a few places.
    let mistakes = mistakes(&sources(&text));
    assert!(mistakes.iter().all(|mistake| mistake.reason.contains("leave one out")), "{mistakes:#?}");
    let settings = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase())).count();
    assert_eq!(settings, names.len());

    let text = uncommented();
    let is_default = |part: &&str| !part.replace("\n#", "").contains("Not set by default");
    let defaults: Vec<&str> = text.split("\n\n").filter(is_default).collect();
    let defaults = loaded(&sources(&defaults.join("\n\n")));
    assert_eq!(defaults.settings.differences(&Settings::default()), [""; 0]);
    assert!(defaults.origins.len() > names.len() - 20);
}

#[test]
fn names_and_variables_are_unique() {
    let names = sections::names();
    let variables: std::collections::BTreeSet<String> = names.iter().map(super::keys::Name::variable).collect();
    assert_eq!(variables.len(), names.len());
}

#[test]
fn what_is_printed_as_effective_reads_as_the_same() {
    let text = format!(
        "[relay]\nlisten = \"127.0.0.1:0\"\nurls = [\"wss://Git.Example/\"]\ndescription = 'a \"quoted\" \\ one'\n\
         [discovery]\naccept = \"allowed\"\nallow_authors = [\"{KEY}\"]\nallow_repositories = [\"30617:{KEY}:a\"]\n\
         [sync]\nbackoff_max = \"1h 30m\"\n[sync_limits]\nframe_bytes_max = \"8 MiB\"\n"
    );
    let first = loaded(&sources(&text));
    let printed = first.effective();
    assert!(printed.contains("backoff_max = \"90m\"  # line 10\n"), "{printed}");
    assert!(printed.contains("backoff_base = \"5s\"  # default\n"), "{printed}");
    let second = loaded(&sources(&printed));
    assert_eq!(second.settings.differences(&first.settings), [""; 0]);
    assert_eq!(second.settings.differences(&Settings::default()).len(), first.origins.len());
}

/// Text, line, setting, words of the reason.
type Case = (&'static str, usize, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    ("[sync]\nbackof_max = \"1h\"", 2, "sync.backof_max", &["no such setting", "did you mean backoff_max?"]),
    ("[sync]\npage_events = 100", 2, "sync.page_events", &["belongs into [sync_limits]"]),
    ("[sync]\nbootstraps = []", 2, "sync.bootstraps", &["did you mean bootstrap of [discovery]?"]),
    ("[sync]\nxyzzy = 1", 2, "sync.xyzzy", &["no such setting", "config init"]),
    ("[synk]\nbackoff_max = 5", 1, "", &["no section [synk]", "did you mean [sync]?"]),
    ("[colours]", 1, "", &["no section [colours]", "there are access, control, daemon, discovery,"]),
    ("\nlisten = \"127.0.0.1:1\"", 2, "listen", &["belongs into a section", "[relay]"]),
    ("store = \"x\"", 1, "store", &["this is a section"]),
    ("[sync]\nbackoff_max = \"1 fortnight\"", 2, "sync.backoff_max", &["\"1 fortnight\"", "\"5s\""]),
    ("[sync]\nbackoff_max = true", 2, "sync.backoff_max", &["true does not fit", "a duration"]),
    ("[sync]\nstall = 0", 2, "sync.stall", &["longer than nothing"]),
    ("[sync]\nstall = -5", 2, "sync.stall", &["the number -5", "a duration"]),
    ("[sync]\nstall = 1.5", 2, "sync.stall", &["the number 1.5"]),
    ("[sync]\nstall = 1979-05-27", 2, "sync.stall", &["the date"]),
    ("[sync]\noverlap = \"1500ms\"", 2, "sync.overlap", &["whole seconds"]),
    ("[sync]\nstall = \"200000d\"", 2, "sync.stall", &["hundred years"]),
    ("[sync_limits]\npage_events = \"many\"", 2, "sync_limits.page_events", &["\"many\"", "a whole number"]),
    ("[sync_limits]\npage_events = 0", 2, "sync_limits.page_events", &["at least 1"]),
    ("[sync_limits]\nids_attempts_max = 256", 2, "sync_limits.ids_attempts_max", &["at most 255"]),
    ("[sync_limits]\nframe_bytes_max = \"4 MiBs\"", 2, "sync_limits.frame_bytes_max", &["a size", "\"4 MiB\""]),
    ("[relay_limits]\nnegentropy_frame_bytes_max = 100", 2, "relay_limits.negentropy_frame_bytes_max", &["4 KiB"]),
    ("[relay]\nlisten = \"localhost\"", 2, "relay.listen", &["\"localhost\" is no address", "\"127.0.0.1:7777\""]),
    ("[relay]\nurls = \"wss://a.example\"", 2, "relay.urls", &["a list", "[\"wss://relay.example\"]"]),
    ("[relay]\nbeside_filter = '{\"kind\":[1]}'", 2, "relay.beside_filter", &["unknown field \"kind\""]),
    ("[relay]\nbeside_filter = '{\"limit\":1}'", 2, "relay.beside_filter", &["limit"]),
    ("[relay]\nauth_required = \"yes\"", 2, "relay.auth_required", &["\"yes\"", "true or false"]),
    ("[relay]\npubkey = \"npub1x\"", 2, "relay.pubkey", &["\"npub1x\" is no public key", "npub1…"]),
    ("[discovery]\nbootstrap = [\n\"https://a.example\",\n]", 3, "discovery.bootstrap", &["must be ws or wss"]),
    ("[discovery]\nbootstrap = [1]", 2, "discovery.bootstrap", &["the number 1", "a relay URL"]),
    ("[discovery]\naccept = \"some\"", 2, "discovery.accept", &["\"some\"", "\"listed\", \"allowed\" or \"all\""]),
    ("[discovery]\naccept = \"allowed\"", 2, "discovery.accept", &["nobody is allowed"]),
    ("[discovery]\nbootstrap = [\"wss://a.example\"]", 2, "discovery.bootstrap", &["relay.urls"]),
    ("[discovery]\nblock_authors = [\"me\"]", 2, "discovery.block_authors", &["\"me\" is no public key"]),
    ("[discovery]\nblock_repositories = [\"1:2:3\"]", 2, "discovery.block_repositories", &["is no repository"]),
    ("[hook]\nurl = \"ftp://a\"", 2, "hook.url", &["\"ftp://a\"", "http or https"]),
    ("[hook]\nkinds = [70000]", 2, "hook.kinds", &["70000", "0 to 65535"]),
    ("[hook]\ncommand = [\"a\"]\nurl = \"http://a\"", 3, "hook.url", &["leave one out"]),
    ("[hook]\ncommand = [\"\"]", 2, "hook.command", &["empty"]),
    ("[http]\nmetrics_prefix = \"1-2\"", 2, "http.metrics_prefix", &["letters, digits"]),
    ("[log]\nfilter = \"wran\"", 2, "log.filter", &["\"wran\" is no level", "\"info\""]),
    ("[log]\nfilter = \"\té[sync]\"", 2, "log.filter", &["is no level"]),
    ("[log]\nformat = \"xml\"", 2, "log.format", &["\"text\" or \"json\""]),
    ("[store]\npath = \"\"", 2, "store.path", &["empty"]),
    ("[sync]\nfull_pass_max = \"1h\"", 2, "sync.full_pass_max", &["must not be longer than sync.full_pass_max"]),
    ("[sync_limits]\npage_events = 9000", 2, "sync_limits.page_events", &["page_events_raised"]),
    (
        "[relay]\nurls = [\"wss://a.example\"]\nlisten = \"127.0.0.1:80\"\nbeside = \"ws://127.0.0.1:81\"",
        4,
        "relay.beside",
        &["embedded", "leave one out"],
    ),
    ("[relay]\nbeside_filter = '{}'", 2, "relay.beside_filter", &["without relay.beside"]),
    (
        "[relay]\nurls = [\"wss://a.example\"]\nlisten = \"127.0.0.1:80\"\n[http]\nlisten = \"127.0.0.1:80\"",
        5,
        "http.listen",
        &["another port"],
    ),
    (
        "[relay]\nurls = [\"wss://b.example\"]\n[discovery]\nbootstrap = [\"wss://a.example\"]\n\
         block_relays = [\"wss://A.example/\"]",
        5,
        "discovery.block_relays",
        &["wss://a.example"],
    ),
    (
        "[relay]\nurls = [\"wss://b.example\"]\n[discovery]\nbootstrap = [\"wss://a.example/x\"]\n\
         block_relays = [\"ws://a.example\"]",
        5,
        "discovery.block_relays",
        &["wss://a.example/x", "discovery.bootstrap"],
    ),
    (
        "[relay]\nurls = [\"wss://b.example\"]\nbeside = \"ws://a.example/x\"\n\
         [discovery]\nblock_relays = [\"wss://a.example\"]",
        5,
        "discovery.block_relays",
        &["ws://a.example/x", "relay.beside"],
    ),
    (
        "[relay]\nurls = [\"wss://a.example\"]\n[discovery]\nbootstrap = [\"ws://A.example/b\"]",
        4,
        "discovery.bootstrap",
        &["ws://a.example/b", "our own service"],
    ),
    (
        "[sync]\nprogress_interval = \"15s\"\n[http]\nlisten = \"127.0.0.1:1\"",
        2,
        "sync.progress_interval",
        &["http.report_age_max must be longer", "/healthz"],
    ),
    (
        "[http]\nlisten = \"127.0.0.1:1\"\nengine_silence_max = \"1s\"",
        3,
        "http.engine_silence_max",
        &["http.engine_silence_max must be longer"],
    ),
    ("[sync]\nstall = \"5s\"\nstall = \"6s\"", 3, "", &["duplicate"]),
    ("[sync]\nstall = ", 2, "", &["not TOML"]),
    ("[sync]\nstall = \"5s", 2, "", &["not TOML"]),
    ("[[sync]]\nstall = 5", 1, "sync", &["section"]),
    ("[sync.stall]\na = 5", 1, "sync.stall", &["a table", "a duration"]),
];

#[test]
fn each_mistake_names_line_and_setting_and_what_to_write() {
    for (text, line, setting, words) in CASES {
        let mistakes = mistakes(&sources(text));
        assert_eq!(mistakes.len(), 1, "{text}: {mistakes:#?}");
        let Mistake { origin, setting: found, reason } = &mistakes[0];
        assert_eq!((origin, found.as_str()), (&Origin::Line(*line), *setting), "{text}: {mistakes:#?}");
        for word in *words {
            assert!(reason.contains(word), "{text}: {word}: {reason}");
        }
    }
}

#[test]
fn all_mistakes_are_told_at_once_and_in_order() {
    let text = "[sync]\nstal = 5\nbackoff_max = \"x\"\n[discovery]\nbootstrap = [\"a\", \"b\"]\nrelays_max = = 5\n";
    let mut sources = sources(text);
    sources.environment = variables(&[("RELAYSYNC_SYNC_STALL", "y"), ("RELAYSYNC_SYNC_STAL", "5s"), ("PATH", "/bin")]);
    sources.flags = vec![Flag::new("--set sync.probe", "sync.probe", "5s"), Flag::new("--set x", "x", "5s")];
    let text = load(&sources).unwrap_err().to_string();
    let begins = [
        "relaysync.toml:2: sync.stal: there is no such setting; did you mean stall?",
        "relaysync.toml:3: sync.backoff_max: \"x\" does not fit here; write a duration",
        "relaysync.toml:5: discovery.bootstrap: \"a\" is no relay URL",
        "relaysync.toml:5: discovery.bootstrap: \"b\" is no relay URL",
        "relaysync.toml:6: not TOML",
        "RELAYSYNC_SYNC_STAL: there is no such setting; did you mean RELAYSYNC_SYNC_STALL?",
        "RELAYSYNC_SYNC_STALL: sync.stall: \"y\" does not fit",
        "--set sync.probe: sync.probe: there is no such setting; did you mean probe_after?",
        "--set x: x: write SECTION.KEY=VALUE",
    ];
    assert_eq!(text.lines().count(), begins.len(), "{text}");
    for (line, begin) in text.lines().zip(begins) {
        assert!(line.starts_with(begin), "{line}\nis not\n{begin}");
    }
}

#[test]
fn flags_are_over_the_environment_and_that_over_the_file() {
    let mut sources = sources("[sync]\nstall = \"1s\"\nprobe_after = \"1s\"\ndead_after = \"1s\"\n");
    sources.environment = variables(&[
        ("RELAYSYNC_SYNC_STALL", "2s"),
        ("RELAYSYNC_SYNC_PROBE_AFTER", "2"),
        ("RELAYSYNC_DISCOVERY_BOOTSTRAP", "wss://a.example, wss://b.example"),
        ("RELAYSYNC_DISCOVERY_ACCEPT", "all"),
        ("RELAYSYNC_RELAY_AUTH_REQUIRED", "true"),
        ("RELAYSYNC_RELAY_NAME", ""),
        ("RELAYSYNC_SYNC_LIMITS_PAGE_EVENTS", "300"),
        ("RELAYSYNC_HOOK_COMMAND", "[\"git-fetch\", \"a, b\"]"),
        ("RELAYSYNC_CACHE", "/tmp"),
        ("RELAYSYNC_BENCH_POOL", "1"),
    ]);
    sources.flags = vec![
        Flag::new("--set", "sync.stall", "3s"),
        Flag::list("--bootstrap", "discovery.bootstrap", ["wss://c.example".to_owned()]),
    ];
    let Loaded { settings, origins } = loaded(&sources);
    let secs = [settings.sync.stall, settings.sync.probe_after, settings.sync.dead_after].map(|at| at.as_secs());
    assert_eq!(secs, [3, 2, 1]);
    assert_eq!(settings.discovery.config.bootstrap, [RelayUrl::parse("wss://c.example").unwrap()]);
    assert_eq!((settings.discovery.config.accept, settings.relay.service.serve.auth_required), (Accept::All, true));
    assert_eq!(settings.relay.service.serve.name, None);
    assert_eq!(settings.sync.page_events, 300);
    assert_eq!(settings.hook.command, ["git-fetch", "a, b"]);
    assert_eq!(origins["sync.stall"], Origin::Flag("--set".to_owned()));
    assert_eq!(origins["sync.probe_after"], Origin::Environment("RELAYSYNC_SYNC_PROBE_AFTER".to_owned()));
    assert_eq!(origins["sync.dead_after"], Origin::Line(4));
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_a_mistake_only_if_it_is_ours() {
    use std::os::unix::ffi::OsStringExt;
    let broken = OsString::from_vec(vec![0xff]);
    let environment = vec![("RELAYSYNC_STORE_PATH".into(), broken.clone()), ("OTHER".into(), broken.clone())];
    let mistakes = mistakes(&Sources { environment, ..Sources::default() });
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    assert!(mistakes[0].reason.contains("UTF-8"));
}

#[test]
fn what_the_engine_bounds_is_bounded_for_sockets_too() {
    let settings = loaded(&sources("[sync]\nconnect_timeout = \"7s\"\n[sync_limits]\nframe_bytes_max = 5000")).settings;
    let sockets = settings.sockets();
    assert_eq!((sockets.connect_timeout, sockets.frame_bytes_max), (Duration::from_secs(7), 5000));
}

/// Text that looks a little like a configuration.
fn scrawl() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "[sync]", "[relay]", "[[hook]]", "[discovery.x]", "\n", "\r\n", "=", "stall", "urls", "kinds", "command", " ",
            "\"5s\"", "'", "\"", "\"\"\"", "[", "]", "{", "}", ",", "0x_f", "1e9", "-1", "99999999999999999999", "true",
            "1979-05-27T07:32:00Z", ".", "#", "\\u0000", "é", "\u{feff}", "inf", "\"18446744073709551615d\"", "beside_filter",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in scrawl(), value in scrawl()) {
        let mut sources = sources(&text);
        sources.flags = sections::names().iter().map(|name| Flag::new("--set", name.to_string(), &value)).collect();
        if let Err(mistakes) = load(&sources) {
            prop_assert!(!mistakes.mistakes.is_empty() && !mistakes.to_string().is_empty());
        }
    }

    #[test]
    fn every_line_of_a_mistake_is_in_the_file(text in scrawl()) {
        for mistake in mistakes(&sources(&text)) {
            if let Origin::Line(line) = mistake.origin {
                prop_assert!((1..=text.split('\n').count()).contains(&line));
            }
        }
    }
}
