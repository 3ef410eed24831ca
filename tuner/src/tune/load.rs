//! What a search waits for: where the time of the devices goes.

use std::time::Duration;

/// What the devices of a search were doing, or waiting for, in seconds of a device each.
///
/// With compilers and devices enough for each other the devices are busy. Where they are not, this says what more of would
/// help.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Load {
    /// They measured.
    pub measuring: f64,
    /// Compilers were busy, and no compiled candidate was there.
    pub compiling: f64,
    /// The tuner itself scheduled, lowered and printed candidates, which it does one by one, and most compilers had nothing to do.
    pub scheduling: f64,
    /// What to try next depended on results that were not there yet.
    pub results: f64,
}

/// What an idle device waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lack {
    Compilers,
    Candidates,
    Results,
    /// There is nothing left to do, and more of nothing would help.
    Nothing,
}

/// Below this many seconds of a device nothing is said: workers have just been started.
const LEAST: f64 = 2.0;

/// From this share of the time on devices count as busy.
const BUSY: f64 = 0.85;

impl Load {
    /// Counts a time in which so many of the devices measured, and the others lacked something.
    pub(super) fn count(&mut self, time: Duration, busy: usize, devices: usize, lack: Lack) {
        let seconds = time.as_secs_f64();
        self.measuring += seconds * busy.min(devices) as f64;
        let idle = seconds * devices.saturating_sub(busy) as f64;
        match lack {
            Lack::Compilers => self.compiling += idle,
            Lack::Candidates => self.scheduling += idle,
            Lack::Results => self.results += idle,
            Lack::Nothing => {}
        }
    }

    /// The share of their time in which the devices did not measure, from 0 to 1; none at the beginning of a search.
    pub fn idle(&self) -> Option<f64> {
        let all = self.measuring + self.compiling + self.scheduling + self.results;
        (all >= LEAST).then(|| 1.0 - self.measuring / all)
    }

    /// What the search waits for most, in a word: `measuring`, `compiling`, `scheduling` or `results`.
    pub fn waits_for(&self) -> Option<&'static str> {
        if self.idle()? < 1.0 - BUSY {
            return Some("measuring");
        }
        let lacks =
            [("compiling", self.compiling), ("scheduling", self.scheduling), ("results", self.results)];
        lacks.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|it| it.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_waits_for() {
        let second = Duration::from_secs(1);
        let mut load = Load::default();
        load.count(second, 1, 1, Lack::Compilers);
        assert_eq!((load.idle(), load.waits_for()), (None, None));
        load.count(second, 1, 1, Lack::Compilers);
        assert_eq!((load.idle(), load.waits_for()), (Some(0.0), Some("measuring")));
        load.count(second, 0, 4, Lack::Compilers);
        load.count(second, 1, 4, Lack::Results);
        assert_eq!((load.idle(), load.waits_for()), (Some(0.7), Some("compiling")));
        // The end of a search, where one device measures the last candidate, says nothing of what the others lacked.
        let before = load;
        load.count(second, 0, 4, Lack::Nothing);
        assert_eq!(load, before);
        load.count(2 * second, 0, 4, Lack::Candidates);
        assert_eq!(load.waits_for(), Some("scheduling"));
    }
}
