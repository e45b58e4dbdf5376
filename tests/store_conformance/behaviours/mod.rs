//! What every store does.

mod arrivals;
mod fates;
mod reading;
mod views;

pub(crate) use arrivals::*;
pub(crate) use fates::*;
pub(crate) use reading::*;
pub(crate) use views::*;

use relaysync::protocol::RelayUrl;
use relaysync::store::StoreConfig;

use crate::Harness;

const OWN_URL: &str = "wss://own.example";
const NONE: [u32; 0] = [];

fn create<H: Harness>() -> H {
    H::create(StoreConfig { own_urls: vec![RelayUrl::parse(OWN_URL).unwrap()] })
}
