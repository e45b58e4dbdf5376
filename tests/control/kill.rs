//! Every change that was acknowledged is there, whenever the process was killed, and nothing by half.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use relaysync::native::control::{Control, Secret};

use crate::support::{kind, open, rule, spec};

const CHILD: &str = "RELAYSYNC_TEST_CONTROL_TO_KILL";
const KILLS: u32 = 50;

/// What is told at step `n`; each undoes what an earlier one has done.
async fn step(control: &Control, n: u32) {
    let number = (n % 251) as u8;
    match n % 7 {
        0 => drop(control.identity().rotate().await.unwrap()),
        1 => drop(control.peers().put(spec(&format!("p{}", n % 5), number)).await.unwrap()),
        2 => drop(control.peers().remove(&format!("p{}", n / 7 % 5)).await.unwrap()),
        3 => drop(control.access().grant(rule(number, 5000)).await.unwrap()),
        4 => drop(control.access().revoke(rule(number.wrapping_sub(1), 5000)).await.unwrap()),
        5 => drop(control.access().protect(kind(n as u16)).await.unwrap()),
        _ => drop(control.access().unprotect(kind((n - 1) as u16)).await.unwrap()),
    }
}

/// All that is told, in one line.
fn told(control: &Control) -> String {
    let identity = control.identity().get().map(|identity| (identity.pubkey, identity.previous));
    let peers: Vec<_> =
        control.peers().list().into_iter().map(|info| (info.spec, info.previous_auth_pubkeys)).collect();
    format!("{identity:?} {peers:?} {:?} {:?}", control.access().list(), control.access().protected())
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Not a test of its own: what the child process of the test below does. Anywhere else it has nothing to do.
#[test]
fn child_that_tells_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    block_on(async {
        let control = open(Path::new(&folder)).await;
        control.identity().ensure().await.unwrap();
        let begun = std::fs::read_to_string(Path::new(&folder).join("begun")).map_or(0, |text| text.parse().unwrap());
        println!("\ntold {begun} {}", told(&control));
        for n in begun + 1.. {
            // So that the next child goes on from here, wherever this one ends.
            let [unfinished, begun] = ["begun.new", "begun"].map(|name| Path::new(&folder).join(name));
            std::fs::write(&unfinished, n.to_string()).unwrap();
            std::fs::rename(unfinished, begun).unwrap();
            println!("begin {n}");
            step(&control, n).await;
            println!("told {n} {}", told(&control));
            std::io::stdout().flush().unwrap();
        }
    });
}

#[test]
fn what_was_acknowledged_is_there_whenever_the_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut steps = 0;
    for round in 0..KILLS {
        let (acknowledged, begun, told_lines) = run_and_kill(folder.path(), round);
        block_on(async {
            let control = open(folder.path()).await;
            let found = told(&control);
            if found != acknowledged && !acknowledged.is_empty() {
                // Then it is what was under way, as a whole: telling it again changes nothing.
                assert!(begun.is_some(), "round {round}: {found}\nis not\n{acknowledged}");
                if begun.is_some_and(|n| n % 7 != 0) {
                    step(&control, begun.unwrap()).await;
                    assert_eq!(told(&control), found, "round {round}");
                }
            }
            // The key is that of the identity, and no half of another is left.
            let kept = std::fs::read_to_string(folder.path().join("events.db.identity-key"));
            let identity = control.identity().get();
            assert_eq!(
                kept.ok().map(|text| Secret::parse(&text).unwrap().pubkey()),
                identity.map(|identity| identity.pubkey)
            );
            assert!(!folder.path().join("events.db.identity-key.next").exists());
        });
        steps += told_lines;
    }
    assert!(steps > KILLS as usize, "the children told {steps} times");
}

/// Lets a child tell until it has reported some steps, and kills it a little later. Gives what it had acknowledged last,
/// the step that it had begun after that, and how often it has acknowledged something.
fn run_and_kill(folder: &Path, round: u32) -> (String, Option<u32>, usize) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::child_that_tells_until_it_is_killed", "--nocapture"]);
    command.env(CHILD, folder).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut seen = Vec::new();
    let mut reports = 0;
    while reports < round % 5 {
        let Some(line) = lines.next() else { break };
        reports += u32::from(line.starts_with("told "));
        seen.push(line);
    }
    // Not for luck: a kill is to come at a moment anywhere inside what is going on.
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(Duration::from_micros(u64::from(round * 7919 % 30_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    seen.extend(lines);

    let acknowledged = seen.iter().rposition(|line| line.starts_with("told "));
    let begun = seen[acknowledged.map_or(0, |at| at + 1)..].iter().find_map(|line| line.strip_prefix("begin "));
    let words = acknowledged.and_then(|at| seen[at].splitn(3, ' ').nth(2)).unwrap_or_default();
    let told_lines = seen.iter().filter(|line| line.starts_with("told ")).count();
    (words.to_owned(), begun.map(|n| n.parse().unwrap()), told_lines)
}
