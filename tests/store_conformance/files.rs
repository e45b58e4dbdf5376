//! What is said about a file that cannot be used.

use std::fs;

use relaysync::native::store::{NativeStore, NativeStoreConfig, StoreError, StoreFault};

fn fault(path: &std::path::Path) -> StoreError {
    let error = NativeStore::open(path, NativeStoreConfig::default()).err().expect("it does not open");
    assert!(error.to_string().contains(&path.display().to_string()), "{error} names the path");
    error
}

#[test]
fn a_store_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/store");
    let store = NativeStore::open(&path, NativeStoreConfig::default()).unwrap();
    assert!(matches!(fault(&path).fault, StoreFault::Locked));
    drop(store);
    NativeStore::open(&path, NativeStoreConfig::default()).unwrap();
}

#[test]
fn another_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "these are my notes, not a store\n".repeat(1000);
    fs::write(&path, &text).unwrap();
    assert!(matches!(fault(&path).fault, StoreFault::Foreign(_)), "{}", fault(&path));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let path = folder.path().join("notes.txt/store");
    assert!(matches!(fault(&path).fault, StoreFault::Io(_)), "{}", fault(&path));
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.redb");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(redb::TableDefinition::<&str, u64>::new("theirs")).unwrap().insert("a", 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(fault(&path).fault, StoreFault::Foreign(_)));
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(NativeStore::open(&path, NativeStoreConfig::default()).unwrap());
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let numbers = redb::TableDefinition::<&str, u64>::new("relaysync numbers");
    transaction.open_table(numbers).unwrap().insert("format", 99).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(fault(&path).fault, StoreFault::NewerFormat { found: 99, .. }));
}

#[test]
fn a_path_that_cannot_be_written_is_refused() {
    // Not even root may create files there.
    let path = std::path::Path::new("/proc/relaysync/store");
    let error = fault(path);
    assert!(matches!(error.fault, StoreFault::Denied(_) | StoreFault::Io(_)), "{error}");
}

#[test]
fn a_cut_file_is_an_error_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(NativeStore::open(&path, NativeStoreConfig::default()).unwrap());
    let bytes = fs::metadata(&path).unwrap().len();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes / 3).unwrap();
    fault(&path);
}

/// What a process leaves behind that was killed while it made a store.
#[test]
fn an_unfinished_store_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for leftover in [vec![], vec![0; 1 << 20]] {
        fs::write(folder.path().join("store.relaysync-unfinished"), leftover).unwrap();
        drop(NativeStore::open(&path, NativeStoreConfig::default()).unwrap());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["store"]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_store_that_several_make_at_once_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = folder.path().join(round.to_string());
        let opened = std::thread::scope(|scope| {
            let open = || NativeStore::open(&path, NativeStoreConfig::default());
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(opened.iter().filter(|store| store.is_ok()).count() <= 1);
        let faults = opened.iter().filter_map(|store| store.as_ref().err());
        faults.for_each(|error| assert!(matches!(error.fault, StoreFault::Locked), "{error}"));
        drop(opened);
        NativeStore::open(&path, NativeStoreConfig::default()).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    drop(NativeStore::open(&path, NativeStoreConfig::default()).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
