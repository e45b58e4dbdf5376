//! Who we are: configured, else kept, else made once.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use relaysync::native::control::{Control, ControlConfig, ControlError, FileFault, IdentitySource, Secret, Whose};

use crate::support::{config, fault, file, open, rule};

const NSEC: &str = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
const HEX: &str = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn with_mode(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn configured(folder: &Path, key_file: &Path) -> ControlConfig {
    ControlConfig { key_file: Some(key_file.to_owned()), ..config(folder) }
}

#[tokio::test]
async fn it_is_made_once_and_kept_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    assert_eq!(control.identity().get(), None, "opening alone makes nobody");
    let made = control.identity().ensure().await.unwrap();
    assert_eq!((made.source, made.previous.len()), (IdentitySource::Generated, 0));
    for ending in [".identity-key", ".control.json", ".control.lock"] {
        assert_eq!(mode(&file(folder.path(), ending)), 0o600, "{ending}");
    }
    drop(control);
    let control = open(folder.path()).await;
    assert_eq!(control.identity().get(), Some(made.clone()));
    assert_eq!(control.identity().ensure().await.unwrap(), made);
}

#[tokio::test]
async fn a_key_that_is_imported_or_made_anew_replaces_the_old_one_which_stays_known() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    let first = control.identity().ensure().await.unwrap().pubkey;
    let imported = control.identity().import(NSEC).await.unwrap();
    assert_eq!((imported.source, &imported.previous[..]), (IdentitySource::Imported, &[first][..]));
    assert_eq!(control.identity().import(HEX).await.unwrap(), imported, "it is the same");
    let rotated = control.identity().rotate().await.unwrap();
    assert_eq!((rotated.source, &rotated.previous[..]), (IdentitySource::Generated, &[imported.pubkey, first][..]));
    let again = control.identity().import(NSEC).await.unwrap();
    assert_eq!(again.previous, [rotated.pubkey, first], "whoever is back is no former one");
    let kept = fs::read_to_string(file(folder.path(), ".identity-key")).unwrap();
    assert_eq!(kept.trim(), NSEC);
    drop(control);
    assert_eq!(open(folder.path()).await.identity().get(), Some(again));
}

#[tokio::test]
async fn what_is_no_key_changes_nothing_and_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    let made = control.identity().ensure().await.unwrap();
    for text in ["", "nsec1abc", &HEX[1..], &format!("{HEX}ff")] {
        let error = control.identity().import(text).await.unwrap_err().to_string();
        assert!(error.contains("no secret key") && (text.is_empty() || !error.contains(text)), "{error}");
    }
    assert_eq!(control.identity().get(), Some(made));
}

#[tokio::test]
async fn a_configured_key_goes_first_and_the_kept_one_comes_back_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let kept = open(folder.path()).await.identity().ensure().await.unwrap();
    let key_file = folder.path().join("key");
    with_mode(&key_file, NSEC, 0o640);
    let ours = Secret::parse(NSEC).unwrap().pubkey();

    let control = Control::open(configured(folder.path(), &key_file)).await.unwrap();
    let now = control.identity().get().unwrap();
    assert_eq!((now.pubkey, now.source, &now.previous[..]), (ours, IdentitySource::Configured, &[kept.pubkey][..]));
    for refused in [control.identity().rotate().await, control.identity().import(HEX).await] {
        assert!(
            matches!(&refused, Err(ControlError::Refused(why)) if why.contains("identity.key_file")),
            "{refused:?}"
        );
    }
    drop(control);

    let back = open(folder.path()).await.identity().get().unwrap();
    assert_eq!((back.pubkey, back.source, back.created_at_secs), (kept.pubkey, kept.source, kept.created_at_secs));
    assert_eq!(back.previous, [ours]);
}

#[tokio::test]
async fn a_configured_key_is_known_as_ours_after_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    with_mode(&key_file, HEX, 0o600);
    drop(Control::open(configured(folder.path(), &key_file)).await.unwrap());
    assert!(!file(folder.path(), ".identity-key").exists(), "it is not copied");
    let control = open(folder.path()).await;
    assert_eq!(control.identity().get(), None);
    let made = control.identity().ensure().await.unwrap();
    assert_eq!(made.previous, [Secret::parse(NSEC).unwrap().pubkey()]);
}

#[tokio::test]
async fn a_key_that_others_can_read_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    for (mode, is_refused) in [(0o644, true), (0o604, true), (0o660, true), (0o640, false), (0o400, false)] {
        with_mode(&key_file, NSEC, 0o600);
        fs::set_permissions(&key_file, Permissions::from_mode(mode)).unwrap();
        let opened = Control::open(configured(folder.path(), &key_file)).await;
        assert_eq!(opened.is_err(), is_refused, "{mode:o}");
        if let Err(error) = opened {
            let told = error.to_string();
            assert!(told.contains(&format!("chmod 600 {}", key_file.display())), "{told}");
        }
        fs::set_permissions(&key_file, Permissions::from_mode(0o600)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).await.identity().ensure().await.unwrap();
    let kept = file(folder.path(), ".identity-key");
    fs::set_permissions(&kept, Permissions::from_mode(0o640)).unwrap();
    let (path, what) = fault(config(folder.path())).await;
    assert!(path == kept && matches!(what, FileFault::Readable { .. }), "{what:?}");
}

#[tokio::test]
async fn a_key_that_is_missing_or_another_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let made = open(folder.path()).await.identity().ensure().await.unwrap();
    let kept = file(folder.path(), ".identity-key");
    let text = fs::read(&kept).unwrap();

    with_mode(&kept, NSEC, 0o600);
    let told = Control::open(config(folder.path())).await.unwrap_err().to_string();
    assert!(told.contains(&made.pubkey.to_hex()) && told.contains("identity.key_file"), "{told}");
    fs::remove_file(&kept).unwrap();
    let told = Control::open(config(folder.path())).await.unwrap_err().to_string();
    assert!(told.contains(kept.to_str().unwrap()) && told.contains("missing"), "{told}");
    let missing = configured(folder.path(), Path::new("/nowhere/key"));
    assert!(Control::open(missing).await.unwrap_err().to_string().contains("/nowhere/key"));

    fs::write(&kept, text).unwrap();
    fs::set_permissions(&kept, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open(folder.path()).await.identity().get(), Some(made));
}

/// As a process leaves it that is killed between the new key and the state, or between the state and the key's place.
#[tokio::test]
async fn a_change_that_was_cut_off_is_undone_or_brought_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).await.identity().ensure().await.unwrap();
    let (kept, next) = (file(folder.path(), ".identity-key"), file(folder.path(), ".identity-key.next"));
    for text in [NSEC, "nsec1vl0", ""] {
        with_mode(&next, text, 0o600);
        assert_eq!(open(folder.path()).await.identity().get().as_ref(), Some(&first), "{text}");
        assert!(!next.exists());
    }
    let old = fs::read_to_string(&kept).unwrap();
    let second = open(folder.path()).await.identity().rotate().await.unwrap();
    fs::rename(&kept, &next).unwrap();
    with_mode(&kept, &old, 0o600);
    assert_eq!(open(folder.path()).await.identity().get(), Some(second));
    assert!(!next.exists() && fs::read_to_string(&kept).unwrap() != old);
}

#[tokio::test]
async fn a_prepared_key_that_no_state_names_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let next = file(folder.path(), ".identity-key.next");
    with_mode(&next, NSEC, 0o600);
    assert_eq!(open(folder.path()).await.identity().get(), None);
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let aside = names.filter(|name| name.contains(".identity-key.next.unused-")).collect::<Vec<_>>();
    assert!(!next.exists() && aside.len() == 1, "{aside:?}");
    assert_eq!(fs::read_to_string(folder.path().join(&aside[0])).unwrap(), NSEC);
}

#[tokio::test]
async fn what_was_granted_to_a_former_key_stays_visible_until_it_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    let first = control.identity().ensure().await.unwrap().pubkey;
    let granted = relaysync::peer::Rule { principal: first, ..rule(1, 5000) };
    control.access().grant(granted).await.unwrap();
    assert_eq!(control.access().list()[0].whose, Whose::Us);
    let second = control.identity().rotate().await.unwrap().pubkey;
    assert_eq!(control.access().list()[0].whose, Whose::PreviouslyUs);
    assert_eq!(control.access().move_grants(first, second).await.unwrap(), 1);
    let list = control.access().list();
    assert_eq!((list.len(), &list[0].whose, list[0].rule.principal), (1, &Whose::Us, second));
}

#[test]
fn a_secret_is_not_shown() {
    let secret = Secret::parse(NSEC).unwrap();
    let shown = format!("{secret:?} {:?}", relaysync::native::control::Signer::new(Some(secret.clone())));
    assert!(!shown.contains(HEX) && !shown.contains("nsec1") && shown.contains(&secret.pubkey().to_hex()), "{shown}");
}
