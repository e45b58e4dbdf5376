//! The one list of settings, as something to walk along: reading, checking names, writing the file and printing what
//! holds are all walks over it, so that none of them can forget a setting.

use std::fmt;
use std::time::Duration;

use super::number::{self, DURATION_FORM, Number, Unit};
use super::raw::{Fault, Raw};
use super::value::{MatchFilter, ServiceUrl, Value};
use crate::protocol::{Filter, PublicKey, RelayUrl};

/// The name of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) section: &'static str,
    pub(super) key: &'static str,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.key)
    }
}

impl Name {
    /// The environment variable that sets it.
    pub(super) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}_{}", self.section, self.key).to_uppercase()
    }
}

/// How the names of environment variables begin.
pub(super) const VARIABLE_PREFIX: &str = "RELAYSYNC_";

/// Something that looks at each setting in turn.
pub(super) trait Walker {
    fn section(&mut self, name: &'static str, about: &'static str);

    fn key(&mut self, name: Name, about: &'static str, slot: &mut dyn Slot);
}

/// The place of one setting's value.
pub(super) trait Slot {
    /// Takes what was written. Nothing changes if it is at fault.
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>>;

    /// The value in TOML; `None` if it is not set.
    fn write(&self) -> Option<String>;

    /// A value that could stand here, in TOML.
    fn example(&self) -> String;
}

/// The section that is being walked along.
pub(super) struct Section<'w> {
    walker: &'w mut dyn Walker,
    name: &'static str,
}

impl<'w> Section<'w> {
    pub(super) fn begin(walker: &'w mut dyn Walker, name: &'static str, about: &'static str) -> Self {
        walker.section(name, about);
        Self { walker, name }
    }

    /// A setting of a type that says itself how it is written.
    pub(super) fn key<T: Value>(&mut self, key: &'static str, value: &mut T, about: &'static str) {
        self.slot(key, about, &mut Plain { value, example: None });
    }

    /// The same, with an example of its own, in TOML.
    pub(super) fn key_like<T: Value>(
        &mut self,
        key: &'static str,
        value: &mut T,
        example: &'static str,
        about: &'static str,
    ) {
        self.slot(key, about, &mut Plain { value, example: Some(example) });
    }

    /// A public key in hexadecimal, taken in each usual form.
    pub(super) fn hex_key(&mut self, key: &'static str, value: &mut Option<String>, about: &'static str) {
        self.slot(key, about, &mut HexKey(value));
    }

    /// A count of at least one.
    pub(super) fn count<N: Number>(&mut self, key: &'static str, value: &mut N, about: &'static str) {
        self.count_from(1, key, value, about);
    }

    /// A count of at least `min`.
    pub(super) fn count_from<N: Number>(&mut self, min: u64, key: &'static str, value: &mut N, about: &'static str) {
        self.slot(key, about, &mut Counted { value, min, unit: Unit::Count });
    }

    /// A size in bytes.
    pub(super) fn bytes<N: Number>(&mut self, key: &'static str, value: &mut N, about: &'static str) {
        self.bytes_from(1, key, value, about);
    }

    /// A size of at least `min` bytes.
    pub(super) fn bytes_from<N: Number>(&mut self, min: u64, key: &'static str, value: &mut N, about: &'static str) {
        self.slot(key, about, &mut Counted { value, min, unit: Unit::Bytes });
    }

    /// A duration that is not zero.
    pub(super) fn duration(&mut self, key: &'static str, value: &mut Duration, about: &'static str) {
        self.slot(key, about, &mut Lasting { value, zero: false });
    }

    /// A duration that may be zero.
    pub(super) fn duration_or_zero(&mut self, key: &'static str, value: &mut Duration, about: &'static str) {
        self.slot(key, about, &mut Lasting { value, zero: true });
    }

    /// A duration of whole seconds that may be zero.
    pub(super) fn seconds(&mut self, key: &'static str, secs: &mut u64, about: &'static str) {
        self.slot(key, about, &mut Seconds(secs));
    }

    /// URLs of our service: as relay or as git server.
    pub(super) fn service_urls(&mut self, key: &'static str, urls: &mut Vec<RelayUrl>, about: &'static str) {
        self.slot(key, about, &mut ServiceUrls(urls));
    }

    /// Filters of what an event is: its kind, author and tags.
    pub(super) fn match_filters(&mut self, key: &'static str, filters: &mut Vec<Filter>, about: &'static str) {
        self.slot(key, about, &mut MatchFilters(filters));
    }

    fn slot(&mut self, key: &'static str, about: &'static str, slot: &mut dyn Slot) {
        self.walker.key(Name { section: self.name, key }, about, slot);
    }
}

struct Plain<'a, T> {
    value: &'a mut T,
    example: Option<&'static str>,
}

impl<T: Value> Slot for Plain<'_, T> {
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>> {
        *self.value = T::read(raw)?;
        Ok(())
    }

    fn write(&self) -> Option<String> {
        self.value.write()
    }

    fn example(&self) -> String {
        self.example.map_or_else(T::example, str::to_owned)
    }
}

struct HexKey<'a>(&'a mut Option<String>);

impl Slot for HexKey<'_> {
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>> {
        *self.0 = Option::<PublicKey>::read(raw)?.map(|key| key.to_hex());
        Ok(())
    }

    fn write(&self) -> Option<String> {
        self.0.write()
    }

    fn example(&self) -> String {
        PublicKey::example()
    }
}

struct ServiceUrls<'a>(&'a mut Vec<RelayUrl>);

impl Slot for ServiceUrls<'_> {
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>> {
        *self.0 = Vec::<ServiceUrl>::read(raw)?.into_iter().map(|url| url.0).collect();
        Ok(())
    }

    fn write(&self) -> Option<String> {
        self.0.write()
    }

    fn example(&self) -> String {
        Vec::<ServiceUrl>::example()
    }
}

struct MatchFilters<'a>(&'a mut Vec<Filter>);

impl Slot for MatchFilters<'_> {
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>> {
        *self.0 = Vec::<MatchFilter>::read(raw)?.into_iter().map(|filter| filter.0).collect();
        Ok(())
    }

    fn write(&self) -> Option<String> {
        self.0.iter().cloned().map(MatchFilter).collect::<Vec<_>>().write()
    }

    fn example(&self) -> String {
        Vec::<MatchFilter>::example()
    }
}

struct Counted<'a, N> {
    value: &'a mut N,
    min: u64,
    unit: Unit,
}

impl<N: Number> Slot for Counted<'_, N> {
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>> {
        let number = self.unit.read(raw)?;
        let bound = |how: &str, bound| vec![format!("it must be at {how} {}", self.unit.write(bound)).into()];
        if number < self.min {
            return Err(bound("least", self.min));
        }
        if number > N::MAX {
            return Err(bound("most", N::MAX));
        }
        *self.value = N::try_from(number).map_err(|_| bound("most", N::MAX))?;
        Ok(())
    }

    fn write(&self) -> Option<String> {
        Some(self.unit.write(self.value.value()))
    }

    fn example(&self) -> String {
        "100".to_owned()
    }
}

struct Lasting<'a> {
    value: &'a mut Duration,
    zero: bool,
}

impl Slot for Lasting<'_> {
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>> {
        let duration = number::read_duration(raw)?;
        if duration.is_zero() && !self.zero {
            return Err(vec![format!("it must be longer than nothing; write {DURATION_FORM}").into()]);
        }
        *self.value = duration;
        Ok(())
    }

    fn write(&self) -> Option<String> {
        Some(number::write_duration(*self.value))
    }

    fn example(&self) -> String {
        "\"5s\"".to_owned()
    }
}

struct Seconds<'a>(&'a mut u64);

impl Slot for Seconds<'_> {
    fn read(&mut self, raw: &Raw) -> Result<(), Vec<Fault>> {
        let duration = number::read_duration(raw)?;
        if duration.subsec_nanos() != 0 {
            return Err(vec!["it must be whole seconds, like \"5s\"".to_owned().into()]);
        }
        *self.0 = duration.as_secs();
        Ok(())
    }

    fn write(&self) -> Option<String> {
        Some(number::write_duration(Duration::from_secs(*self.0)))
    }

    fn example(&self) -> String {
        "\"5s\"".to_owned()
    }
}
