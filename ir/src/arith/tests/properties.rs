//! Laws that hold for every expression under every bounds, tried on random ones.
