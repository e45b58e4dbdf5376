//! Large samples: signed on all cores, and kept in a file from one benchmark to the next.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use super::{Draft, Drafts, Sample, SampleConfig, Signer};
use crate::protocol::{Event, hex};

/// Drafts handed to the threads at a time: bounds what is held beside the result.
const ROUND_EVENTS_MAX: usize = 16_384;

/// The same events as [`Sample`] gives, signed on all cores.
pub fn generate(config: &SampleConfig) -> Vec<Event> {
    let Sample { drafts, signer } = Sample::new(config);
    let mut events = Vec::with_capacity(config.events);
    for_each_round(drafts, &signer, |round| events.extend(round));
    events
}

/// A file in `folder` with the sample's events, one a line as JSON. Generates it unless it is there; both the
/// configuration and the first events decide its name, so that it is made anew when the generator has changed.
///
/// # Errors
/// The folder or file cannot be written.
pub fn cached_jsonl(config: &SampleConfig, folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(format!("sample-{}.jsonl", fingerprint(config)));
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    // Under a name of its own until it is whole: another process may be at the same.
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    write_jsonl(config, &unfinished)?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

fn write_jsonl(config: &SampleConfig, path: &Path) -> io::Result<()> {
    let Sample { drafts, signer } = Sample::new(config);
    let mut file = BufWriter::new(File::create(path)?);
    let mut written = Ok(());
    for_each_round(drafts, &signer, |round| {
        for event in round {
            if written.is_ok() {
                written = file.write_all(event.json()).and_then(|()| file.write_all(b"\n"));
            }
        }
    });
    written?;
    file.flush()
}

fn fingerprint(config: &SampleConfig) -> String {
    let mut bytes = format!("{config:?}").into_bytes();
    for event in Sample::new(config).take(64) {
        bytes.extend_from_slice(event.json());
    }
    hex::encode(&bitcoin_hashes::sha256::Hash::hash(&bytes).to_byte_array()[..8])
}

fn for_each_round(mut drafts: Drafts, signer: &Signer, mut each: impl FnMut(Vec<Event>)) {
    loop {
        let round: Vec<Draft> = drafts.by_ref().take(ROUND_EVENTS_MAX).collect();
        if round.is_empty() {
            return;
        }
        each(sign_on_all_cores(round, signer));
    }
}

/// The drafts' events, in their order.
pub(super) fn sign_on_all_cores(mut drafts: Vec<Draft>, signer: &Signer) -> Vec<Event> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = drafts.len().div_ceil(threads);
    let mut shares = Vec::with_capacity(threads);
    while !drafts.is_empty() {
        let rest = drafts.split_off(share.min(drafts.len()));
        shares.push(std::mem::replace(&mut drafts, rest));
    }
    thread::scope(|scope| {
        let signing: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || share.into_iter().map(|draft| signer.sign(draft)).collect::<Vec<_>>()))
            .collect();
        signing.into_iter().flat_map(|thread| thread.join().expect("signing does not panic")).collect()
    })
}
