//! Files that are not as they were written: each is named, and kept.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use relaysync::native::control::{Control, FileFault};

use crate::support::{config, fault, file, kind, open, rule, spec};

/// Everything that can be told, in words that can be compared.
fn told(control: &Control) -> String {
    let identity = control.identity().get();
    let peers: Vec<_> =
        control.peers().list().into_iter().map(|info| (info.spec, info.previous_auth_pubkeys)).collect();
    format!("{identity:?} {peers:?} {:?} {:?}", control.access().list(), control.access().protected())
}

/// A control plane that was told something of each sort.
async fn begun(folder: &Path) -> String {
    let control = open(folder).await;
    control.identity().ensure().await.unwrap();
    control.identity().rotate().await.unwrap();
    control.peers().put(spec("a", 1)).await.unwrap();
    control.peers().put(spec("a", 2)).await.unwrap();
    control.access().grant(rule(2, 5000)).await.unwrap();
    control.access().protect(kind(5000)).await.unwrap();
    told(&control)
}

/// Puts `bytes` in place of a file. What opens is as it was told; what does not names the file, and keeps it.
async fn try_damaged(folder: &Path, path: &Path, bytes: &[u8], before: &str) -> Option<FileFault> {
    fs::write(path, bytes).unwrap();
    let result = Control::open(config(folder)).await;
    assert_eq!(fs::read(path).unwrap(), bytes, "it is kept");
    match result {
        Ok(control) => {
            assert_eq!(told(&control), before);
            None
        }
        Err(relaysync::native::control::ControlError::File(error)) => {
            assert_eq!(error.path, path, "{error}");
            Some(error.fault)
        }
        Err(error) => panic!("{error}"),
    }
}

async fn truncated_and_flipped(ending: &str, stride: usize) {
    let folder = tempfile::tempdir().unwrap();
    let before = begun(folder.path()).await;
    let path = file(folder.path(), ending);
    let whole = fs::read(&path).unwrap();
    let mut named = 0;
    for length in 0..whole.len() {
        named += usize::from(try_damaged(folder.path(), &path, &whole[..length], &before).await.is_some());
    }
    assert!(named + 1 >= whole.len(), "all but the last end of line matters: {named} of {}", whole.len());
    for (place, bit) in (0..whole.len() * 8).step_by(stride).map(|n| (n / 8, n % 8)) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << bit;
        try_damaged(folder.path(), &path, &bytes, &before).await;
    }
    assert_eq!(try_damaged(folder.path(), &path, &whole, &before).await.map(drop), None);
}

#[tokio::test]
async fn a_damaged_state_is_named_wherever_it_is_damaged() {
    // Every byte is hit, by each of its bits somewhere.
    truncated_and_flipped(".control.json", 5).await;
}

#[tokio::test]
async fn a_damaged_key_is_named_wherever_it_is_damaged() {
    truncated_and_flipped(".identity-key", 1).await;
}

#[tokio::test]
async fn the_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path()).await;
    let path = file(folder.path(), ".control.json");
    let whole = fs::read_to_string(&path).unwrap();
    let damaged = whole.replacen("\"peers\": [", "\"peers\": !", 1);
    let line = 1 + damaged[..damaged.find('!').unwrap()].matches('\n').count();
    fs::write(&path, &damaged).unwrap();
    let told = Control::open(config(folder.path())).await.unwrap_err().to_string();
    assert!(
        told.contains(&format!("{}:{line}:", path.display())) && told.contains("restore it from a backup"),
        "{told}"
    );
    let changed = whole.replace("\"kinds\": [", "\"kinds\": [1,");
    fs::write(&path, &changed).unwrap();
    let (_, what) = fault(config(folder.path())).await;
    assert!(matches!(what, FileFault::Corrupt { line: Some(3), ref detail } if detail.contains("sha256")), "{what:?}");
    let misspelt = whole.replace("\"rules\"", "\"roles\"");
    fs::write(&path, &misspelt).unwrap();
    let at = 1 + misspelt[..misspelt.find("\"roles\"").unwrap()].matches('\n').count();
    let (_, what) = fault(config(folder.path())).await;
    assert!(matches!(what, FileFault::Corrupt { line: Some(line), .. } if line == at), "{what:?}, not {at}");
}

#[tokio::test]
async fn a_later_format_is_not_taken_for_damage() {
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path()).await;
    let path = file(folder.path(), ".control.json");
    fs::write(&path, r#"{"format": 7, "something": "else"}"#).unwrap();
    let told = Control::open(config(folder.path())).await.unwrap_err().to_string();
    assert!(told.contains("format 7") && told.contains("update this program"), "{told}");
}

#[tokio::test]
async fn damaged_marks_are_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let before = begun(folder.path()).await;
    let path = file(folder.path(), ".marks.json");
    for text in ["", "{", "no marks", "{\"format\":1,\"sha256\":\"00\",\"contents\":{}}"] {
        fs::write(&path, text).unwrap();
        let control = open(folder.path()).await;
        assert_eq!(told(&control), before);
        assert!(!path.exists());
    }
    let aside = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(aside.filter(|name| name.starts_with("events.db.marks.json.corrupt-")).count(), 4, "none is lost");
}

#[tokio::test]
async fn a_state_that_is_missing_is_not_begun_anew_unless_the_others_are_moved_away_too() {
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path()).await;
    let ours = open(folder.path()).await.identity().get().unwrap().pubkey;
    fs::remove_file(file(folder.path(), ".control.json")).unwrap();
    let key_file = file(folder.path(), ".identity-key");
    let error = Control::open(config(folder.path())).await.unwrap_err().to_string();
    assert!(error.contains(".control.json is missing") && error.contains(".identity-key"), "{error}");
    assert!(!file(folder.path(), ".control.json").exists(), "nothing is put in its place");

    let key = fs::read_to_string(&key_file).unwrap();
    fs::remove_file(&key_file).unwrap();
    let _ = fs::remove_file(file(folder.path(), ".marks.json"));
    let control = open(folder.path()).await;
    assert!(control.peers().list().is_empty());
    assert_eq!(control.identity().import(&key).await.unwrap().pubkey, ours);
}

#[tokio::test]
async fn what_cannot_be_written_is_not_acknowledged_and_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let before = begun(folder.path()).await;
    let control = open(folder.path()).await;
    // Whatever the user may do: in place of the file that is written first, there is a folder.
    let unfinished = file(folder.path(), ".control.json.unfinished");
    fs::create_dir(&unfinished).unwrap();
    let error = control.peers().put(spec("b", 1)).await.unwrap_err().to_string();
    assert!(error.contains(".control.json"), "{error}");
    control.access().revoke(rule(2, 5000)).await.unwrap_err();
    control.identity().rotate().await.unwrap_err();
    assert_eq!(told(&control), before);
    fs::remove_dir(&unfinished).unwrap();
    control.peers().put(spec("b", 1)).await.unwrap();
    control.identity().rotate().await.unwrap();
    let after = told(&control);
    drop(control);
    assert_eq!(told(&open(folder.path()).await), after);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path()).await;
    let path = file(folder.path(), ".control.json");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_err() {
        let (named, what) = fault(config(folder.path())).await;
        assert!(named == path && matches!(what, FileFault::Io(_)), "{what:?}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let (named, what) = fault(config(folder.path())).await;
    assert!(named == path && matches!(what, FileFault::Io(_)), "{what:?}");
}
