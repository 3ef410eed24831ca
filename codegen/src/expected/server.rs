//! A resource that does one thing at a time.

use std::collections::VecDeque;

/// Serves those first who come first by the clock. They need not ask in that order: a team that is told to wait asks at once for what it does then, and
/// another one, played later, still has the time before.
#[derive(Default)]
pub(super) struct Server {
    /// When it is taken, in order and with time between.
    taken: VecDeque<(f64, f64)>,
    /// Nobody comes before this any more.
    forgotten: f64,
    busy: f64,
}

impl Server {
    /// The first time from `from` on at which it has so many cycles: when they begin and end.
    pub(super) fn serve(&mut self, from: f64, cycles: f64) -> (f64, f64) {
        let mut begin = from.max(self.forgotten);
        let mut at = self.taken.partition_point(|it| it.1 <= begin);
        while let Some(next) = self.taken.get(at).filter(|it| begin + cycles > it.0) {
            begin = begin.max(next.1);
            at += 1;
        }
        let end = begin + cycles;
        self.busy += cycles;
        let joins = |it: Option<&(f64, f64)>, time: f64| it.is_some_and(|it| it.0 <= time && time <= it.1);
        match (at > 0 && joins(self.taken.get(at - 1), begin), joins(self.taken.get(at), end)) {
            (true, true) => {
                let next = self.taken.remove(at).expect("it was looked at");
                self.taken[at - 1].1 = next.1;
            }
            (true, false) => self.taken[at - 1].1 = end,
            (false, true) => self.taken[at].0 = begin,
            (false, false) => self.taken.insert(at, (begin, end)),
        }
        (begin, end)
    }

    /// Lets go of what is over at a time that all teams have reached.
    pub(super) fn forget(&mut self, now: f64) {
        while let Some(first) = self.taken.front().filter(|it| it.1 <= now) {
            self.forgotten = first.1;
            self.taken.pop_front();
        }
    }

    /// The cycles for which it was taken so far.
    pub(super) fn busy(&self) -> f64 {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::Server;

    #[expect(clippy::float_cmp, reason = "sums of small integers are exact")]
    #[test]
    fn who_comes_earlier_is_served_before_what_was_asked_for_later_times() {
        let mut it = Server::default();
        assert_eq!(it.serve(100.0, 10.0), (100.0, 110.0));
        assert_eq!(it.serve(0.0, 40.0), (0.0, 40.0));
        assert_eq!(it.serve(0.0, 60.0), (40.0, 100.0));
        // All is one stretch now, behind which the next one comes.
        assert_eq!(it.serve(5.0, 1.0), (110.0, 111.0));
        it.forget(111.0);
        assert_eq!(it.serve(5.0, 1.0), (111.0, 112.0));
        assert_eq!(it.busy(), 112.0);
    }
}
