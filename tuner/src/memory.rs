//! Whether tensors fit the memory of this machine, asked before any of it is taken.

use std::fs;

use crate::CaseError;

/// Refuses more bytes than are free. Where the system does not tell, it is asked for them and gets them back at once.
pub(crate) fn expect(needed: u64) -> Result<(), CaseError> {
    let free = fs::read_to_string("/proc/meminfo").ok().and_then(|it| available(&it));
    let fits = free.is_none_or(|it| needed <= it);
    let can_have = |it: usize| Vec::<u8>::new().try_reserve_exact(it).is_ok();
    if fits && usize::try_from(needed).is_ok_and(can_have) {
        return Ok(());
    }
    Err(CaseError::Memory { needed, free })
}

/// The bytes that Linux can hand out without swapping, from the text of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|it| it.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{available, expect};

    #[test]
    fn the_system_tells_kibibytes() {
        let text = "MemTotal:       24684000 kB\nMemAvailable:   20985704 kB\n";
        assert_eq!(available(text), Some(20_985_704 * 1024));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(available("MemAvailable: many\n"), None);
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        assert_eq!(expect(1 << 20), Ok(()));
        assert!(expect(u64::MAX).is_err());
    }
}
