//! `Send` where there are threads, nothing where there are none.

#[cfg(not(target_family = "wasm"))]
mod bounds {
    /// `Send` natively; empty in the browser, whose objects belong to one thread.
    pub trait MaybeSend: Send {}
    impl<T: Send + ?Sized> MaybeSend for T {}

    /// `Sync` natively; empty in the browser.
    pub trait MaybeSync: Sync {}
    impl<T: Sync + ?Sized> MaybeSync for T {}
}

#[cfg(target_family = "wasm")]
mod bounds {
    /// `Send` natively; empty in the browser, whose objects belong to one thread.
    pub trait MaybeSend {}
    impl<T: ?Sized> MaybeSend for T {}

    /// `Sync` natively; empty in the browser.
    pub trait MaybeSync {}
    impl<T: ?Sized> MaybeSync for T {}
}

pub use bounds::{MaybeSend, MaybeSync};
