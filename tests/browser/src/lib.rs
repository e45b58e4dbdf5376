//! Nothing: all there is are the tests.
