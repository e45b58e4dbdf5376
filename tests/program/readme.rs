//! The examples of the README: what they call is called, and what they show is compared.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::call::run;
use super::run::Daemon;

const README: &str = include_str!("../../README.md");

/// The blocks of this kind, in order.
fn blocks(kind: &str) -> Vec<&'static str> {
    let opening = format!("```{kind}\n");
    README.split(&*opening).skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect()
}

/// Each command of a block, and what it shows.
fn calls(block: &str) -> Vec<(String, Vec<String>)> {
    let mut calls: Vec<(String, Vec<String>)> = Vec::new();
    for line in block.replace("\\\n", " ").lines() {
        match (line.strip_prefix("$ "), calls.last_mut()) {
            (Some(command), _) => calls.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) => shown.push(line.to_owned()),
            (None, None) => panic!("a block begins with a command: {line}"),
        }
    }
    calls
}

/// Is it what the README shows? There, … stands for whatever differs from time to time.
fn is_like(line: &str, shown: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return line == shown };
    let Some(rest) = line.strip_prefix(before) else { return false };
    let places = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    places.into_iter().any(|at| is_like(&rest[at..], after))
}

/// The words of a command, as a shell takes them apart: by spaces, but not within single quotes.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// Asks the daemon that listens at `socket`, as a program of any language could.
fn post(socket: &Path, json: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/nostr+json+rpc";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{json}", json.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

#[test]
fn the_examples_of_peers_show_what_they_say() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut daemon = None;
    let all: Vec<_> = blocks("console").into_iter().flat_map(calls).collect();
    assert!(all.len() >= 10, "{all:#?}");
    for (command, shown) in all {
        let words = words(&command.replace("127.0.0.1:7777", "127.0.0.1:0"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(words[0], "relaysync", "{command}");
        if words[1] == "run" {
            daemon.insert(Daemon::start_with(directory, &words[2..])).says("commands are taken at ");
            continue;
        }
        let call = run(directory, &words[1..], "");
        let lines = call.lines();
        let is_right = lines.len() == shown.len() && lines.iter().zip(&shown).all(|(line, shown)| is_like(line, shown));
        assert!(is_right, "{command}\n{call:#?}\n{shown:#?}");
    }
    let said = blocks("json");
    assert!(said.len() >= 2, "{said:?}");
    for pair in said.chunks(2) {
        let answer = post(&directory.join("relaysync.db.socket"), pair[0].trim());
        assert!(is_like(&answer, pair[1].trim()), "{}\n{answer}", pair[0]);
    }
    let (status, log) = daemon.expect("one of them runs it").end();
    assert_eq!(status, Some(0), "{log:#?}");
}
